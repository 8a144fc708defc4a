"""The codes that clients were told: CONNACK, SUBACK, UNSUBACK, PUBACK and PUBREC, against what the records know.

    CONNACK     00, with Session Present exactly where the client had a session that went on
    SUBACK      the QoS that was asked for, or the code of the rule that refused the filter; a RegSub that the broker
                refused is no success
    UNSUBACK    from MQTT 5 on: 11 where the session had no such subscription, 00 where it had one
    PUBACK      10 only from MQTT 5 on, and only where no copy was made and no target got the message; PUBREC alike
    refusals    the code of the rule (reason_codes.py)

A run of the gateway tells codes if a session record of it does. Only sessions that began since then are judged, and of
answers about targets, which may come later, only the table of codes. Sources: MQTT 5.0 sections 3.2.2, 3.4.2.1,
3.5.2.1, 3.9.3 and 3.11.3; MQTT 3.1.1 sections 3.2.2 and 3.9.3.
"""

import json
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spark_audit.custody import reason_codes
from spark_audit.custody.findings import Custody, Finding, message, session
from spark_audit.custody.refusals import Refusals, Refused
from spark_audit.custody.sessions import Sessions
from spark_audit.custody.topic_match import is_shared
from spark_audit.personal import NAME_PREFIX
from spark_audit.reperform.mqtt import FIRST_LEVEL_WITH_PROPERTIES, PUBLISH

Record = Mapping[str, Any]
#: Client and session as a record tells them: one of an earlier version may lack them.
_Who = tuple[Any, Any]
_PUBACK, _PUBREC, _SUBACK, _UNSUBACK = 4, 5, 9, 11
#: Later than any time of a record.
_LATE: Final = 2**63
_NAMES: Final = {_PUBACK: "PUBACK", _PUBREC: "PUBREC", 7: "PUBCOMP"}
_FIRST_LEVEL_WITH_SESSION_PRESENT: Final = 4
#: One code of a record, in hex digits.
_CODE_DIGITS: Final = 2
#: How long after the end of a connection its last PUBACKs may be noted: a hundred times as long as usual. What a later
#: commit notes first may have been done before the end.
_NOTED_LATE_US: Final = 10_000_000
#: Refused RegSubs that are remembered until their SUBACK.
_MOST_REFUSED: Final = 10_000


@dataclass(slots=True)
class Subscribed:
    """The filters of a session since it began, and its RegSubs without SUBACK: packet identifier, filter, MsgId, QoS.

    `unsure`: filters that were given up before the SUBACK of another SUBSCRIBE for them, until they are given up again.
    `is_unread`: a RegSub could not be read. `has_targets`: a RegSub went to a target, which may answer late.
    """

    since_us: int
    filters: dict[str, None] = field(default_factory=dict)
    asked: dict[tuple[int | None, str], tuple[str, int]] = field(default_factory=dict)
    unsure: dict[str, None] = field(default_factory=dict)
    is_unread: bool = False
    has_targets: bool = False


