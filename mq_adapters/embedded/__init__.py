"""The durable queue manager on SQLite: queues, units of work, group commit. README.md says what is durable when."""
