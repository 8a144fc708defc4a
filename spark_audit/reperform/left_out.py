"""Nothing is left out in silence: each name, option and folder that is not in the new header is in the report.

The report is the record's `dropped_fields`: names as the old header has them, each with a reason. The other way round
too: what the report says was left out must not stand in the new header.
"""

from collections.abc import Iterable
from typing import Final

from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.table import OPTION_ELEMENTS, TO_NAME

_PREFIX: Final = "MQPS"
#: A broker takes the publisher's own away and adds its subscriber's.
_OF_THE_BROKER: Final = frozenset({"StreamName", "SubPoint", "SubUserData"})


def unreported(source: Meaning, actual: Meaning, reported: frozenset[str]) -> list[str]:
    """What was left out without a word, and what is in the report and was not left out."""
    return [*_fields(source, actual, reported), *_folders(source, actual, reported), *_false_reports(actual, reported)]


def _fields(source: Meaning, actual: Meaning, reported: frozenset[str]) -> Iterable[str]:
    """A mapped name counts as kept when any of its values is: patterns are translated, sums of options are split.

    So does an option whose tokens stand under another option's name.
    """
    kept = {name for name, _ in actual.fields} | {_plain(name) for name, _ in actual.unmapped}
    tokens = frozenset[str]().union(*(actual.options(name) for name in OPTION_ELEMENTS))
    kept |= {name for name in OPTION_ELEMENTS if source.options(name) <= tokens}
    own_names = dict.fromkeys(_own_name(source, name) for name, _ in source.fields)
    names = [*own_names, *dict.fromkeys(name for name, _ in source.unmapped)]
    for name in names:
        if _element(name) not in kept and name not in reported:
            yield f"{name} was left out without a word"


def _folders(source: Meaning, actual: Meaning, reported: frozenset[str]) -> Iterable[str]:
    kept = {folder.name for folder in actual.folders}
    for folder in source.folders:
        if folder.name not in kept and folder.name not in reported:
            yield f"folder {folder.name} was left out without a word"


def _false_reports(actual: Meaning, reported: frozenset[str]) -> Iterable[str]:
    """Names of options may stand on both sides: some of their tokens are left out."""
    kept = {_plain(name) for name, _ in actual.unmapped} - _OF_THE_BROKER
    kept |= {name for name, _ in actual.fields if name not in OPTION_ELEMENTS}
    kept |= {folder.name for folder in actual.folders}
    for name in sorted(reported):
        if _element(name) in kept or name in kept:
            yield f"{name} was copied, though the report says that it was left out"


def _own_name(source: Meaning, element: str) -> str:
    return TO_NAME[element] if source.version == 1 else element


def _element(name: str) -> str:
    """The psc element of a mapped name; of another name the name without MQPS."""
    return next((element for element, mapped in TO_NAME.items() if mapped == name), _plain(name))


def _plain(name: str) -> str:
    return name.removeprefix(_PREFIX)
