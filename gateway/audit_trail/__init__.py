"""The audit trail: notes in the units of work, and the process that writes them out as hash-chained lines."""
