"""The single rules of the specification that a conversion breaks: fields, option support, the report, RETAIN.

performance.py compares the whole conversion; this module names the broken rules. It finds no broken rule in a header
that cannot be read, because performance.py reports that.

Fields. The nine rows of "Message formats" (aq19780_), checked in a header that was converted to the other format. Each
value stands under the other name of its row, and a name without a row is a fault. The command shows which fields a
broker or the service leaves out or adds on purpose, so the report is not needed.

Option support. The table of "Message formats" (aq19780_), with its notes 1 to 7, checked in a written header:

    note 1   RegPub, DeregPub, DirectReq and NoReg exist for migration: MQRFH2 does not have them
    note 2   the fields of the MQMD are as in WebSphere MQ Publish/Subscribe: a conversion leaves them alone
    note 3   a stream is a prefix of the topic: MQRFH2 has no stream name and no InclStreamName
    note 4   CorrelAsId makes the CorrelId a part of the client's identity, so there must be one
    note 5   Local means the publisher's own broker: a delivered copy does not have it
    note 6   an answer has only completion codes of its format
    note 7   Anon is ignored: MQRFH2 does not have it

RETAIN and the options that stand for it. RetainPub is the publisher's option, IsRetainedPub the broker's:

    packet to header    RetainPub if the PUBLISH has RETAIN and a payload, and only then
    header to header    IsRetainedPub only in copies of messages that were retained before the subscription
    header to packet    RETAIN if the publication has IsRetainedPub. Without it RETAIN is possible only at level 5,
                        where a subscription may ask for RETAIN as published

Sources: Message formats (aq19780_); MQTT 3.1.1 section 3.3.1.3.
"""

from typing import Final

from spark_audit.record import ConversionKind
from spark_audit.reperform.broker_response import BrokerResponse, broker_response_of
from spark_audit.reperform.code_page import UnknownCodePage
from spark_audit.reperform.comparison import Finding, Rule, UnreadableBytes, findings
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.header import read_chain
from spark_audit.reperform.meaning import Meaning, meaning_of, read_meaning
from spark_audit.reperform.mqtt import CONNECT, FIRST_LEVEL_WITH_PROPERTIES, read_publish, read_will
from spark_audit.reperform.report import delivery_report_faults, publish_report_faults, unreported
from spark_audit.reperform.table import NEEDING, ONLY_IN_MQRFH, OPTION_ELEMENTS, TO_NAME
from spark_audit.reperform.target import prefix_of

#: Rows whose values nobody changes on the way. Topics are not among them: except in Publish they are patterns, which
#: are translated.
_LITERAL: Final = ("Command", "PubTime", "SeqNum")
_ADDRESS: Final = ("QName", "QMgrName")
_ADDED_BY_BROKER: Final = frozenset({"StreamName", "SubPoint", "SubUserData"})
_EXTENDED: Final = frozenset({"SubName", "SubIdentity", "SubUserData"})
#: Options for the publisher and the broker, which a delivered copy does not have.
_NOT_DELIVERED: Final = frozenset({"NoReg", "IsRetainedPub", "Local"})
#: From RegOpt of a Publish to PubOpt, and back.
_MOVED_IN_EXTENDED: Final = frozenset({"Local"})
_PREFIX: Final = "MQPS"


def field_faults(source: Meaning, actual: Meaning, *, is_copy: bool, is_extended: bool) -> list[str]:
    """How a converted header breaks the rows of the table; `is_copy`: a broker made it; else the service did."""
    if source.version == actual.version:
        return []
    return [
        *_changed_values(source, actual, is_copy=is_copy),
        *_changed_options(source, actual, is_copy=is_copy, is_extended=is_extended),
        *_names_without_a_row(actual, is_copy=is_copy, is_extended=is_extended),
    ]


def _changed_values(source: Meaning, actual: Meaning, *, is_copy: bool) -> list[str]:
    compared = [*_LITERAL]
    if source.command == "Publish":
        compared.append("Topic")
    if not is_copy:
        compared += _ADDRESS
    elif "DirectReq" in source.options("RegOpt"):
        compared += [name for name in _ADDRESS if source.values(name)]  # the broker adds a missing address
    return [
        f"{TO_NAME[name]}, {name}: {list(source.values(name))} became {list(actual.values(name))}"
        for name in compared
        if source.values(name) != actual.values(name)
    ]


def _changed_options(source: Meaning, actual: Meaning, *, is_copy: bool, is_extended: bool) -> list[str]:
    """Changes of option tokens that both formats have: each stands in the same row before and after."""
    ignored = ONLY_IN_MQRFH | (_MOVED_IN_EXTENDED if is_extended else frozenset(NEEDING))
    if is_copy:
        ignored |= _NOT_DELIVERED
    words: list[str] = []
    for name in sorted(OPTION_ELEMENTS):
        if is_copy and name == "RegOpt":
            continue  # the publisher's own
        before, after = source.options(name) - ignored, actual.options(name) - ignored
        words += [f"{name}: option {token} was lost" for token in sorted(before - after)]
        words += [f"{name}: option {token} was added" for token in sorted(after - before)]
        if not is_extended:
            bare = actual.options(name) & frozenset(NEEDING)
            words += [f"{name}: option {token} was written without its {NEEDING[token]}" for token in sorted(bare)]
    return words


