"""The violations that the replay finds."""

from enum import StrEnum
from typing import NamedTuple


class Custody(StrEnum):
    """The controls of custody, by their identifiers."""

    COPIES = "custody.copies"
    RETAINED = "custody.retained"
    COMMANDS = "custody.commands"
    DELIVERIES = "custody.deliveries"
    SESSIONS = "custody.sessions"
    ORDER = "custody.order"
    PASSAGES = "custody.passages"
    STOCK = "custody.stock"
    QUEUES = "custody.queues"
    INVENTORY = "custody.inventory"
    CONFIRMATIONS = "custody.confirmations"
    CODES = "custody.codes"
    PROGRAMS = "custody.programs"


class Finding(NamedTuple):
    """One violation. `sequence` is that of the record that shows it."""

    control: Custody
    sequence: int
    subject: str
    detail: str


def message(message_id: str) -> str:
    return f"message {message_id}"


def session(client: str, epoch: int) -> str:
    return f"client {client}, session {epoch}"
