"""Listeners of IBM MQ's clients: server-connection channels over TCP and TLS."""
