"""The option support table of "Message formats" (aq19780_) and its notes 1 to 7, held against a written header.

note 1   RegPub, DeregPub, DirectReq and NoReg are there for migration: MQRFH2 does not have them
note 2   the fields of the MQMD are as WebSphere MQ Publish/Subscribe has them: a conversion leaves them alone
note 3   a stream is a prefix of the topic: no stream name in MQRFH2, and no InclStreamName
note 4   CorrelAsId makes the CorrelId a part of the client's identity: there must be one
note 5   Local means the publisher's own broker; a copy that is delivered does not have it
note 6   answers: a completion code is one that the format has
note 7   Anon is ignored: MQRFH2 does not have it
"""

from typing import Final

from spark_audit.reperform.answer import Answer
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.table import OPTION_ELEMENTS
from spark_audit.reperform.target import prefix_of

_NOTE_OF_TOKEN: Final = {"DirectReq": 1, "NoReg": 1, "InclStreamName": 3, "Anon": 7}
_STREAM_NAMES: Final = frozenset({"StreamName", "MQPSStreamName"})
_NO_CORREL_ID: Final = "0" * 48
_COMPLETIONS: Final = frozenset({"ok", "warning", "error"})
_ANY: Final = frozenset({"Publish", "RegSub", "DeregSub", "ReqUpdate", "RegPub", "DeregPub"})
_PUBLISHER: Final = frozenset({"Publish", "RegPub"})
_REGSUB: Final = frozenset({"RegSub"})
#: The rows of the table: field and option, and the commands that it stands under.
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
    """How a header that was written breaks the table; `source` is the header before, None for a packet."""
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


def answer_faults(answer: Answer) -> list[str]:
    """Note 6, for an answer that was written."""
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
    """Options under a command that the table does not list them for; what was there before is the sender's fault."""
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
