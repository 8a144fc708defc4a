"""A gateway's records in their order, and what is wrong with the custody of its messages.

The replay goes commit by commit: the records of a command's effects stand in the command's own commit, mostly after
it, and a refusal may stand after the copies of other commands. Each finding belongs to one control.

A trail is whole from its beginning if its first commit tells the start of the gateway and a stock-take. After a gap,
and in the trail of an earlier version, the replay judges only sessions and messages that began since.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from spark_audit.custody.answers import Answers
from spark_audit.custody.applications import Applications
from spark_audit.custody.commands import CONTROL_QUEUE, MQRFH, PLAIN, Command, Lane, command_of, lane_of
from spark_audit.custody.commit import Commit, is_complete, is_of_packet, told_twice
from spark_audit.custody.confirmations import ACTS, Confirmations, ranges_of
from spark_audit.custody.copies import Copies
from spark_audit.custody.deliveries import Deliveries
from spark_audit.custody.expectations import Publication
from spark_audit.custody.findings import Custody, Finding, message, session
from spark_audit.custody.inventory import Inventory
from spark_audit.custody.lanes import Lanes, Owner
from spark_audit.custody.passages import Passages
from spark_audit.custody.places import Rules
from spark_audit.custody.programs import Programs
from spark_audit.custody.queues import Queues
from spark_audit.custody.refusals import Refusals
from spark_audit.custody.registry import WITHOUT_RETAINED, Registry
from spark_audit.custody.retained import Kept, RetainedTopics
from spark_audit.custody.retained_copies import RetainedCopies
from spark_audit.custody.sessions import WILL_IS_DUE, Sessions, is_on_connection
from spark_audit.custody.stock import StockTake
from spark_audit.personal import NAME_PREFIX
from spark_audit.record import Kind
from spark_audit.reperform.mqtt import CONNECT, FIRST_LEVEL_WITH_PROPERTIES, PUBLISH

Record = Mapping[str, Any]
#: A RegSub that is refused with this has registered its topics. Not all retained publications may be sent.
_TOO_MANY_COPIES: Final = 2056
#: Kinds of records in the first commit of a whole trail.
_FIRST_KINDS: Final = frozenset({Kind.STARTED, Kind.STOCK})
_PUT, _STOCK = map(str, (Kind.PUT, Kind.STOCK))
_SUBSCRIPTIONS: Final = " SUB"
_TOPIC_STRINGS: Final = "TOPICSTR"


def replayed(records: Iterable[Record]) -> Iterator[Finding]:
    """What is wrong with the records of one gateway, as rows (commands.py) in the order of their sequence."""
    replay = Replay()
    for _, commit in groupby(records, key=itemgetter("batch")):
        yield from replay.take(list(commit))
    yield from replay.end()


class Replay:
    """The state of a gateway behind the records that were taken so far."""

    def __init__(self) -> None:
        self._registry = Registry()
        self._retained = RetainedTopics()
        self._sessions = Sessions()
        self._lanes = Lanes()
        self._copies = Copies(self._registry, self._lanes)
        self._deliveries = Deliveries(self._lanes)
        self._stock = StockTake()
        self._queues = Queues()
        self._inventory = Inventory(
            sessions=self._sessions,
            registry=self._registry,
            retained=self._retained,
            lanes=self._lanes,
            deliveries=self._deliveries,
        )
        self._retained_copies = RetainedCopies(
            registry=self._registry, lanes=self._lanes, retained=self._retained, copies=self._copies
        )
        self._applications = Applications(
            registry=self._registry,
            retained=self._retained,
            copies=self._copies,
            queues=self._queues,
            register=self._register,
            request=self._retained_copies.request,
        )
        self._programs = Programs()
        self._passages = Passages()
        self._confirmations = Confirmations()
        self._refusals = Refusals()
        self._answers = Answers(self._sessions, self._refusals)
        self._others = (
            *(self._passages, self._queues, self._inventory, self._confirmations, self._refusals, self._answers),
            *(self._retained_copies, self._programs),
        )
        #: The queue of this run's publications.
        self._stream = ""
        self._sequence = 0
        self._commit = Commit(0, {}, {}, has_stock=False)
        self._ended: list[tuple[Record, str]] = []
        #: Findings that hold if the commit is whole.
        self._doubted: list[Finding] = []
        self._last_put: dict[str, str] = {}
        takes: dict[str, Callable[[Record], Iterable[Finding] | None]] = {
            Kind.PUT: self._put,
            Kind.ACCEPTED: self._confirmations.accept,
            Kind.CONFIRMED: self._confirmed,
            Kind.ANSWERED: self._answered,
            Kind.REFUSED: self._answers.refuse_command,
            Kind.TOPICS_REFUSED: self._answers.refuse,
            Kind.LOGINS_REFUSED: self._answers.refuse_login,
            Kind.CONNECTS_REFUSED: self._answers.refuse_connect,
            Kind.PROGRAM: self._programs.change,
            Kind.PROGRAMS_REFUSED: lambda record: self._programs.refuse(record, json.loads(record["listed"])[0]),
            Kind.CLOCK_JUMPED: lambda _record: self._refusals.clear(),
            Kind.COMMANDED: self._commanded,
            Kind.DELIVERED: self._delivered,
            Kind.ACKNOWLEDGED: self._deliveries.acknowledge,
            Kind.DROPPED: self._dropped,
            Kind.DEAD_LETTERED: self._dead_lettered,
            Kind.SESSION: self._session,
            Kind.STARTED: self._started,
            Kind.FORWARDED: self._passages.forward,
            Kind.RECEIVED: self._deliveries.received,
            Kind.REDRIVEN: self._redriven,
            Kind.OPERATED: self._operated,
            Kind.RESTORED: lambda _record: self._lose(),
            Kind.STOCK: self._stock_taken,
            Kind.MQPUT: self._put_by_application,
            Kind.MQGET: self._got,
            Kind.INVENTORY: self._inventory.take,
        }
        self._takes = {str(kind): take for kind, take in takes.items()}

    def take(self, records: list[Record]) -> Iterator[Finding]:
        """Takes the records of one commit. Missing records are reported when the next begins: the trail may end."""
        if self._sequence and records[0]["sequence"] != self._sequence + 1:
            self._lose()
        yield from self._settled()
        self._commit = Commit.of(records)
        self._lanes.forget(self._commit.number)
        self._answers.begin(records[0]["at_us"] or 0)
        self._programs.begin()
        self._refusals.begin(self._commit.number, records[0]["at_us"] or 0)
        self._retained.begin(records[0]["at_us"] or 0)
        self._retained_copies.begin(records[0]["at_us"] or 0)
        self._begin(records)
        yield from told_twice(records)
        for record in records:
            if record["sequence"] != self._sequence + 1:  # within the commit
                self._lose()
            self._sequence = record["sequence"]
            if self._stock.is_under_way and record["kind"] != _STOCK:
                yield from self._stock.judged(self._lanes, self._queues)
            if not is_complete(record):
                continue
            if is_on_connection(record):
                yield from self._acted(record)
            take = self._takes.get(record["kind"])
            if take is not None:
                yield from take(record) or ()

    def _settled(self) -> Iterator[Finding]:
        """Reports what is missing in the last commit."""
        yield from self._copies.end_of_commit()
        yield from self._confirmations.judged()
        yield from self._answers.judged()
        yield from self._refusals.judged()
        yield from self._doubted
        self._doubted = []
        yield from self._retained_copies.judged()
        yield from self._left_registered()
        yield from self._stock.judged(self._lanes, self._queues)

    def end(self) -> Iterator[Finding]:
        """Findings at the end of the trail, whose last commit may not be whole."""
        yield from self._stock.judged(self._lanes, self._queues, is_whole=False)
        yield from self._passages.left_behind()

    def _begin(self, records: list[Record]) -> None:
        """Sees whether the trail is whole from its beginning."""
        if self._sequence == 0:
            is_start = records[0]["sequence"] == 1 and {record["kind"] for record in records} >= _FIRST_KINDS
            is_start = is_start and not any(record["is_in_use"] for record in records)
            self._sequence = records[0]["sequence"] - 1
            if not is_start:
                self._lose()

    def _lose(self) -> None:
        """Records are missing: everything known so far may be otherwise now."""
        self._registry.clear()
        for part in (self._retained, self._sessions, self._lanes, self._copies, *self._others):
            part.clear()
        self._last_put.clear()
        self._stock.clear()
        self._ended, self._doubted = [], []

    # -- sessions ------------------------------------------------------------------------------------------------------

    def _session(self, record: Record) -> Iterator[Finding]:
        client, epoch, event = record["client"], record["session_epoch"], record["event"]
        self._confirmations.change((client, epoch))
        yield from self._answers.connect(record)
        _, is_clean = json.loads(record["listed"] or "[null, null]")
        is_lasting = None if is_clean is None else not is_clean
        if wrong := self._sessions.change(client, epoch, event, record["protocol_level"], is_lasting=is_lasting):
            yield Finding(Custody.SESSIONS, record["sequence"], session(client, epoch), wrong)
        if event == "ended":
            self._ended += [(record, correlation_id) for correlation_id in self._lanes.of_owner(Owner(client, epoch))]

    def _acted(self, record: Record) -> Iterator[Finding]:
        """Whether a client that did something, or was sent something, was there."""
        client = record["client"]
        if client is None or (record["kind"] == _PUT and (not is_of_packet(record) or self._is_of_group(record))):
            return
        if wrong := self._sessions.wrong_act(record):
            what = f"{record['kind']}, and {wrong}"
            yield Finding(Custody.SESSIONS, record["sequence"], session(client, record["session_epoch"]), what)
        if record["kind"] in ACTS:
            self._confirmations.act(record)

    def _is_of_group(self, record: Record) -> bool:
        return record["packet_type"] != PUBLISH and self._sessions.is_group(record["client"])

    def _left_registered(self) -> Iterator[Finding]:
        """Sessions that have ended in this commit, and whose subscriptions have not."""
        for record, correlation_id in self._ended:
            lanes = [(queue, correlation_id) for queue in self._lanes.queues]
            left = [each for lane in lanes for each in self._registry.of_lane.get(lane, {})]
            if left:
                who = session(record["client"], record["session_epoch"])
                detail = f"the session ended, and {len(left)} of its topics are still registered"
                yield Finding(Custody.SESSIONS, record["sequence"], who, detail)
            for lane in lanes:
                self._lanes.end_of_lane(lane)
                self._retained.end(lane)
        self._ended = []

    # -- commands ------------------------------------------------------------------------------------------------------

    def _put(self, record: Record) -> Iterator[Finding]:
        if record["conversion"] == "header_to_header":
            yield from self._copied(record)
        elif record["conversion"] == "service":
            yield from self._queues.convert(record)
        elif record["direction"] == "in":
            if record["destination"] is not None:
                self._passages.put(record)
            yield from self._commands_of_clients(record)

    def _commands_of_clients(self, record: Record) -> Iterator[Finding]:
        verb = record["command"]
        if verb == "Publish":
            yield from self._published(record)
        elif verb == "RegSub":
            yield from self._registered_client(record)
        elif record["destination"] is None and verb == "DeregSub" and record["queue"] == CONTROL_QUEUE:
            self._deregistered(record, command_of(record))
        elif record["destination"] is None and verb == "DeletePub" and not self._is_refused(record):
            self._retained.delete_by(command_of(record), record["queue"], self._registry.rules)

    def _is_refused(self, record: Record) -> bool:
        return record["message_id"] in self._commit.refused

    def _published(self, record: Record) -> Iterator[Finding]:
        client, message_id = record["client"] or "", record["message_id"]
        if message_id is not None and record["packet_type"] == PUBLISH:
            before = self._last_put.get(client, "")
            if message_id < before:
                detail = f"it was put after message {before}, but its number is lower"
                yield Finding(Custody.ORDER, record["sequence"], message(message_id), detail)
            self._last_put[client] = max(message_id, before)
            self._confirmations.release(record)
            self._answers.publish(record)
        if record["packet_type"] == CONNECT:
            yield from self._undue_will(record)
        if record["destination"] is not None or message_id is None:
            return
        yield from self._on_another_queue(record)
        topic = record["topic"] or ""
        if topic.startswith(NAME_PREFIX):
            self._copies.publish_keyed(record, is_refused=self._is_refused(record))
            return
        command = command_of(record) if record["header"] else PLAIN
        publication = Publication(
            message_id=message_id,
            queue=record["queue"],
            topics=(topic,),
            is_mqrfh=record["output_format"] == MQRFH,
            is_persistent=record["persistent"],
            command=command if self._registry.has_filters else None,
        )
        is_refused = message_id in self._commit.refused
        self._copies.publish(publication, record["sequence"], is_refused=is_refused)
        self._deliveries.publish(record)
        if record["header"] and not is_refused:
            self._retain(record, publication, command)

    def _on_another_queue(self, record: Record) -> Iterator[Finding]:
        """The gateway puts the publications of one run on one queue."""
        self._stream = self._stream or record["queue"]
        if record["queue"] != self._stream:
            detail = f"it was put on {record['queue']}, but the messages before it on {self._stream}"
            yield Finding(Custody.COPIES, record["sequence"], message(record["message_id"]), detail)

    def _retain(self, record: Record, publication: Publication, command: Command | None) -> None:
        if command is None:
            self._retained.doubt()
            self._retained.is_whole = False
        elif "RetainPub" in command.publication_options:
            kept = Kept(publication.message_id, not record["may_expire"], record["persistent"])
            self._retained.keep_of(publication, kept, self._registry.rules)

    def _undue_will(self, record: Record) -> Iterator[Finding]:
        """A will before MQTT 5 is due where a connection ends without DISCONNECT, in the same commit."""
        if not self._sessions.is_whole or (record["protocol_level"] or 0) >= FIRST_LEVEL_WITH_PROPERTIES:
            return
        who = record["client"], record["session_epoch"]
        if not self._commit.events.get(who, set()) & WILL_IS_DUE:
            detail = "its will was published, but its connection did not end"
            yield Finding(Custody.SESSIONS, record["sequence"], session(*who), detail)

    def _registered_client(self, record: Record) -> Iterator[Finding]:
        client, epoch = record["client"] or "", record["session_epoch"]
        correlation_id = record["correlation_id"] or ""
        owner = Owner(client, epoch, is_group=self._sessions.is_group(client))
        wrong = self._lanes.own(correlation_id, owner)
        if wrong and self._sessions.is_whole:
            yield Finding(Custody.SESSIONS, record["sequence"], session(owner.client, owner.epoch), wrong)
        if self._sessions.is_known(owner.client, owner.epoch):
            self._lanes.fresh.add(correlation_id)
        self._answers.register(record, self._deliveries.subscribe(record, correlation_id))
        if record["destination"] is not None or record["queue"] != CONTROL_QUEUE:
            return
        if self._commit.refused.get(record["message_id"], _TOO_MANY_COPIES) != _TOO_MANY_COPIES:
            return
        command = command_of(record)
        if command is None:
            self._doubt(record)
            return
        lane = (command.queue_name, correlation_id)
        self._lanes.queues.add(command.queue_name)
        self._register(record, lane, command)

    def _doubt(self, record: Record) -> None:
        """A RegSub or DeregSub cannot be read, perhaps because it is encrypted."""
        self._lanes.unread.add(record["correlation_id"] or "")
        self._registry.doubt(record["correlation_id"] or "")
        self._copies.doubt(record)

    def _register(self, record: Record, lane: Lane, command: Command) -> None:
        registered = self._registry.register(lane, command, may_expire=bool(record["may_expire"]))
        self._copies.registered(lane)
        if not command.registration_options & WITHOUT_RETAINED:
            is_refused = self._is_refused(record)
            promises = self._retained.promise(registered, self._registry.rules)
            is_prompt = self._retained.is_whole and all(each.is_prompt for each in promises)
            self._answers.is_slow = self._answers.is_slow or not is_prompt
            self._retained_copies.promise(record, () if is_refused else promises)

    def _deregistered(self, record: Record, command: Command | None) -> None:
        correlation_id, is_refused = record["correlation_id"] or "", self._is_refused(record)
        if command is None:
            if not is_refused:
                self._doubt(record)
            return
        lane = (command.queue_name, correlation_id)
        if self._lanes.tells_all_of(lane):
            wrong = self._registry.wrong_outcome(lane, command, self._commit.refused.get(record["message_id"]))
            if wrong:
                subject = message(record["message_id"])
                self._doubted.append(Finding(Custody.COMMANDS, record["sequence"], subject, wrong))
        if not is_refused:
            self._registry.deregister(lane, command)

    # -- copies and deliveries -----------------------------------------------------------------------------------------

    def _copied(self, record: Record) -> Iterator[Finding]:
        lane = lane_of(record["queue"], record["correlation_id"])
        if record["is_retained"]:
            is_persistent = yield from self._retained_copies.copied(record, lane)
        else:
            yield from self._copies.copy(record)
            yield from self._answers.copied(record["source_message_id"], record)
            is_persistent = self._deliveries.is_persistent(record)
        if lane[1] in self._lanes.owners:
            self._lanes.queues.add(lane[0])
        is_client = lane[0] in self._lanes.queues
        if record["persistent"] is not None:
            is_persistent = record["persistent"]
        elif not is_client and not self._registry.keeps_persistence(lane):
            is_persistent = None  # an earlier version did not tell it
        if record["in_memory"] and self._is_for_lasting_session(lane):
            detail = "the copy is only in memory, and it is for a session that outlives its connection"
            yield Finding(Custody.COPIES, record["sequence"], message(record["message_id"]), detail)
        if is_client:
            self._deliveries.copied(record, lane, is_persistent=is_persistent)
        else:
            self._queues.put(record["message_id"], record["queue"], is_persistent=is_persistent, may_be_alias=True)

    def _is_for_lasting_session(self, lane: Lane) -> bool:
        """Whether the trail tells that what waits in a lane must survive a restart: it is of a session or a group."""
        owner = self._lanes.owners.get(lane[1])
        if owner is None or owner.is_group:  # in the middle of a keyed trail any client may seem to be a group
            return owner is not None and (self._sessions.is_whole or not owner.client.startswith(NAME_PREFIX))
        known = self._sessions.get(owner.client)
        return known is not None and known.epoch == owner.epoch and known.is_lasting is True

    def _delivered(self, record: Record) -> Iterator[Finding]:
        return self._deliveries.deliver(record, self._commit.number)

    def _dropped(self, record: Record) -> None:
        if record["message_id"] is None:
            self._queues.lose(record["queue"])
        elif not self._ended_otherwise(record):
            self._queues.end(record["message_id"], record["queue"])

    def _dead_lettered(self, record: Record) -> Iterator[Finding]:
        if record["message_id"] is not None:
            self._ended_otherwise(record)
            yield from self._answers.copied(record["message_id"], record)
        self._queues.bury(record)

    def _ended_otherwise(self, record: Record) -> bool:
        """A message ended, and was delivered to nobody. Returns whether it waited for a client."""
        self._passages.end(record["message_id"])
        has_waited = self._lanes.end(record["message_id"]) is not None
        if not has_waited:
            self._copies.letter(record["message_id"], record["queue"])
        return has_waited

    def _commanded(self, record: Record) -> Iterator[Finding]:
        yield from self._programs.work(record, may_be_late=True)
        yield from self._applications.command(record)

    def _put_by_application(self, record: Record) -> Iterator[Finding]:
        self._queues.put(record["message_id"], record["queue"], is_persistent=record["persistent"])
        return self._programs.work(record)

    def _got(self, record: Record) -> Iterator[Finding]:
        """An application got a message."""
        yield from self._programs.work(record)
        if self._lanes.end(record["message_id"]) is None and record["queue"] not in self._lanes.queues:
            yield from self._queues.get(record)

    def _redriven(self, record: Record) -> None:
        self._queues.put_back(record)
        if record["queue"] in self._lanes.queues:
            self._deliveries.received(record)
        else:
            self._copies.publish_unread(record["message_id"], record["sequence"])

    def _answered(self, record: Record) -> Iterator[Finding]:
        if self._answers.closes(record):
            self._confirmations.close((record["client"], record["session_epoch"]))
        return self._answers.answer(record)

    def _confirmed(self, record: Record) -> Iterator[Finding]:
        ranges = list(ranges_of(record["listed"]))
        yield from self._confirmations.confirm(record, ranges)
        yield from self._answers.confirm(record, ranges)

    # -- the gateway itself --------------------------------------------------------------------------------------------

    def _started(self, record: Record) -> None:
        rules = Rules.of(record)
        if rules.are_known and not self._commit.has_stock:  # a version that tells its rules takes stock, too
            detail = "the gateway starts, and the stock-take of its start is missing"
            self._doubted.append(Finding(Custody.STOCK, record["sequence"], "stock-take", detail))
        self._registry.change_rules(rules)
        self._lanes.end_of_run()
        self._queues.end_of_run()
        for lane in self._retained.repeat():  # of what was retained since, too: the command begins anew
            self._retained.promise(list(self._registry.of_lane.get(lane, {}).values()), self._registry.rules)
        self._retained_copies.start()
        self._copies.start()
        self._confirmations.clear()
        self._refusals.start()
        self._programs.start()
        self._answers.start(record)
        self._stream = ""

    def _operated(self, record: Record) -> Iterator[Finding]:
        command = (record["command"] or "").upper()
        message_ids, reason = json.loads(record["listed"])
        yield from self._queues.operate(record, message_ids or [])
        self._copies.operated()
        if record["queue"] in self._lanes.queues:
            self._lanes.is_counted = False  # the trail may not name what was taken
        if _SUBSCRIPTIONS in command:
            self._registry.order(reason or "")
            self._copies.doubt_all()
        if _TOPIC_STRINGS in command:
            self._retained.doubt()

    def _stock_taken(self, record: Record) -> None:
        self._copies.tells_all = True
        self._stock.add(record)
