"""What a topic becomes at a target, and what the queue manager there needs for it."""
