"""Targets: what the gateway knows of IBM MQ queue managers, and the processes whose channels reach them."""
