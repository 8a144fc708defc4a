"""The page of MQTT: what differs by version, from the table of levels, and where the gateway deviates."""

import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

from docs.generator.markdown import code, sentence, table
from gateway.mqtt.levels import LEVELS, Level, PacketType

STATEMENTS: Final = Path(__file__).resolve().parents[2] / "tests" / "conformance" / "normative_statements.toml"
INTRODUCTION: Final = """
The gateway is a server of MQTT 3.1, 3.1.1 and 5.0. It takes every QoS, retained messages, wills, wildcards, and at
MQTT 5.0 shared subscriptions, subscription identifiers, topic aliases and request and response. It knows no enhanced
authentication. [Limits](limits.md) says what one client may use.
""".strip()
STANDARDS: Final = {4: "OASIS MQTT 3.1.1", 5: "OASIS MQTT 5.0"}
DOES_NOT_ARISE: Final = "Does not arise: "
#: The way in which levels differ, by the attribute of a level, which is true or false.
DIFFERENCES: Final = {
    "has_properties": "packets have properties",
    "has_reason_codes": "PUBACK, PUBREC, SUBACK, UNSUBACK and DISCONNECT have reason codes",
    "has_shared_subscriptions": "`$share/GROUP/FILTER` is a shared subscription",
    "has_session_present": "CONNACK says whether there is a session",
    "suback_can_refuse": "SUBACK can refuse a filter",
    "repeated_pubrel_has_dup": "a repeated PUBREL has DUP set",
    "connect_flags_must_be_clear": "flags in the first byte of CONNECT must be 0",
    "unused_connect_flags_must_be_clear": "connect flags that mean nothing must be 0",
    "announced_fields_may_be_missing": "fields that CONNECT announces may be missing",
    "password_needs_user_name": "a password needs a user name",
    "empty_client_identifier_is_assigned": "a client without an identifier is assigned one",
    "empty_client_identifier_needs_clean_session": "without an identifier Clean Session must be 1",
    "acknowledgements_must_fit": "an acknowledgement of another QoS, or before its turn, ends the connection"
    " (no: it is ignored)",
    "texts_may_hold_control_characters": "texts may hold control characters",
}


def lines() -> list[str]:
    """The page, without its title."""
    statements = tomllib.loads(STATEMENTS.read_text())["normative"]
    return [
        *INTRODUCTION.splitlines(),
        "",
        "## What differs by version",
        "",
        *table(["", *(f"MQTT {level.version}" for level in LEVELS.values())], _differences()),
        "",
        "## The standards, statement by statement",
        "",
        "A test shows each numbered statement that concerns a server. The tables have those that the gateway reads in",
        "its own way, and those that cannot arise.",
        *(line for level, name in STANDARDS.items() for line in _standard(level, name, statements)),
    ]


def _differences() -> Iterator[tuple[str, ...]]:
    levels = LEVELS.values()
    yield ("protocol name of CONNECT", *(code(each.protocol_name.decode()) for each in levels))
    yield ("protocol level of CONNECT", *(str(each.number) for each in levels))
    for attribute in (field.name for field in fields(Level) if field.type is bool):
        yield (DIFFERENCES[attribute], *("yes" if getattr(each, attribute) else "no" for each in levels))
    for packet_type in PacketType:
        longest = [_longest(each, packet_type) for each in levels]
        if any(longest):
            yield (f"longest {packet_type.name} that is read, remaining length in bytes", *longest)


def _longest(level: Level, packet_type: PacketType) -> str:
    """The largest remaining length; nothing for a packet that a server does not receive at this level."""
    return f"{level.longest[packet_type]:,}" if packet_type in level.received else ""


def _standard(level: int, name: str, statements: list[dict[str, object]]) -> Iterator[str]:
    of_level = [each for each in statements if each["level"] == level]
    told = {str(each["statement"]): str(each["deviation"]) for each in of_level if each["deviation"]}
    read = {statement: text for statement, text in told.items() if not text.startswith(DOES_NOT_ARISE)}
    yield from ["", f"### {name}", "", f"{len(of_level)} statements; {len(of_level) - len(told)} as they stand.", ""]
    yield from table(["Statement", "How the gateway reads it"], ((code(each), text) for each, text in read.items()))
    void = {statement: text.removeprefix(DOES_NOT_ARISE) for statement, text in told.items() if statement not in read}
    yield from ["", "Cannot arise:", ""]
    yield from table(["Statement", "Why"], ((code(each), sentence(text)) for each, text in void.items()))
