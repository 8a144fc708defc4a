"""The embedded queue manager's files: database, journal end, marker, backup, compaction, rescue."""