def _names_without_a_row(actual: Meaning, *, is_copy: bool, is_extended: bool) -> list[str]:
    """Names in the new header that the table does not have, or that have the spelling of the other format."""
    allowed = _ADDED_BY_BROKER if is_copy else (_EXTENDED if is_extended else frozenset())
    prefix = _PREFIX if actual.version == 1 else ""
    return [
        f"{name} has no row in the table and was written"
        for name, _ in actual.unmapped
        if name not in {f"{prefix}{each}" for each in allowed}
    ]


_NOTE_OF_TOKEN: Final = {"DirectReq": 1, "NoReg": 1, "InclStreamName": 3, "Anon": 7}
_STREAM_NAMES: Final = frozenset({"StreamName", "MQPSStreamName"})
_NO_CORREL_ID: Final = "0" * 48
_COMPLETIONS: Final = frozenset({"ok", "warning", "error"})
_ANY: Final = frozenset({"Publish", "RegSub", "DeregSub", "ReqUpdate", "RegPub", "DeregPub"})
_PUBLISHER: Final = frozenset({"Publish", "RegPub"})
_REGSUB: Final = frozenset({"RegSub"})
#: The rows of the option support table: field and option, and the commands that support it.
_SUPPORTED: Final = {
    ("RegOpt", "CorrelAsId"): _ANY,
    ("DelOpt", "Local"): frozenset({"DeletePub"}),
    ("RegOpt", "DeregAll"): frozenset({"DeregPub", "DeregSub"}),
    ("RegOpt", "Anon"): _PUBLISHER | _REGSUB,
    ("RegOpt", "Local"): _PUBLISHER | _REGSUB,
    ("RegOpt", "DirectReq"): _PUBLISHER,
    ("PubOpt", "NoReg"): frozenset({"Publish"}),
    ("PubOpt", "RetainPub"): frozenset({"Publish"}),
    ("PubOpt", "IsRetainedPub"): frozenset({"Publish"}),
    ("PubOpt", "OtherSubsOnly"): frozenset({"Publish"}),
    ("RegOpt", "NewPubsOnly"): _REGSUB,
    ("RegOpt", "PubOnReqOnly"): _REGSUB,
    ("RegOpt", "InclStreamName"): _REGSUB,
    ("RegOpt", "InformIfRet"): _REGSUB,
}


def support_faults(facts: Facts, source: Meaning | None, actual: Meaning) -> list[str]:
    """How a written header breaks the option support table; `source` is the header before; None: it was a packet."""
    words = _not_in_mqrfh2(actual) if actual.version == 2 else []
    words += _out_of_place(source, actual)
    words += _stream(facts, actual)
    if source is None:
        words += _identity(facts, actual)
    else:
        words += _descriptor(facts)
    if facts.conversion == "header_to_header" and "Local" in actual.options("PubOpt") | actual.options("RegOpt"):
        words.append("note 5: Local was delivered, which is between the publisher and its broker")
    return words


def answer_faults(answer: BrokerResponse) -> list[str]:
    """How a written answer breaks note 6."""
    if answer.completion in _COMPLETIONS:
        return []
    return [f"note 6: completion {answer.completion!r} is none"]


def _not_in_mqrfh2(actual: Meaning) -> list[str]:
    words = [
        f"note {_NOTE_OF_TOKEN[token]}: {token} is not in MQRFH2"
        for name, token in actual.fields
        if name in OPTION_ELEMENTS and token in _NOTE_OF_TOKEN
    ]
    if actual.command in ("RegPub", "DeregPub"):
        words.append(f"note 1: {actual.command} is not in MQRFH2")
    return words + [
        f"note 3: {name} is not in MQRFH2, where a stream is a prefix of the topic"
        for name, _ in actual.unmapped
        if name in _STREAM_NAMES
    ]


def _out_of_place(source: Meaning | None, actual: Meaning) -> list[str]:
    """Options under a command that does not support them. An option of the source is the sender's fault."""
    before = frozenset(source.fields) if source is not None else frozenset[tuple[str, str]]()
    return [
        f"{token} of {name} does not go with {actual.command}"
        for name, token in actual.fields
        if (name, token) not in before and actual.command not in _SUPPORTED.get((name, token), {actual.command})
    ]


