"""A process that holds TLS connections and does nothing else: what OpenSSL and Python's own socket take for each."""

import multiprocessing
import socket
import ssl
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.certificate import write_certificate

_ACCEPTED: Final = b"\x20\x02\x00\x00"
_LONGEST_CONNECT_BYTES: Final = 1_024
_BACKLOG: Final = 128


class BareTls:
    """Answers every CONNECT with CONNACK 0, and holds the connection. A context manager."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self.port: int = self._listening.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory(prefix="rfhbench")
        folder = Path(self._folder.name)
        write_certificate(folder / "certificate.pem", folder / "key.pem")
        self._process = multiprocessing.get_context("spawn").Process(target=_hold, args=(self._listening, folder))
        self.process_id = 0

    def __enter__(self) -> Self:
        self._process.start()
        assert self._process.pid is not None
        self.process_id = self._process.pid
        self._listening.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()
        self._folder.cleanup()


def _hold(listening: socket.socket, folder: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    held: list[ssl.SSLSocket] = []
    while True:
        connected, _ = listening.accept()
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        held.append(context.wrap_socket(connected, server_side=True))
        held[-1].recv(_LONGEST_CONNECT_BYTES)
        held[-1].sendall(_ACCEPTED)
