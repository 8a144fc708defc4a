"""A header became another header: the copy for a subscriber, by the nine rows of "Message formats" (aq19780_).

The broker's changes of a publication do not depend on the formats. NoReg is gone. IsRetainedPub stands only in copies
of a retained publication. The publisher's RegOpt and Local are left out. QName and QMgrName stay only with DirectReq;
then they may also be added from the publisher's MQMD, before the topics. A stream name may be added or removed in
MQRFH, SubPoint in MQRFH2, SubUserData in both. All other fields stay. Only the nine rows pass into the other format,
and every other name is reported with a reason. Source: Message formats (aq19780_); WebSphere MQ V6 Publish/Subscribe
User's Guide, "Publish".
"""

from typing import Final

from spark_audit.reperform.comparison import Comparison, Status, UnreadableBytes, compared
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.header import write_mqrfh, write_mqrfh2
from spark_audit.reperform.meaning import PSC, Meaning, read_meaning
from spark_audit.reperform.table import ONLY_IN_MQRFH, OPTION_ELEMENTS, TO_NAME
from spark_audit.reperform.topics import escaped

#: Options of PubOpt that are not about the publication itself; see the text of this module.
_NOT_PASSED_ON: Final = frozenset({"NoReg", "IsRetainedPub", "Local"})
_RETURN_ADDRESS: Final = frozenset({"QName", "QMgrName"})
_ADDED_BY_BROKER: Final = frozenset({"MQPSStreamName", "SubPoint", "MQPSSubUserData", "SubUserData"})
_IS_RETAINED: Final = ("PubOpt", "IsRetainedPub")

Fields = tuple[tuple[str, str], ...]


def reperform_copy(facts: Facts) -> Comparison:
    """Judges the header of a copy that the broker put on a subscriber's queue."""
    source = read_meaning(facts.input, facts.input_described)
    marked = (_IS_RETAINED,) if facts.is_retained else ()  # depends on InformIfRet, which the record does not have
    may_gain = _RETURN_ADDRESS - {name for name, _ in source.fields} if _is_direct(source) else frozenset()
    return _judged(facts, source, _delivered_fields(source, marked), may_lack=marked, may_gain=may_gain)


def _judged(
    facts: Facts, source: Meaning, expected: Fields, *, may_lack: Fields, may_gain: frozenset[str] = frozenset()
) -> Comparison:
    try:
        actual = read_meaning(facts.output, facts.output_described)
    except UnreadableBytes as error:
        return Comparison(status=Status.DIFFERENCE, detail=f"the output cannot be read: {error}", same_bytes=False)
    expected = _with_gained(expected, actual, may_gain)
    changes_format = source.version != actual.version
    if changes_format and actual.version == 2:
        expected = tuple(field for field in expected if field[1] not in ONLY_IN_MQRFH or field[0] == "Topic")
    differences = _field_differences(expected, actual.fields, may_lack)
    differences += _rest_differences(source, actual, facts)
    if actual.body != source.body:
        differences.append(f"the body is described as {actual.body}, not as {source.body}")
    unchanged = not changes_format and expected == source.fields
    predicted = facts.input if unchanged else _written(expected, source, actual, facts)
    return compared(predicted, facts.output, differences)


def _is_direct(source: Meaning) -> bool:
    return "DirectReq" in source.options("RegOpt")


def _with_gained(expected: Fields, actual: Meaning, may_gain: frozenset[str]) -> Fields:
    """The expected fields with those that were rightly added, each once, before the topics."""
    gained = {name: value for name, value in actual.fields if name in may_gain}
    if not gained:
        return expected
    topic = next((place for place, (name, _) in enumerate(expected) if name == "Topic"), len(expected))
    return (*expected[:topic], *gained.items(), *expected[topic:])


def _delivered_fields(source: Meaning, marked: Fields) -> Fields:
    is_direct = _is_direct(source)
    kept = [
        (name, value)
        for name, value in source.fields
        if name != "RegOpt"
        and not (name == "PubOpt" and value in _NOT_PASSED_ON)
        and (is_direct or name not in _RETURN_ADDRESS)
    ]
    after = max(place for place, (name, _) in enumerate(kept) if name in ("Command", "PubOpt"))
    return (*kept[: after + 1], *marked, *kept[after + 1 :])


def _field_differences(expected: Fields, actual: Fields, may_lack: Fields) -> list[str]:
    missing = [field for field in expected if field not in actual and field not in may_lack]
    surplus = [field for field in actual if field not in expected]
    words = [f"{name} {value!r} was lost" for name, value in missing]
    words += [f"{name} {value!r} was added" for name, value in surplus]
    if actual[0][0] != "Command":
        words.append("Command does not come first")
    in_order = [field for field in actual if field[0] not in OPTION_ELEMENTS]
    if not words and in_order != [field for field in expected if field[0] not in OPTION_ELEMENTS]:
        words.append("the fields are in another order, or doubled")
    return words


def _rest_differences(source: Meaning, actual: Meaning, facts: Facts) -> list[str]:
    """Differences of names without a row, and of other folders.

    The same format keeps them; the other drops and reports them.
    """
    reported = " ".join(name for name, _ in facts.dropped_fields)
    changes_format = source.version != actual.version
    words: list[str] = []
    for name, value in source.unmapped:
        if (name, value) in actual.unmapped:
            if changes_format:
                words.append(f"{name} was copied, though the table does not know it")
        elif name not in reported and (changes_format or name not in _ADDED_BY_BROKER):
            words.append(f"{name} was dropped without being reported")
    words += [
        f"{name} {value!r} was added"
        for name, value in actual.unmapped
        if (name, value) not in source.unmapped and name not in _ADDED_BY_BROKER
    ]
    for folder in source.folders:
        if folder not in actual.folders and folder.name not in reported:
            words.append(f"folder {folder.name} was dropped without being reported")
    words += [f"folder {folder.name} was added" for folder in actual.folders if folder not in source.folders]
    return words + _unreported_options(source, facts, changes_format and actual.version == 2)


def _unreported_options(source: Meaning, facts: Facts, loses_options: bool) -> list[str]:
    """Options that MQRFH2 does not have and that were not reported."""
    if not loses_options:
        return []
    reported = " ".join(name for name, _ in facts.dropped_fields)
    return [
        f"option {token} of {name} was dropped without being reported"
        for name, token in source.fields
        if name in OPTION_ELEMENTS
        and token in ONLY_IN_MQRFH
        and not (name in reported or TO_NAME[name] in reported or token in reported)
    ]


def _written(expected: Fields, source: Meaning, actual: Meaning, facts: Facts) -> bytes:
    """The bytes of the new header in front. This reading does not write other headers of the chain."""
    keeps_format = source.version == actual.version
    unmapped, kept = (source.unmapped, source.folders) if keeps_format else ((), ())
    if actual.version == 2:
        return write_mqrfh2(((PSC, (*expected, *unmapped)),), facts.output_described, actual.body, kept=kept)
    escapes = expected[0] == ("Command", "Publish")
    pairs = tuple((TO_NAME[name], escaped(value) if escapes and name == "Topic" else value) for name, value in expected)
    return write_mqrfh((*pairs, *unmapped), facts.output_described, actual.body)
