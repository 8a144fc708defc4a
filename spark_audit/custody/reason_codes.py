"""The codes of the gateway's answers to clients, and the code that each reason of a refusal has.

Written from the standards a second time: the gateway has a table of its own. Tables 3-1, 3-4, 3-5, 3-8 and 3-9 are of
MQTT 5.0. Before it CONNACK has the return codes of MQTT 3.1.1 table 3.1, SUBACK those of its section 3.9.3, and no
other answer has a code. MQTT 3.1 cannot refuse a filter: its record says 80, and the connection is closed.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

#: From here on a code says that something is refused (MQTT 5.0 section 2.4).
FAILURE: Final = 0x80
_LEVEL_WITH_REASON_CODES: Final = 5
#: MQTT 5.0 sections 3.4.2.1 and 3.11.3: nobody subscribes; there was no such subscription.
NOBODY: Final = 0x10
NO_SUBSCRIPTION: Final = 0x11


def _codes(digits: str) -> frozenset[int]:
    return frozenset(bytes.fromhex(digits))


#: SUBACK by protocol level; UNSUBACK, PUBACK and PUBREC of level 5.
SUBACK: Final = {
    3: _codes("00 01 02 80"),
    4: _codes("00 01 02 80"),
    5: _codes("00 01 02 80 83 87 8F 91 97 9E A1 A2"),  # table 3-8
}
UNSUBACK: Final = _codes("00 11 80 83 87 8F 91")  # table 3-9
PUBLISH: Final = _codes("10 80 83 87 90 91 97 99")  # tables 3-4 and 3-5

#: CONNACK of a refused login, by the event of its record: at level 3 and 4, at level 5 (tables 3.1 and 3-1).
LOGINS: Final = {
    "wrong_credentials": _codes("04 86"),
    "not_allowed": _codes("05 87"),
    "wrong_identifier": _codes("02 85"),
    "busy": _codes("03 89"),
}
#: CONNACK of a CONNECT that was refused for another reason, at level 5, by the event of its record.
_CONNECTS: Final = {
    "malformed": _codes("81 82"),
    "not_served": _codes("84"),
    "identifier": _codes("85"),
    "unknown_method": _codes("8C"),
    "will": _codes("83"),
}
#: The same by the limit: quota exceeded, connection rate exceeded, packet too large, topic name invalid.
_LIMITS_OF_CONNECT: Final = (
    (
        re.compile(r"(connections|sessions)(_of_listener|_per_\w+)?|held_bytes_in_all|retained_messages|properties"),
        0x97,
    ),
    (re.compile(r"connection_rate(_per_\w+)?"), 0x9F),
    (re.compile(r"packet_bytes"), 0x95),
    (re.compile(r"topic_(bytes|characters|levels)"), 0x90),
)
#: Table 3.1 of MQTT 3.1.1: the return code before level 5. For all others the connection is closed without CONNACK.
_RETURN_CODES: Final = {0x84: 1, 0x85: 2, 0x97: 3, 0x9F: 3}


class Refusal(NamedTuple):
    """The code of a refused filter (SUBACK), and that of a refused PUBLISH (PUBACK, PUBREC, DISCONNECT)."""

    of_filter: int
    of_publish: int


#: 87 Not authorized; 8F and 90 Topic Filter and Topic Name invalid; 97 Quota exceeded; 83 Implementation specific
#: error; 80 Unspecified error.
_NOT_AUTHORIZED: Final = Refusal(0x87, 0x87)
_INVALID: Final = Refusal(0x8F, 0x90)
_QUOTA: Final = Refusal(0x97, 0x97)
_OTHERWISE: Final = Refusal(0x83, 0x83)

#: By IBM's reason codes ("API completion and reason codes", "PCF reason codes"); of all others _OTHERWISE.
_OF_MQ: Final[Mapping[Refusal, Mapping[int, str]]] = {
    _NOT_AUTHORIZED: {
        2035: "MQRC_NOT_AUTHORIZED",
        2063: "MQRC_SECURITY_ERROR",
        2109: "MQRC_SUPPRESSED_BY_EXIT",
        2292: "MQRC_UNKNOWN_ENTITY",
        2531: "MQRC_PUBSUB_INHIBITED",
        3081: "MQRCCF_NOT_AUTHORIZED",
        3151: "MQRCCF_WRONG_USER",
        3318: "MQRCCF_PUBSUB_INHIBITED",
    },
    _INVALID: {3072: "MQRCCF_TOPIC_ERROR"},
    _QUOTA: {
        2030: "MQRC_MSG_TOO_BIG_FOR_Q",
        2031: "MQRC_MSG_TOO_BIG_FOR_Q_MGR",
        2053: "MQRC_Q_FULL",
        2056: "MQRC_Q_SPACE_NOT_AVAILABLE",
        2071: "MQRC_STORAGE_NOT_AVAILABLE",
        2102: "MQRC_RESOURCE_PROBLEM",
        3016: "MQRCCF_MSG_LENGTH_ERROR",
    },
}
_BY_NUMBER: Final = {number: each for each, reasons in _OF_MQ.items() for number in reasons}
_BY_NAME: Final = {name: each for each, reasons in _OF_MQ.items() for name in reasons.values()}
#: The rules that a record names: an access list, keys of the configuration, limits, MQ, and words of the gateway.
_RULES: Final = (
    (re.compile(r"line \d+|rule#\d+|no rule|topic object|access\.(publish|subscribe)|mqtt\.dollar_topics"), 0),
    (re.compile(r"topic_(bytes|characters|levels)"), 1),
    (re.compile(r"(subscriptions|subscription_levels|shared_groups|filter_shapes|held_bytes)(_per_\w+|_in_all)?"), 2),
    (re.compile(r"subscription_characters|retained_messages|the target's queue is full"), 2),
)
_KINDS: Final = (_NOT_AUTHORIZED, _INVALID, _QUOTA)
_WORDS: Final = {"MQ cannot carry it": Refusal(0x8F, 0x83), "no answer in time": Refusal(0x80, 0x80)}
_MQ: Final = ("MQRC_", "MQRCCF_")


def is_of_mq(rule: str) -> bool:
    """Whether a rule is a reason of MQ."""
    return rule.startswith(_MQ)


def refusal_by(rule: str) -> Refusal | None:
    """The codes of what a rule refuses; None: the rule is none that this table has."""
    if is_of_mq(rule):
        return _BY_NAME.get(rule, _OTHERWISE)
    found = next((_KINDS[place] for pattern, place in _RULES if pattern.fullmatch(rule)), None)
    return found or _WORDS.get(rule)


def code_of_regsub(reason_code: int) -> int:
    """The code of SUBACK where the broker refused the RegSub with a reason code of MQ."""
    return _BY_NUMBER.get(reason_code, _OTHERWISE).of_filter


def of_refused_connect(event: str, rule: str, level: int | None) -> frozenset[int | None] | None:
    """The codes that CONNACK may have where a CONNECT is refused, None among them: there is no CONNACK.

    `level` None: the client can be told nothing, or only that no level of its own is served. Returns None for an event
    or a limit that this table does not have.
    """
    at_5: frozenset[int] | None = _CONNECTS.get(event)
    if event == "limit":
        at_5 = next((frozenset({code}) for pattern, code in _LIMITS_OF_CONNECT if pattern.fullmatch(rule)), None)
    if at_5 is None:
        return None
    if level is None:
        return frozenset({None, 0x01, 0x84} if event == "not_served" else {None})
    return frozenset(at_5) if level >= _LEVEL_WITH_REASON_CODES else frozenset(map(_RETURN_CODES.get, at_5))
