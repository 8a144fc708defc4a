"""The nine rows of "Message formats" (aq19780_), held against a header that became one of the other format.

Asked is what the table says, and no more: each value stands under the other name of its row, and no name passes that
has no row. What a broker or the service leaves out or adds on purpose is known from the command, not from the report.
"""

from typing import Final

from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.table import NEEDING, ONLY_IN_MQRFH, OPTION_ELEMENTS, TO_NAME

#: Rows whose values no one changes on the way; topics of other commands than Publish are patterns, and translated.
_LITERAL: Final = ("Command", "PubTime", "SeqNum")
_ADDRESS: Final = ("QName", "QMgrName")
_ADDED_BY_BROKER: Final = frozenset({"StreamName", "SubPoint", "SubUserData"})
_EXTENDED: Final = frozenset({"SubName", "SubIdentity", "SubUserData"})
#: Options that concern the publisher and the broker, and not who receives the copy.
_NOT_DELIVERED: Final = frozenset({"NoReg", "IsRetainedPub", "Local"})
#: From RegOpt of a Publish to PubOpt, and back.
_MOVED_IN_EXTENDED: Final = frozenset({"Local"})
_PREFIX: Final = "MQPS"


def field_faults(source: Meaning, actual: Meaning, *, is_copy: bool, is_extended: bool) -> list[str]:
    """How a header of the other format breaks the table; `is_copy` is a broker's, else it is the service's."""
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
        compared += [name for name in _ADDRESS if source.values(name)]  # else the broker adds the publisher's
    return [
        f"{TO_NAME[name]}, {name}: {list(source.values(name))} became {list(actual.values(name))}"
        for name in compared
        if source.values(name) != actual.values(name)
    ]


def _changed_options(source: Meaning, actual: Meaning, *, is_copy: bool, is_extended: bool) -> list[str]:
    """Option tokens that both formats have, under the same row before and after."""
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
    """Names that are not in the table and stand in the new header, or stand there in the other format's spelling."""
    allowed = _ADDED_BY_BROKER if is_copy else (_EXTENDED if is_extended else frozenset())
    prefix = _PREFIX if actual.version == 1 else ""
    return [
        f"{name} has no row in the table and was written"
        for name, _ in actual.unmapped
        if name not in {f"{prefix}{each}" for each in allowed}
    ]
