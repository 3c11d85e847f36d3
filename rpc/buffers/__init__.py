"""Memory of one worker that other workers read and write in ranges."""
