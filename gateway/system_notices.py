"""What the system's service manager hears of the gateway: that its ports are open, that it lives, that it stops.

systemd names a Unix datagram socket in NOTIFY_SOCKET, and each notice is one datagram. Without that variable nothing is
sent. With WATCHDOG_USEC the event loop tells twice in that time that it turns: systemd ends and restarts a gateway that
hangs. The gateway's exporter and channels do not inherit the variables.

Source: sd_notify(3), systemd.service(5) on Type=notify and WatchdogSec=.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import MutableMapping
from typing import Final

_SOCKET: Final = "NOTIFY_SOCKET"
_WATCHDOG: Final = "WATCHDOG_USEC"
_WATCHED_PROCESS: Final = "WATCHDOG_PID"
_MICROSECONDS: Final = 1_000_000
#: A name that begins with @ is in the abstract space, and has a zero byte there (unix(7)).
_ABSTRACT: Final = "@"


class SystemNotices:
    """Sends notices, where somebody wants them. A notice that cannot be sent is lost: it must not stop the gateway."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        """Takes the variables out of the environment: they are for this process."""
        address = environment.pop(_SOCKET, "")
        period_us, process = environment.pop(_WATCHDOG, ""), environment.pop(_WATCHED_PROCESS, "")
        is_for_us = process in ("", str(os.getpid()))
        #: How often the service manager wants to hear that the gateway lives, seconds; 0: never.
        self.watchdog_s = int(period_us) / _MICROSECONDS if period_us.isdecimal() and is_for_us and address else 0.0
        self._address = f"\0{address[1:]}" if address.startswith(_ABSTRACT) else address
        self._alive: asyncio.Task[None] | None = None

    def ready(self) -> None:
        """The ports are open. From now on the event loop tells that it lives. Called in the event loop."""
        self._send("READY=1")
        if self.watchdog_s:
            self._alive = asyncio.create_task(self._live())

    def stopping(self) -> None:
        """The gateway drains. It goes on to tell that it lives."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Tells nothing more."""
        if self._alive is not None:
            self._alive.cancel()
            self._alive = None

    async def _live(self) -> None:
        while True:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_s / 2)

    def _send(self, notice: str) -> None:
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(notice.encode(), self._address)
