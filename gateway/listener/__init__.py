"""Listeners: bytes between sockets and sessions; step 1 on the way of a PUBLISH."""

from gateway.listener.listener import Listener
from gateway.listener.listeners import Listeners, OpenListener, cannot_listen, mq_listeners
from gateway.listener.rules import ListenerRules
from gateway.listener.tcp import TcpLink

__all__ = ["Listener", "ListenerRules", "Listeners", "OpenListener", "TcpLink", "cannot_listen", "mq_listeners"]