def _stream(facts: Facts, actual: Meaning) -> list[str]:
    prefix = prefix_of(facts) if facts.conversion == "packet_to_header" and facts.destination else ""
    if not prefix or actual.version == 1:
        return []  # in MQRFH a topic may be a pattern, whose prefix is escaped: re-performance asks for it
    return [
        f"note 3: topic {topic!r} has not the prefix of stream {facts.stream}"
        for topic in actual.values("Topic")
        if not topic.startswith(prefix)
    ]


def _identity(facts: Facts, actual: Meaning) -> list[str]:
    if "CorrelAsId" not in actual.options("RegOpt") or facts.correlation_id not in ("", _NO_CORREL_ID):
        return []
    return ["note 4: CorrelAsId is set, and the message has no CorrelId"]


def _descriptor(facts: Facts) -> list[str]:
    before, after = facts.input_described, facts.output_described
    if (before.coded_char_set_id, before.encoding) == (after.coded_char_set_id, after.encoding):
        return []
    return ["note 2: CodedCharSetId or Encoding of the MQMD was changed"]


def publish_faults(facts: Facts, actual: Meaning) -> list[str]:
    """Faults of RETAIN in a command that was made from a PUBLISH or a will."""
    is_retained = "RetainPub" in actual.options("PubOpt")
    read = read_will(facts.input, facts.protocol_level) if facts.packet_type == CONNECT else None
    retain = read_publish(facts.input, facts.protocol_level).retain if read is None else read[1]
    if actual.command != "Publish":
        return ["RetainPub in a command that publishes nothing"] if is_retained else []
    if is_retained and not retain:
        return ["RetainPub, though the packet has no RETAIN"]
    if is_retained and facts.payload_bytes == 0:
        return ["RetainPub, though an empty payload deletes what is retained"]
    if retain and facts.payload_bytes > 0 and not is_retained:
        return ["the packet has RETAIN and a payload, the command has no RetainPub"]
    return []


def copy_faults(facts: Facts, actual: Meaning) -> list[str]:
    """Faults of RETAIN in a broker's copy for a subscriber."""
    if "IsRetainedPub" in actual.options("PubOpt") and not facts.is_retained:
        return ["IsRetainedPub in a copy of what was just published"]
    return []


def delivery_faults(facts: Facts, source: Meaning) -> list[str]:
    """Faults of RETAIN in a PUBLISH for a client."""
    packet = read_publish(facts.output, facts.protocol_level)
    is_retained, retain = "IsRetainedPub" in source.options("PubOpt"), packet.retain
    if is_retained == retain or (retain and facts.protocol_level >= FIRST_LEVEL_WITH_PROPERTIES):
        return []
    return [f"RETAIN is {int(retain)}, IsRetainedPub says {int(is_retained)}"]


_OF_PUBLISH = ("Publish", "DeletePub")


def broken_rules(facts: Facts) -> tuple[Finding, ...]:
    """The findings against one conversion."""
    try:
        if facts.conversion == ConversionKind.PACKET_TO_HEADER:
            return tuple(_of_packet(facts))
        if facts.conversion == ConversionKind.HEADER_TO_PACKET:
            source = read_meaning(facts.input, facts.input_described)
            found = findings(Rule.REPORT, delivery_report_faults(facts, source))
            return (*found, *findings(Rule.RETAIN, delivery_faults(facts, source)))
        if facts.conversion in (ConversionKind.HEADER_TO_HEADER, ConversionKind.SERVICE):
            return tuple(_of_header(facts))
    except (UnreadableBytes, UnknownCodePage):
        pass
    return ()


def _of_packet(facts: Facts) -> list[Finding]:
    actual = read_meaning(facts.output, facts.output_described)
    found = findings(Rule.SUPPORT, support_faults(facts, None, actual))
    if facts.command in _OF_PUBLISH:
        found += findings(Rule.REPORT, publish_report_faults(facts, actual) if facts.command == "Publish" else ())
        found += findings(Rule.RETAIN, publish_faults(facts, actual))
    return found


def _of_header(facts: Facts) -> list[Finding]:
    is_copy = facts.conversion == ConversionKind.HEADER_TO_HEADER
    made, body = read_chain(facts.output, facts.output_described)
    answer = None if is_copy else broker_response_of(made)
    if answer is not None:
        return findings(Rule.SUPPORT, answer_faults(answer))
    reported = frozenset(name for name, _ in facts.dropped_fields)
    if facts.input == facts.output:  # the message was passed on unchanged: its faults are its sender's
        return findings(
            Rule.REPORT, (f"the report names {name} as left out, and nothing was left out" for name in sorted(reported))
        )
    actual, source = meaning_of(made, body), read_meaning(facts.input, facts.input_described)
    is_extended = facts.mode == "extended"
    found = findings(Rule.FIELDS, field_faults(source, actual, is_copy=is_copy, is_extended=is_extended))
    found += findings(Rule.SUPPORT, support_faults(facts, source, actual))
    found += findings(Rule.REPORT, unreported(source, actual, reported))
    return found + (findings(Rule.RETAIN, copy_faults(facts, actual)) if is_copy else [])
