"""Programs to run and to read: two short tours, and a parameter server that learns handwritten digits."""
