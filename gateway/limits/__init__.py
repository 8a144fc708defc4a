"""Limits: what is refused to one client, so that the others feel nothing of it."""
