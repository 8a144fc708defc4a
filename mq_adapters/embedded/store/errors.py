"""Faults of the store as StoreError: the operation, the cause, and a hint for the operator."""

from typing import Final

import apsw

from mq_adapters.reasons import StoreError

#: The hint about damage. The disk that did it will do it again.
_DAMAGE_HINT: Final = (
    "look at the disk; see what else is damaged with 'rfhbridge queue verify', then restore a backup, or go on without"
    " the damaged messages: 'rfhbridge queue verify --set-aside'"
)


def damage(operation: str, how: str) -> StoreError:
    return StoreError(operation, f"it {how}", _DAMAGE_HINT)


def failure(operation: str, error: Exception) -> StoreError:
    if isinstance(error, apsw.FullError):
        return StoreError(operation, "the disk is full", "make room, then start again; nothing acknowledged was lost")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | UnicodeDecodeError):
        return StoreError(operation, str(error), "the file is damaged: restore the data folder from a backup")
    if isinstance(error, FileExistsError | NotADirectoryError):
        return StoreError(operation, "it is not a folder", "name the gateway's data folder")
    if isinstance(error, apsw.ReadOnlyError | PermissionError):
        return StoreError(operation, str(error), "the gateway's user must own the data folder")
    return StoreError(
        operation,
        f"{type(error).__name__}: {error}",
        "look at the disk, then start again; nothing acknowledged was lost",
    )
