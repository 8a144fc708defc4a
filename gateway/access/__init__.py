"""Access: `login` decides whether a client may connect, and `rights` which topics it may publish and subscribe."""
