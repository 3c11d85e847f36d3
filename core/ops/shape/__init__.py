"""Operations on shapes: reshaping, transposing, expanding, joining, splitting, repeating."""
