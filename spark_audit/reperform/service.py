"""The conversion service gave a message the other header: by the nine rows of "Message formats", and nothing else.

A message that already has such a header passes unchanged. Topics of Publish are names: escaped in MQRFH, plain in
MQRFH2. Topics of the other commands are patterns. `a/#` is `a` and `a/*` in the character scheme of MQRFH; in the other
direction everything from a wildcard's level on becomes `#`. The extended mode also copies SubName, SubIdentity and
SubUserData, and moves Local of a Publish between RegOpt and PubOpt. Without it, options that need one of these are left
out too. Source: "Message formats" (file aq19780_); IBM MQ, "Wildcard schemes".
"""

from typing import Final

from spark_audit.reperform.broker_response import PSCR, broker_response_of, response_differences
from spark_audit.reperform.comparison import Comparison, Status, UnreadableBytes, compared, first_difference
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.header import Header, Surroundings, read_chain, write_mqrfh, write_mqrfh2
from spark_audit.reperform.meaning import PSC, Meaning, meaning_of
from spark_audit.reperform.refusal import refusals
from spark_audit.reperform.table import NEEDING, ONLY_IN_MQRFH, OPTION_ELEMENTS, TO_NAME
from spark_audit.reperform.topics import character_patterns, escaped, topic_filter_of

VERSIONS: Final = {"mqrfh": 1, "mqrfh2": 2}
EXTENDED_NAMES: Final = frozenset({"SubName", "SubIdentity", "SubUserData"})
_PREFIX: Final = "MQPS"
_LOCAL_FIELD: Final = {1: "RegOpt", 2: "PubOpt"}

Fields = tuple[tuple[str, str], ...]


def reperform_service(facts: Facts) -> Comparison:
    """Judges a message that the conversion service moved."""
    headers, body = read_chain(facts.input, facts.input_described)
    version = VERSIONS.get(facts.target, 1 if facts.output_format == "MQHRF" else 2)
    if has_header_of(version, headers):
        return _unchanged(facts)
    answer = broker_response_of(headers)
    source = meaning_of(headers, body) if answer is None else None
    try:
        made, made_body = read_chain(facts.output, facts.output_described)
        if answer is not None:
            reported = " ".join(name for name, _ in facts.dropped_fields)
            words = response_differences(answer, broker_response_of(made), reported) + _body_differences(
                body, made_body
            )
            return _without_bytes(words)
        actual = meaning_of(made, made_body)
    except UnreadableBytes as error:
        return Comparison(status=Status.DIFFERENCE, detail=f"the output cannot be read: {error}", same_bytes=False)
    assert source is not None  # a message without an answer has a command
    return _judged(facts, source, actual, version, is_alone=len(headers) == 1)


def has_header_of(version: int, headers: tuple[Header, ...]) -> bool:
    """Whether a chain needs no conversion: it has an MQRFH; it has a psc or pscr, or an MQRFH2 and no MQRFH."""
    if version == 1:
        return any(header.version == 1 for header in headers)
    if any(folder.name in (PSC, PSCR) for header in headers for folder in header.folders):
        return True
    versions = {header.version for header in headers}
    return 2 in versions and 1 not in versions


def _unchanged(facts: Facts) -> Comparison:
    is_same = facts.input == facts.output and facts.input_described == facts.output_described
    differences = [] if is_same else ["a message in the wanted format was changed"]
    return compared(facts.input, facts.output, differences)


def _without_bytes(differences: list[str]) -> Comparison:
    """The comparison of an answer, by its meaning alone, because this reading writes no answers."""
    status = Status.DIFFERENCE if differences else Status.MATCH
    return Comparison(status=status, detail="; ".join(differences), same_bytes=False)


def _judged(facts: Facts, source: Meaning, actual: Meaning, version: int, *, is_alone: bool) -> Comparison:
    is_extended = facts.mode == "extended"
    expected = _expected_fields(source, version, is_extended)
    extended = _extended_fields(source) if is_extended else ()
    words = [] if actual.version == version else [f"the output is no {facts.target} header"]
    refused = refusals(source, version, is_extended=is_extended)
    words += [f"{source.command} was converted{refusal.how}" for refusal in refused]
    words += _field_differences(expected, actual.fields)
    words += _rest_differences(source, actual, extended, facts)
    words += _unreported_options(source, version, is_extended, facts)
    words += _body_differences(source.body, actual.body)
    predicted = _written(expected, extended, version, facts, actual.body)
    if not is_alone and not words:  # this reading writes only this header, not those around it
        offset = first_difference(predicted, facts.output)
        return Comparison(status=Status.MATCH, detail="the layout differs", same_bytes=False, offset=offset)
    return compared(predicted, facts.output, words)


