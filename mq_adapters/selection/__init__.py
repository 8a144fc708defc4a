"""Conditions on messages: content filters of the broker's subscribers."""
