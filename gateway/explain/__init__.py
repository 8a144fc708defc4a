"""Explains a topic: its commands at a target, and the objects that the queue manager there needs."""