def _expected_fields(source: Meaning, version: int, is_extended: bool) -> Fields:
    moves_local = is_extended and source.command == "Publish"
    fields: list[tuple[str, str]] = []
    made_of: dict[str, str] = {}  # a topic that stands twice does so again; a pattern of two topics stands once
    for name, value in source.fields:
        if name == "Topic" and source.command != "Publish":
            patterns = (topic_filter_of(value),) if version == 2 else _character_patterns(value)
            fields += [(name, pattern) for pattern in patterns if made_of.setdefault(pattern, value) == value]
        elif name in OPTION_ELEMENTS and moves_local and value == "Local":
            fields.append((_LOCAL_FIELD[version], value))
        elif name not in OPTION_ELEMENTS or value not in left_out_options(version, is_extended):
            fields.append((name, value))
    return tuple(fields)


def left_out_options(version: int, is_extended: bool) -> frozenset[str]:
    """Options that the new header must not have."""
    lacking = ONLY_IN_MQRFH if version == 2 else frozenset()
    return lacking if is_extended else lacking | frozenset(NEEDING)


def _character_patterns(topic_filter: str) -> tuple[str, ...]:
    if "#" in topic_filter.split("/")[:-1]:
        raise UnreadableBytes(
            f"pattern {topic_filter!r} has # before its last level, which this reading does not judge"
        )
    return character_patterns(topic_filter)


def _extended_fields(source: Meaning) -> Fields:
    named = [(name.removeprefix(_PREFIX), value) for name, value in source.unmapped]
    return tuple(field for field in named if field[0] in EXTENDED_NAMES)


def _field_differences(expected: Fields, actual: Fields) -> list[str]:
    words = [f"{name} {value!r} was lost" for name, value in expected if (name, value) not in actual]
    words += [f"{name} {value!r} was added" for name, value in actual if (name, value) not in expected]
    if actual[0][0] != "Command":
        words.append("Command does not come first")
    plain = [
        [field for field in fields if field[0] not in (*OPTION_ELEMENTS, "Command")] for fields in (expected, actual)
    ]
    if not words and plain[0] != plain[1]:
        words.append("the fields are in another order, or doubled")
    return words


def _rest_differences(source: Meaning, actual: Meaning, extended: Fields, facts: Facts) -> list[str]:
    """Differences of folders and of names without a row. Each must be dropped and reported, or kept unchanged."""
    reported = " ".join(name for name, _ in facts.dropped_fields)
    made = [(name.removeprefix(_PREFIX), value) for name, value in actual.unmapped]
    words = [f"{name} {value!r} was lost" for name, value in extended if (name, value) not in made]
    words += [f"{name} {value!r} was added" for name, value in made if (name, value) not in extended]
    kept = {name for name, _ in extended}
    words += [
        f"{name} was dropped without being reported"
        for name, _ in source.unmapped
        if name.removeprefix(_PREFIX) not in kept and name not in reported
    ]
    words += [
        f"folder {folder.name} was dropped without being reported"
        for folder in source.folders
        if folder not in actual.folders and folder.name not in reported
    ]
    words += [f"folder {folder.name} was added" for folder in actual.folders if folder not in source.folders]
    return words


def _unreported_options(source: Meaning, version: int, is_extended: bool, facts: Facts) -> list[str]:
    """Options that were left out but not reported. The report uses the input's name of a field."""
    reported = {name for name, _ in facts.dropped_fields}
    left_out = left_out_options(version, is_extended)
    return [
        f"option {token} of {name} was dropped without being reported"
        for name, token in source.fields
        if name in OPTION_ELEMENTS and token in left_out and not reported & {name, TO_NAME[name]}
    ]


def _body_differences(before: Surroundings, after: Surroundings) -> list[str]:
    return [] if before == after else [f"the body is described as {after}, not as {before}"]


def _written(expected: Fields, extended: Fields, version: int, facts: Facts, body: Surroundings) -> bytes:
    """The bytes of the new header, if it stands alone."""
    if version == 2:
        return write_mqrfh2(((PSC, (*expected, *extended)),), facts.output_described, body)
    is_publish = ("Command", "Publish") in expected
    first = sorted(expected, key=lambda field: field[0] != "Command")
    pairs = tuple((TO_NAME[name], escaped(value) if is_publish and name == "Topic" else value) for name, value in first)
    own = tuple((f"{_PREFIX}{name}", value) for name, value in extended)
    return write_mqrfh((*pairs, *own), facts.output_described, body)
