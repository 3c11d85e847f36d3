"""Operations of the sweep, a table for each family; ``all.py`` lists them. Each runs on Telegrad and on PyTorch."""
