"""Refused topic filters: each has a SUBACK that says so, and a record `topics_refused` that tells or counts it.

The first refusal of a client by a rule has a record with its topic, a tenth of a second later or sooner. The gateway
counts further ones for five minutes. It tells at most so many first ones in that time, and counts clients with long
names together; then, and where names are keyed, nothing is judged. A kill loses what was not told.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from spark_audit.custody.findings import Custody, Finding
from spark_audit.personal import NAME_PREFIX

Record = Mapping[str, Any]
_SECOND_US: Final = 1_000_000
#: How long a first refusal speaks for further ones, with a margin, and how late it may come.
_SPEAKS_US: Final = 310 * _SECOND_US
_LATEST_US: Final = _SECOND_US
#: Commits that come at least between a refusal and the judgement on its record.
_LATER_COMMITS: Final = 5
#: First refusals that the gateway tells in five minutes.
_MOST_FIRST: Final = 64
#: Clients with longer names or users are counted together; of a longer topic its beginning is told.
_LONGEST_NAME: Final = 512
_LONGEST_TOPIC: Final = 1_000
#: Refused filters that are remembered until their record comes.
_MOST_WAITING: Final = 10_000


class Refused(NamedTuple):
    """A filter that SUBACK refused; `code` is what the client was told, None at MQTT 3.1."""

    client: str
    topic_filter: str
    rule: str
    code: int | None
    sequence: int
    at_us: int


class Refusals:
    """The refused filters of a run, beside their records."""

    def __init__(self) -> None:
        self.clear()

    def start(self) -> None:
        """The gateway starts: it has told nothing yet."""
        self.clear()
        self._is_whole = True

    def clear(self) -> None:
        """Forgets everything: records are missing, or the clock jumped. First refusals may have been told before."""
        self._is_whole = False
        #: Refused filters by client and filter, with rule and code.
        self._told: dict[tuple[str, str], dict[tuple[str, int | None], None]] = {}
        #: Those whose record may still come, with their commit.
        self._waiting: deque[tuple[Refused, int]] = deque()
        #: When the last record came, by client and rule; and of clients that are counted together.
        self._counted: dict[tuple[str, str], int] = {}
        self._others_us = 0
        self._firsts: deque[int] = deque()
        self._commit = self._now_us = 0

    def begin(self, commit: int, at_us: int) -> None:
        """A commit begins."""
        self._commit, self._now_us = commit, at_us

    def add(self, refused: Refused, *, is_due: bool) -> None:
        """SUBACK refused a filter. `is_due`: its record must come."""
        if refused.client.startswith(NAME_PREFIX):
            return
        key = refused.client, refused.topic_filter[:_LONGEST_TOPIC]
        told = self._told.pop(key, {})
        self._told[key] = told | {(refused.rule, refused.code): None}
        if len(self._told) > _MOST_WAITING:
            del self._told[next(iter(self._told))]
        if is_due and len(refused.client) <= _LONGEST_NAME:
            self._waiting.append((refused, self._commit))

    def is_told(self, record: Record, rule: str | None, code: int | None) -> bool:
        """Takes a record of a client's refused filters. Returns False if no SUBACK refused the filter that it names."""
        topic = record["topic"]
        if topic is None or topic.startswith(NAME_PREFIX) or record["client"].startswith(NAME_PREFIX):
            return True
        return (rule or "", code) in self._told.get((record["client"], topic), {})

    def count(self, record: Record, rule: str | None) -> None:
        """A record of refused topics."""
        at_us = record["at_us"] or 0
        if record["topic"] is not None:
            self._firsts.append(at_us)
        if record["client"] is None:
            self._others_us = at_us
        elif record["event"] == "subscribe":
            self._counted[record["client"], rule or ""] = at_us

    def judged(self) -> Iterator[Finding]:
        """The refused filters that no record tells or counts, when a commit is over."""
        now_us = self._now_us
        while self._firsts and self._firsts[0] < now_us - _SPEAKS_US:
            self._firsts.popleft()
        while self._waiting and self._is_late(*self._waiting[0]):
            refused, _ = self._waiting.popleft()
            since_us = refused.at_us - _SPEAKS_US
            counted_us = self._counted.get((refused.client, refused.rule), -1)
            is_told = max(counted_us, self._others_us or -1) >= since_us or len(self._firsts) >= _MOST_FIRST
            if self._is_whole and not is_told:
                detail = f"filter {refused.topic_filter} was refused by {refused.rule}, and no record counts it"
                yield Finding(Custody.CODES, refused.sequence, f"client {refused.client}", detail)

    def _is_late(self, refused: Refused, commit: int) -> bool:
        is_late = self._now_us > refused.at_us + _LATEST_US and self._commit >= commit + _LATER_COMMITS
        return is_late or len(self._waiting) > _MOST_WAITING
