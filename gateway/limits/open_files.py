"""The number of files that this process may have open. Each connection is one, and many systems allow 1,024.

Past that number connections are closed without an answer, even if the configuration allows them. So the gateway raises
the number to the one that the configuration needs, as far as the system permits (getrlimit(2), RLIMIT_NOFILE).
"""

import logging
import resource
from collections.abc import Iterable
from typing import Final

from gateway.config.listeners import ListenerSettings
from gateway.config.mq_listeners import MqListenerSettings
from gateway.config.mqtt_limits import ConnectionLimits

_log = logging.getLogger(__name__)

#: Files of the gateway itself: the store, pipes to its processes, applications on the socket, requests over HTTP.
OWN_FILES: Final = 512


def make_room_for(
    limits: ConnectionLimits, listeners: Iterable[ListenerSettings], mq_listeners: Iterable[MqListenerSettings] = ()
) -> None:
    """Raises the number for the allowed connections and the waiting ones. Warns if the system permits fewer files.

    Some number of connections may wait for their CONNECT. As many may be in handshakes of each listener with TLS or
    PROXY, and as many again in requests for a WebSocket.
    """
    places = 1 + sum((each.is_secure or each.proxy_protocol) + (each.transport == "websocket") for each in listeners)
    of_mq = sum(each.maximum_connections for each in mq_listeners)
    needed = limits.maximum_connections + places * limits.maximum_waiting_connections + of_mq + OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    possible = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
    except (OSError, ValueError) as error:
        _log.warning("limit of open files not raised limit=%s needed=%s reason=%s", soft, needed, str(error))
        return
    if possible < needed:
        _log.warning("limit of open files too low limit=%s needed=%s see=%s", possible, needed, "ulimit -Hn")
