"""The front door: bytes to and from a session; step 1 on the way of a PUBLISH."""

from gateway.listener.listeners import Listener
from gateway.listener.tcp import TcpLink

__all__ = ["Listener", "TcpLink"]
