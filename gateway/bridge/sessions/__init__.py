"""Sessions: what the gateway knows of each client, in memory and in the store, and the limits on it."""
