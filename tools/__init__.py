"""Tools for those who change Telegrad: runs of its tests. They are not shipped."""
