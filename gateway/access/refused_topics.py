"""Refused topics, counted for the audit trail: who was refused a PUBLISH, a SUBSCRIBE or a will, and by which rule.

The first refusal of a client by a rule is told whole, with its topic. Further ones are counted for five minutes
(tally.py), by client, rule and the code that the client was told. Limit.REFUSED_TOPICS bounds both kinds of records.
"""

from enum import StrEnum
from typing import Any, Final, NamedTuple

from gateway.access.tally import TallyWithFirsts, code_told
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.limits import Limit
from mq_adapters.embedded.unit_of_work import Note

ROW_KEY: Final = b"refused-topics"
#: Clients and rules that are counted one by one, at 2.5 KB each where their names are long.
_KEPT: Final = 1_024
#: A client with a longer name or user is counted with all others; of a longer topic its beginning is told.
_LONGEST_NAME_CHARACTERS: Final = 512
_LONGEST_TOPIC_CHARACTERS: Final = 1_000


class Asked(StrEnum):
    """What a client asked for."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    WILL = "will"


class _Key(NamedTuple):
    asked: Asked
    client: str
    user: str
    rule: str
    #: What the client was told; 0: nothing.
    code: int


class RefusedTopics(TallyWithFirsts[_Key]):
    """The refusals that the trail does not have yet."""

    def __init__(self) -> None:
        records = int(Limit.REFUSED_TOPICS.value.default)
        super().__init__(row_key=ROW_KEY, words="refused topics", records=records, kept=_KEPT)

    def count(
        self, asked: Asked, topic: str, *, client: str, user: str | None, rule: str, now_us: int, code: int = 0
    ) -> None:
        """A client is refused a topic, or a topic filter; `rule` says by what, and the client is told `code`."""
        key = _Key(asked, client, user or "", rule, code)
        if max(len(key.client), len(key.user)) > _LONGEST_NAME_CHARACTERS:
            key = self._merged(key)
        self._add_or_tell(key, now_us, lambda: self._note(key, 1, now_us, topic[:_LONGEST_TOPIC_CHARACTERS]))

    def _packed(self, key: _Key) -> list[object]:
        return [str(key.asked), key.client, key.user, key.rule, key.code]

    def _unpacked(self, parts: list[Any]) -> _Key:
        asked, client, user, rule, *code = parts  # version 1 has no code
        return _Key(Asked(asked), client, user, rule, *(code or (0,)))

    def _merged(self, key: _Key) -> _Key:
        return _Key(key.asked, "", "", "", 0)

    def _note(self, key: _Key, number: int, now_us: int, topic: str = "") -> Note:
        since_us = now_us if topic else self._since_us
        who = (key.client, key.user)
        told = code_told(key.code)
        return (NoteKind.TOPICS_REFUSED, now_us, str(key.asked), *who, key.rule, topic, number, since_us, told)
