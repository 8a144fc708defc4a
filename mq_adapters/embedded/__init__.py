"""The durable queue manager on SQLite: queues, units of work, group commit, expiry, dead-letter queue."""