class Answers:
    """Judges the codes of a trail."""

    def __init__(self, sessions: Sessions, refusals: Refusals) -> None:
        self._sessions = sessions
        self._refusals = refusals
        self.clear()

    def clear(self) -> None:
        """Forgets everything, because records are missing."""
        #: Whether this run of the gateway tells codes, and since when it runs.
        self._tells = False
        self._started_us = 0
        #: Sessions that began with a CONNACK that is told.
        self._of: dict[_Who, Subscribed] = {}
        #: Sessions that lost their connection in this commit, though they outlast it.
        self._taken_over: dict[str, int] = {}
        #: RegSubs of this commit whose SUBACK is due in it.
        self._due: list[tuple[Record, str]] = []
        #: RegSubs that the broker refused, until their SUBACK, with the reason.
        self._refused: dict[str, int] = {}
        #: When clients last connected, and sessions that ever spoke MQTT 5.
        self._connected_us: dict[str, int] = {}
        self._spoke_5: set[_Who] = set()
        #: Whether the broker may answer a RegSub in a later commit, because it sends many retained publications first.
        self.is_slow = False
        #: Exchanges of this commit's publications, and those that somebody got a copy of, ascending, until PUBACK.
        self._exchange_of: dict[str, tuple[_Who, int]] = {}
        self._with_copies: dict[_Who, list[int]] = {}
        #: Connections that ended, when, and their last such exchange: the note of a PUBACK may come a moment later.
        self._parted: deque[tuple[int, _Who, int]] = deque()
        #: Exchanges of which PUBREC said that nobody subscribes.
        self._to_nobody: dict[_Who, list[int]] = {}

    def begin(self, at_us: int) -> None:
        """A commit begins, whose first record is of this time."""
        while self._parted and abs(at_us - self._parted[0][0]) > _NOTED_LATE_US:
            _, who, last = self._parted.popleft()
            self._take(self._with_copies, who, 0, last)
        self._exchange_of, self._taken_over, self._due = {}, {}, []

    def start(self, record: Record) -> None:
        """The gateway starts. Its sessions stay."""
        self._tells, self.is_slow, self._started_us = False, False, record["at_us"] or 0
        self._with_copies, self._to_nobody, self._refused = {}, {}, {}
        self._parted.clear()

    def judged(self) -> Iterator[Finding]:
        """The SUBACKs that are missing when a commit is over."""
        for record, topic_filter in self._due:
            subscribed = self._of.get(_who(record))
            is_due = subscribed is not None and (record["packet_identifier"], topic_filter) in subscribed.asked
            if is_due and not self.is_slow:
                yield _found(record, f"filter {topic_filter} was registered, and no record tells its SUBACK")
        self._due = []

    def _level(self, who: _Who) -> int | None:
        known = self._sessions.get(who[0])
        return known.level if known is not None and known.epoch == who[1] else None

    # -- CONNACK -------------------------------------------------------------------------------------------------------

    def connect(self, record: Record) -> Iterator[Finding]:
        """A session changed."""
        who, event = _who(record), record["event"]
        if exchanges := self._with_copies.get(who):
            self._parted.append((record["at_us"] or 0, who, exchanges[-1]))
        clean_start, is_clean = json.loads(record["listed"] or "[null, null]")
        if event in ("opened", "resumed"):
            before = self._taken_over.pop(who[0], None)
            for wrong in self._wrong_connack(record, before, clean_start=bool(clean_start)):
                yield _found(record, wrong)
            self._connected_us[who[0]] = record["at_us"] or 0
            if (record["protocol_level"] or 0) >= FIRST_LEVEL_WITH_PROPERTIES:
                self._spoke_5.add(who)
            if event == "opened" and record["codes"] is not None:
                self._of[who] = Subscribed(record["at_us"] or 0)
        elif event == "taken_over" and is_clean is False:
            self._taken_over[who[0]] = who[1]
        elif event == "ended":
            self._of.pop(who, None)
            self._to_nobody.pop(who, None)
            self._spoke_5.discard(who)
            self._connected_us.pop(who[0], None)

    def _wrong_connack(self, record: Record, before: int | None, *, clean_start: bool) -> Iterator[str]:
        """`before`: the session of the connection that this one took over in this commit."""
        event, told = record["event"], record["codes"]
        if told is None:
            if self._tells:
                yield f"{event}, and no record tells its CONNACK"
            return
        self._tells = True
        level = record["protocol_level"] or 0
        is_present = event == "resumed" and level >= _FIRST_LEVEL_WITH_SESSION_PRESENT
        wanted = f"0{is_present:d}00"
        if told != wanted:
            yield f"{event}, and CONNACK has {told}; its flags and code must be {wanted}"
        if event == "resumed" and clean_start:
            yield "resumed, and CONNECT asked for a clean start"
        if event == "opened" and not clean_start and before is not None:
            yield f"opened anew without a clean start, and session {before} had not ended"

    # -- SUBACK and UNSUBACK -------------------------------------------------------------------------------------------

    def register(self, record: Record, asked: tuple[str, int] | None) -> None:
        """A RegSub that a client's SUBSCRIBE caused; `asked` is its filter and QoS, None if that cannot be read."""
        subscribed = self._of.get(_who(record))
        if subscribed is None:
            return
        subscribed.has_targets |= record["destination"] is not None
        if asked is None:
            subscribed.is_unread = True
        elif record["destination"] is None and record["packet_identifier"] is not None:
            subscribed.asked[record["packet_identifier"], asked[0]] = record["message_id"], asked[1]
            if self._tells:
                self._due.append((record, asked[0]))

    def refuse_command(self, record: Record) -> None:
        """The broker or the gateway refused a command."""
        if record["command"] == "RegSub" and record["message_id"] is not None and not is_shared(record["client"]):
            self._refused[record["message_id"]] = record["reason_code"] or 0
            if len(self._refused) > _MOST_REFUSED:
                del self._refused[next(iter(self._refused))]

    def closes(self, record: Record) -> bool:
        """Whether the gateway closes the connection instead of an answer: MQTT 3.1 cannot refuse a filter."""
        level = self._level(_who(record))
        is_before = level is not None and level < _FIRST_LEVEL_WITH_SESSION_PRESENT
        return is_before and any(code >= reason_codes.FAILURE for code in _bytes(record["codes"]))

    def answer(self, record: Record) -> Iterator[Finding]:
        """The gateway decided on filters."""
        listed, refused = json.loads(record["listed"])
        topic_filters = listed or ()
        rules = {str(place): rule or "" for place, rule in [pair for pair in refused or () if pair and len(pair) == 2]}
        who, level = _who(record), self._level(_who(record))
        if record["packet_type"] == _UNSUBACK and (level or 0) < FIRST_LEVEL_WITH_PROPERTIES:
            codes: list[int | None] = [None] * len(topic_filters)
            if level is not None and record["codes"] is not None:
                yield _found(record, f"UNSUBACK has codes, which level {level} has not")
        else:
            codes = list(_bytes(record["codes"]))
            if len(codes) != len(topic_filters):
                yield _found(record, f"it has {len(codes)} codes for {len(topic_filters)} filters")
                self._of.pop(who, None)
                return
        asked = _bytes(record["requested_qos"])
        last = {topic_filter: place for place, topic_filter in enumerate(topic_filters)}
        for place, (topic_filter, code) in enumerate(zip(topic_filters, codes, strict=True)):
            if record["packet_type"] == _UNSUBACK:
                wrong = self._wrong_unsuback(who, topic_filter or "", code)
            else:
                rule = rules.get(str(place + 1))
                qos = asked[place] if place < len(asked) else None
                wrong = _wrong_code(code or 0, qos, rule, level)
                if last[topic_filter] == place:  # of several entries for one filter the last one counts
                    found = self._wrong_suback(record, topic_filter or "", code or 0, qos, rule, level)
                    wrong = wrong or found
            if wrong:
                yield _found(record, f"filter {topic_filter}: {wrong}")

    def _wrong_suback(
        self, record: Record, topic_filter: str, code: int, qos: int | None, rule: str | None, level: int | None
    ) -> str:
        """What is wrong with the code of a filter beside its RegSub, "" for nothing; notes the code."""
        who = _who(record)
        subscribed = self._of.get(who)
        regsub = None
        if subscribed is not None:
            regsub = subscribed.asked.pop((record["packet_identifier"], topic_filter), None)
            if code < reason_codes.FAILURE:
                subscribed.filters[topic_filter] = None
        if code >= reason_codes.FAILURE and rule is not None:
            told = None if (level or 0) < _FIRST_LEVEL_WITH_SESSION_PRESENT else code
            refused = Refused(who[0], topic_filter, rule, told, record["sequence"], record["at_us"] or 0)
            self._refusals.add(refused, is_due=subscribed is not None and not subscribed.has_targets)
        if subscribed is None or subscribed.has_targets or subscribed.is_unread:
            return ""
        if is_shared(topic_filter) or topic_filter.startswith(NAME_PREFIX):  # its RegSub is that of a group, perhaps
            return ""
        if regsub is None:
            return "" if code >= reason_codes.FAILURE else "granted, and no RegSub registered it"
        message_id, registered_qos = regsub
        if qos != registered_qos:
            return f"QoS {qos} is told as asked for, and SUBSCRIBE asked for {registered_qos}"
        return self._other_than_regsub(message_id, code, rule, level)

    def _other_than_regsub(self, message_id: str, code: int, rule: str | None, level: int | None) -> str:
        """What is wrong with a code beside the outcome of the filter's RegSub."""
        is_refused = code >= reason_codes.FAILURE
        reason = self._refused.pop(message_id, None)
        if reason is None:
            return f"refused by {rule}, and the broker took it" if rule and reason_codes.is_of_mq(rule) else ""
        if not is_refused:
            return f"granted, and the broker refused it with {reason}"
        wanted = reason_codes.code_of_regsub(reason)
        if level == FIRST_LEVEL_WITH_PROPERTIES and code != wanted:
            return f"code {code:02x}, and the broker refused it with {reason}, which is {wanted:02x}"
        return ""

    def _wrong_unsuback(self, who: _Who, topic_filter: str, code: int | None) -> str:
        subscribed = self._of.get(who)
        existed = subscribed is not None and topic_filter in subscribed.filters
        is_unsure = subscribed is not None and _is_unsure(subscribed, topic_filter)
        if subscribed is not None:
            subscribed.filters.pop(topic_filter, None)
        if code is None:
            return ""
        if code not in reason_codes.UNSUBACK:
            return f"code {code:02x}, which UNSUBACK has not"
        if subscribed is None or is_unsure or subscribed.has_targets or code >= reason_codes.FAILURE:
            return ""
        if existed and code == reason_codes.NO_SUBSCRIPTION:
            return "code 11, and the session had this subscription"
        return "code 00, and the session had no such subscription" if not existed and code == 0 else ""

    # -- PUBACK and PUBREC ---------------------------------------------------------------------------------------------

    def publish(self, record: Record) -> None:
        """A PUBLISH of a client was put."""
        who, exchange = _who(record), record["exchange"]
        if (record["protocol_level"] or 0) < FIRST_LEVEL_WITH_PROPERTIES or not record["qos"] or exchange is None:
            return
        if record["packet_type"] == PUBLISH and record["message_id"] is not None:
            self._exchange_of[record["message_id"]] = who, exchange
            if record["destination"] is not None:
                self._note(self._with_copies, who, exchange)

    def copied(self, source: str | None, copy: Record) -> Iterator[Finding]:
        """Somebody subscribes to a publication: a copy was made, or could not be put on a queue."""
        found = self._exchange_of.get(source or "")
        if found is None:
            return
        who, exchange = found
        self._note(self._with_copies, who, exchange)
        if self._take(self._to_nobody, who, exchange, exchange):
            detail = f"a copy of exchange {exchange}, and its PUBREC said that nobody subscribes"
            yield Finding(Custody.CODES, copy["sequence"], message(copy["message_id"]), detail)

    def confirm(self, record: Record, ranges: Iterable[tuple[int, int]]) -> Iterator[Finding]:
        """Acknowledgements were sent."""
        who, packet_type, told = _who(record), record["packet_type"], record["codes"]
        name = _NAMES.get(packet_type, "?")
        says_nobody = told == f"{reason_codes.NOBODY:02x}" and packet_type in (_PUBACK, _PUBREC)
        if told is not None and not says_nobody:
            yield _found(record, f"{name} has code {told}, and the messages were accepted")
        elif told is not None and who in self._of and who not in self._spoke_5:
            yield _found(record, f"{name} has code {told}, and the client's level of MQTT has no codes")
        for first, last in ranges:
            if packet_type == _PUBACK:
                had_copies = self._take(self._with_copies, who, first, last)
                for exchange in had_copies if says_nobody else ():
                    yield _found(record, f"PUBACK of exchange {exchange} says that nobody subscribes, but somebody did")
            elif packet_type == _PUBREC and says_nobody and first == last:
                self._note(self._to_nobody, who, first)

    @staticmethod
    def _note(exchanges: dict[_Who, list[int]], who: _Who, exchange: int) -> None:
        known = exchanges.setdefault(who, [])
        place = bisect_left(known, exchange)
        if known[place : place + 1] != [exchange]:
            known.insert(place, exchange)

    @staticmethod
    def _take(exchanges: dict[_Who, list[int]], who: _Who, first: int, last: int) -> list[int]:
        """Takes the exchanges of a range out."""
        known = exchanges.get(who)
        if known is None:
            return []
        begin, end = bisect_left(known, first), bisect_right(known, last)
        taken = known[begin:end]
        del known[begin:end]
        if not known:
            del exchanges[who]
        return taken

    # -- refusals ------------------------------------------------------------------------------------------------------

    def refuse(self, record: Record) -> Iterator[Finding]:
        """Topics were refused."""
        rule, _ = json.loads(record["listed"])
        event, client, told = record["event"], record["client"], record["codes"]
        code = next(iter(_bytes(told)), None)
        known = self._sessions.get(client) if client is not None else None
        is_of_connection = record["topic"] is not None and (record["at_us"] or 0) > self._connected_us.get(
            client, _LATE
        )
        level = known.level if known is not None and self._tells and is_of_connection else None
        self._refusals.count(record, rule)
        if wrong := _wrong_refusal(event, rule or "", code, level):
            yield Finding(Custody.CODES, record["sequence"], f"client {client or '?'}", wrong)
        if event == "subscribe" and known is not None and client is not None:
            subscribed = self._of.get((client, known.epoch))
            at_us = record["at_us"] or 0
            is_judged = subscribed is not None and subscribed.since_us < at_us and not subscribed.has_targets
            # of a packet with several filters the SUBACK waits for the last one
            is_judged = is_judged and subscribed is not None and not subscribed.asked
            if is_judged and not self._refusals.is_told(record, rule, code):
                wrong = f"filter {record['topic']} was refused by {rule}, and no SUBACK says so"
                yield Finding(Custody.CODES, record["sequence"], f"client {client}", wrong)

    def refuse_login(self, record: Record) -> Iterator[Finding]:
        """Logins were refused."""
        _, since_us = json.loads(record["listed"])
        allowed, told = reason_codes.LOGINS.get(record["event"], frozenset()), record["codes"]
        wrong = ""
        if told is not None and not (len(_bytes(told)) == 1 and allowed.issuperset(_bytes(told))):
            wrong = f"refused as {record['event']}, and CONNACK has code {told}"
        elif told is None and self._tells and (since_us or 0) >= self._started_us:
            wrong = f"refused as {record['event']}, and no code of CONNACK is told"
        if wrong:
            yield Finding(Custody.CODES, record["sequence"], "logins", wrong)

    def refuse_connect(self, record: Record) -> Iterator[Finding]:
        """CONNECTs were refused."""
        rule, _ = json.loads(record["listed"])
        level, told = record["protocol_level"], record["codes"]
        allowed = reason_codes.of_refused_connect(record["event"], rule or "", level)
        if allowed is not None and (next(iter(_bytes(told)), None) not in allowed or len(told or "") > _CODE_DIGITS):
            why = f"{record['event']} {rule}" if rule else record["event"]
            at = "without a level" if level is None else f"at level {level}"
            wanted = ", ".join(sorted("none" if code is None else f"{code:02x}" for code in allowed))
            wrong = f"refused as {why} {at}, and CONNACK has code {told or 'none'}; it must be {wanted}"
            yield Finding(Custody.CODES, record["sequence"], "CONNECTs", wrong)


