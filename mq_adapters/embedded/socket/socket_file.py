"""The Unix socket file of a folder: `queue_manager.socket`, for its owner alone (mode 0600) unless said otherwise.

A socket's address has 107 bytes (unix(7), sun_path), and a data folder's path may have more. On Linux a longer path is
reached through /proc/self/fd/<the folder's descriptor>. Elsewhere the error says what to do.
"""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

#: Modes of the file.
OWNER_ALONE: Final = 0o600
EVERYBODY: Final = 0o666
SOCKET_NAME: Final = "queue_manager.socket"
#: Bytes of sun_path without its NUL; macOS and the BSDs have 103, so the shorter one decides.
LONGEST_ADDRESS_BYTES: Final = 103
_OWN_DESCRIPTORS: Final = Path("/proc/self/fd")
_NEW_NAME: Final = f"{SOCKET_NAME}.new"


def listening_socket(data_dir: Path, mode: int = OWNER_ALONE) -> socket.socket:
    """A bound socket at its place, not yet listening.

    Only the store's owner may call this, because it replaces the file.

    The file gets its mode under another name, and nobody can connect before it listens. So it is never open to others.
    Raises StoreError if the folder can hold no socket.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = data_dir / _NEW_NAME
    try:
        path.unlink(missing_ok=True)
        with _address(data_dir, _NEW_NAME) as address:
            bound.bind(address)
        path.chmod(mode)
        path.replace(data_dir / SOCKET_NAME)
    except OSError as error:
        bound.close()
        raise StoreError(
            f"make the socket {SOCKET_NAME}", str(error), "use a shorter data folder, or one that may hold sockets"
        ) from error
    bound.setblocking(False)
    return bound


def remove_socket_file(data_dir: Path) -> None:
    """Removes the socket file. Only the store's owner may call this."""
    with contextlib.suppress(OSError):
        (data_dir / SOCKET_NAME).unlink()


def connected_socket(data_dir: Path) -> socket.socket:
    """A socket connected to the gateway of a data folder.

    Raises 2059 if nobody listens, 2035 if this user may not connect.
    """
    operation = f"connect to the gateway of {data_dir}"
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(data_dir, SOCKET_NAME) as address:
            connected.connect(address)
    except PermissionError as error:
        connected.close()
        raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, operation) from error
    except OSError as error:
        connected.close()
        raise QueueManagerError(ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE, f"{operation}: {error}") from error
    return connected


@contextlib.contextmanager
def _address(data_dir: Path, name: str) -> Iterator[str]:
    path = str(data_dir / name)
    if len(os.fsencode(path)) <= LONGEST_ADDRESS_BYTES:
        yield path
        return
    if not _OWN_DESCRIPTORS.is_dir():
        raise OSError(f"{path} is longer than the {LONGEST_ADDRESS_BYTES} bytes of a socket's address")
    folder = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(_OWN_DESCRIPTORS / str(folder) / name)
    finally:
        os.close(folder)
