"""Queue managers behind one port: the embedded one with its publish/subscribe broker."""