def _is_unsure(subscribed: Subscribed, topic_filter: str) -> bool:
    """Whether a session that gives a filter up may have had it or not, because a SUBSCRIBE for it is under way."""
    was_unsure = topic_filter in subscribed.unsure
    subscribed.unsure.pop(topic_filter, None)
    if any(asked == topic_filter for _, asked in subscribed.asked):
        subscribed.unsure[topic_filter] = None
        return True
    return was_unsure


def _wrong_code(code: int, qos: int | None, rule: str | None, level: int | None) -> str:
    """What is wrong with the code of SUBACK beside what was asked for, and beside the rule that refused it."""
    if code not in reason_codes.SUBACK.get(level or FIRST_LEVEL_WITH_PROPERTIES, ()):
        return f"code {code:02x}, which SUBACK of level {level} has not"
    if code < reason_codes.FAILURE:
        if rule is not None:
            return f"granted, and refused by {rule}"
        return "" if code == qos else f"granted QoS {code}, and the client asked for {qos}"
    if rule is None:
        return f"code {code:02x}, and no rule refused it"
    wanted = reason_codes.refusal_by(rule)
    if level == FIRST_LEVEL_WITH_PROPERTIES and wanted is not None and code != wanted.of_filter:
        return f"code {code:02x}, and {rule} refuses with {wanted.of_filter:02x}"
    return ""


