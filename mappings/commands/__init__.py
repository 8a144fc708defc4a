"""Publish/subscribe commands and responses as values, and the rules that they keep."""
