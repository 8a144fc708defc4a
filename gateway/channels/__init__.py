"""Targets: the gateway's knowledge of IBM MQ queue managers, and the processes whose channels reach them."""
