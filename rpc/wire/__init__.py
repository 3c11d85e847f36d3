"""Messages to frames of bytes and back."""