def _wrong_refusal(event: str, rule: str, code: int | None, level: int | None) -> str:
    """What is wrong with the code of refused topics; `level`: that of the client's session, None if it is not known."""
    wanted = reason_codes.refusal_by(rule)
    if event == "subscribe":
        due = None if wanted is None else wanted.of_filter
        allowed = reason_codes.SUBACK[FIRST_LEVEL_WITH_PROPERTIES]
        if code == reason_codes.FAILURE and level in (None, _FIRST_LEVEL_WITH_SESSION_PRESENT):
            return ""
    else:
        due = None if wanted is None else wanted.of_publish
        allowed = reason_codes.PUBLISH
    if code is not None and (code < reason_codes.FAILURE or code not in allowed or due not in (None, code)):
        return f"{event} refused by {rule}, and the client was told {code:02x}"
    if level == FIRST_LEVEL_WITH_PROPERTIES and code is None and event != "will":
        return f"{event} refused by {rule}, and no code is told"
    if level is not None and level < FIRST_LEVEL_WITH_PROPERTIES and code is not None and event == "publish":
        return f"{event} refused with code {code:02x}, and level {level} has no codes"
    return ""


def _who(record: Record) -> _Who:
    return record["client"] or "", record["session_epoch"] or 0


def _bytes(text: str | None) -> bytes:
    """Bytes of a record; none where they cannot be read."""
    try:
        return bytes.fromhex(text or "")
    except ValueError:
        return b""


def _found(record: Record, detail: str) -> Finding:
    return Finding(Custody.CODES, record["sequence"], session(*_who(record)), detail)
