"""Limits: a refusal to one client protects all others. Their table is gateway/config/limits.py."""
