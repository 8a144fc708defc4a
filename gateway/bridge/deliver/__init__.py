"""Deliveries: publications leave as PUBLISH packets, within each client's window, to sessions and shared groups."""
