"""The meaning of a publish/subscribe header chain in either format.

Names are those of the psc folder. Options are single tokens; topics of Publish are plain text, patterns are as written.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.folder import Folder, read_elements
from spark_audit.reperform.header import Header, Surroundings, read_chain
from spark_audit.reperform.table import OPTION_ELEMENTS, TO_ELEMENT, option_tokens
from spark_audit.reperform.topics import unescaped

PSC = "psc"
_PLAIN_TOPICS = frozenset({"Publish"})
#: Headers of one topic are alike, so this many are remembered, up to this many bytes each.
_REMEMBERED: Final = 4_096
_LONGEST_REMEMBERED: Final = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """A command: its mapped fields in their order, with one item for each option token, and the rest.

    `version` is the format (1 MQRFH, 2 MQRFH2); `unmapped` are names without a row in the table; `folders` are the
    other folders of the chain; `body` is the chain's description of the bytes behind it.
    """

    version: int
    fields: tuple[tuple[str, str], ...]
    unmapped: tuple[tuple[str, str], ...]
    folders: tuple[Folder, ...]
    body: Surroundings

    @property
    def command(self) -> str:
        return self.values("Command")[0]

    def values(self, name: str) -> tuple[str, ...]:
        return tuple(value for field, value in self.fields if field == name)

    def options(self, name: str) -> frozenset[str]:
        return frozenset(self.values(name))


def read_meaning(data: bytes, described: Surroundings) -> Meaning:
    """The command in a chain of headers that fills `data`."""
    if len(data) > _LONGEST_REMEMBERED:
        return meaning_of(*read_chain(data, described))
    return _remembered(data, described)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(data: bytes, described: Surroundings) -> Meaning:
    return meaning_of(*read_chain(data, described))


def meaning_of(headers: tuple[Header, ...], body: Surroundings) -> Meaning:
    """The command in a chain: the first MQRFH with MQPSCommand, or the first psc folder."""
    for index, header in enumerate(headers):
        others = headers[:index] + headers[index + 1 :]
        folders = tuple(folder for other in others for folder in other.folders)
        if header.version == 1 and any(name == "MQPSCommand" for name, _ in header.pairs):
            return _of_pairs(header.pairs, folders, body)
        commands = [folder for folder in header.folders if folder.name == PSC]
        if commands:
            rest = tuple(folder for folder in header.folders if folder.name != PSC)
            return _of_elements(read_elements(commands[0]), rest + folders, body)
    raise UnreadableBytes("no MQPSCommand and no psc folder in the chain")


def _of_pairs(pairs: tuple[tuple[str, str], ...], folders: tuple[Folder, ...], body: Surroundings) -> Meaning:
    command = next(value for name, value in pairs if name == "MQPSCommand")
    mapped = [(TO_ELEMENT[name], value) for name, value in pairs if name in TO_ELEMENT]
    if command in _PLAIN_TOPICS:
        mapped = [(name, unescaped(value) if name == "Topic" else value) for name, value in mapped]
    return Meaning(
        version=1,
        fields=_with_tokens(mapped),
        unmapped=tuple(pair for pair in pairs if pair[0] not in TO_ELEMENT),
        folders=folders,
        body=body,
    )


def _of_elements(elements: tuple[tuple[str, str], ...], folders: tuple[Folder, ...], body: Surroundings) -> Meaning:
    names = frozenset(TO_ELEMENT.values())
    if not any(name == "Command" for name, _ in elements):
        raise UnreadableBytes("the psc folder has no Command")
    return Meaning(
        version=2,
        fields=_with_tokens(element for element in elements if element[0] in names),
        unmapped=tuple(element for element in elements if element[0] not in names),
        folders=folders,
        body=body,
    )


def _with_tokens(fields: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    single: list[tuple[str, str]] = []
    for name, value in fields:
        if name not in OPTION_ELEMENTS:
            single.append((name, value))
            continue
        single += [(name, token) for token in option_tokens(name, value) if (name, token) not in single]
    return tuple(single)
