"""Registrations that no session has: the broker's list is compared with the store, and the surplus is ended.

The broker's list is the output of DISPLAY SUB, of the embedded broker or of `runmqsc` at a target, because the commands
of queued publish/subscribe cannot list registrations. A registration is the gateway's own by its queue. It belongs to a
session by its CorrelId, which no other session ever has. So registrations are read before sessions.
"""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from gateway.bridge.commands.target_messages import deregistration, own_message_identifier
from gateway.bridge.deliver.shared_groups import stored_groups
from gateway.bridge.sessions.session_store import KnownSession, stored_registrations
from gateway.config import Settings, TargetSettings
from gateway.config.queue_names import transmission_queue_name
from gateway.config.routes import Routes
from mappings.commands.command import DeregisterSubscriber
from mq_adapters.embedded.socket.snapshot import states_of
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import Message
from mq_adapters.queue_manager import QueueAdministration
from mq_adapters.transmission import transmission_message

#: An attribute as runmqsc shows it; a quote in a value is doubled, and values in quotes may hold parentheses.
_ATTRIBUTE: Final = re.compile(r"\b([A-Z]+)\((?:'((?:[^']|'')*)'|([^()']*))\)")
_IDENTIFIER: Final = re.compile(r"[0-9A-Fa-f]{48}")
#: The answer for each subscription begins so: AMQ8096I, or AMQ8096 in older versions.
_HEADING: Final = "AMQ8096"
#: A unit of work holds MAXUMSGS messages, 10,000 by default: one for each identity and stream.
_IDENTITIES_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRegistration:
    """A subscription of a broker, as far as it matters here. `correl_id` is hexadecimal, in lower case."""

    sub_id: str
    topic: str
    queue: str
    correl_id: str


class NoRegistrations(Exception):
    """A text that is not the output of DISPLAY SUB with what is needed; the text says what is missing."""


def sessions_of(data_dir: Path) -> tuple[bytes, tuple[KnownSession, ...]]:
    """The store's identity and its sessions at this moment. StoreError where there is no sound store."""
    identity, rows = states_of(data_dir, StateKind.SESSION)
    return identity, tuple(stored_registrations(rows, identity))


def groups_of(data_dir: Path) -> tuple[KnownSession, ...]:
    """The groups that share subscriptions at this moment; they have registrations as sessions do. StoreError."""
    identity, rows = states_of(data_dir, StateKind.SHARED_SUBSCRIPTION)
    return tuple(stored_groups(rows, identity))


def registrations_in(lines: Iterable[str]) -> Iterator[FoundRegistration]:
    """The subscriptions in the output of DISPLAY SUB(*) ALL. Raises NoRegistrations."""
    for text in _blocks(lines):
        values = {name: (quoted or bare).replace("''", "'").strip() for name, quoted, bare in _ATTRIBUTE.findall(text)}
        if "DEST" not in values or not _IDENTIFIER.fullmatch(values.get("DESTCORL", "")):
            raise NoRegistrations("a subscription has no DEST or DESTCORL: write DISPLAY SUB(*) ALL")
        yield FoundRegistration(
            sub_id=values.get("SUBID", ""),
            topic=values.get("TOPICSTR", ""),
            queue=values["DEST"],
            correl_id=values["DESTCORL"].lower(),
        )


def without_session(
    registrations: Iterable[FoundRegistration], queue_name: str, sessions: Iterable[KnownSession]
) -> tuple[FoundRegistration, ...]:
    """The registrations whose publications come to the gateway's queue for no session."""
    known = {session.correl_id.hex() for session in sessions}
    return tuple(each for each in registrations if each.queue == queue_name and each.correl_id not in known)


def end_at_target(
    queue_manager: QueueAdministration,
    settings: Settings,
    target: TargetSettings,
    orphans: Iterable[FoundRegistration],
    *,
    incarnation: bytes,
) -> int:
    """DeregSub with DeregAll for each identity in each stream of the target, by units of work; how many there were.

    They wait on the transmission queue like everything for a target.
    """
    destinations = [each for each in Routes(settings.routes, settings.target).destinations if each.target == target]
    correl_ids = sorted({orphan.correl_id for orphan in orphans})
    for start in range(0, len(correl_ids), _IDENTITIES_AT_ONCE):
        queue_manager.begin()
        queue_manager.operate("sessions sweep", f"DeregSub to target {target.name}")
        for correl_id, destination in product(correl_ids[start : start + _IDENTITIES_AT_ONCE], destinations):
            now_us = time.time_ns() // 1000
            msg_id = own_message_identifier(
                incarnation,
                epoch=0,
                client=f"{correl_id} {destination.key}",
                verb=DeregisterSubscriber.verb,
                sequence=now_us,
            )
            made = deregistration(destination, patterns=(), correl_id=bytes.fromhex(correl_id), msg_id=msg_id)
            message = transmission_message(
                Message(made.descriptor, made.header),
                queue_name=made.queue,
                queue_manager_name="",
                own_name=queue_manager.name,
                now_us=now_us,
            )
            queue_manager.put(transmission_queue_name(target.name, 0), message)
        queue_manager.commit()
    return len(correl_ids)


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """The text of each subscription, without the heading; lines of other answers are passed over."""
    block: list[str] | None = None
    for line in lines:
        if line.startswith(_HEADING):
            if block is not None:
                yield " ".join(block)
            block = []
        elif block is not None and line.startswith(" "):
            block.append(line.strip())
        elif block is not None:
            yield " ".join(block)
            block = None
    if block is not None:
        yield " ".join(block)
