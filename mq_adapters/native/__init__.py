"""Experimental: a client of IBM MQ's client channel in Python alone, without IBM's library.

    [[target]]
    binding = "native"

The protocol is mq_adapters/client_channel. No queue manager of IBM was ever on the other side: it is proved against
rfhbridge's own listener (gateway/listener/mq).
"""
