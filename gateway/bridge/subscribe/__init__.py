"""SUBSCRIBE and UNSUBSCRIBE: filters are registered a few at a time, and both packets are answered."""
