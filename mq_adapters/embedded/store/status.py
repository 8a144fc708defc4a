"""How the store is, in plain numbers: whoever shows it reads them when it likes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """`free_bytes`: what the store's file has inside for the next messages, before it takes more of the disk.
    `log_bytes`: what waits to be copied into the database, and whether that is too long.

    `checkpoints_*`: the attempts to copy it that did, that a reader kept from it, and that failed.
    """

    free_bytes: int
    log_bytes: int
    log_is_long: bool
    checkpoints_done: int
    checkpoints_held: int
    checkpoints_failed: int
