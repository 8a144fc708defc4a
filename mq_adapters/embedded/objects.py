"""The objects of a queue manager: queues of every type, topics, namelists and the queue manager's own attributes.

They are durable, except temporary dynamic queues. A name is resolved once, and the result is remembered until an object
changes, so that a put through an alias costs no more than any other.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet, WeakValueDictionary

from mq_adapters.attributes import QUEUE_TYPES, Definition, ObjectType, Value, is_object_name, longest_name
from mq_adapters.embedded.counters import Counters
from mq_adapters.embedded.message_cache import MessageCache
from mq_adapters.embedded.open_subscriptions import OpenSubscriptions
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.store.store import Store
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import HELD_QUEUE, has_any_depth

if TYPE_CHECKING:
    from mq_adapters.embedded.mqsc.channels import ChannelAdministration
    from mq_adapters.embedded.mqsc.clients import ClientAdministration
    from mq_adapters.embedded.mqsc.publish_subscribe import PublishSubscribe
    from mq_adapters.embedded.mqsc.server_connections import ServerConnectionAdministration

#: The one object of type QMGR.
_QMGR: Final = ""
_LONGEST_PREFIX: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PutTarget:
    """The queue that a put on a name reaches: a local queue, or a transmission queue to `remote_queue_manager`."""

    queue: Queue
    default_priority: int
    default_persistence: int
    remote_queue: str = ""
    remote_queue_manager: str = ""


class QueueUser(Protocol):
    """A connected application."""

    def is_using(self, queue: Queue) -> bool:
        """Whether the application holds the queue exclusively, or its open unit of work puts on it or gets from it."""
        ...

    def is_getting_from(self, queue: Queue) -> bool:
        """Whether a get of the application waits at the queue, or its open unit of work gets from it."""
        ...

    def made(self, user: str) -> list[Queue]:
        """The temporary queues that the application has made, if it runs as that user."""
        ...


class _DeletedQueue:
    """Lives as long as somebody holds a deleted queue. There is no weak reference to a compiled object itself."""

    __slots__ = ("__weakref__", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue


class Objects:
    """Every object by type and name, in memory as in the store."""

    def __init__(
        self, store: Store, message_cache: MessageCache, counters: Counters, *, name: str, number: Callable[[], int]
    ) -> None:
        self.name = name
        self.queues: dict[str, Queue] = {}
        #: Applications that may have a queue in use.
        self.users: WeakSet[QueueUser] = WeakSet()
        #: The administration of subscriptions: of the broker that serves the queues, or of the store.
        self.publish_subscribe: Callable[[], PublishSubscribe] | None = None
        #: Called when an object was defined, altered or deleted.
        self.on_change: Callable[[], None] = lambda: None
        #: The runner of channels to targets, though there may be no target; None: no gateway runs here.
        self.channels: ChannelAdministration | None = None
        #: The server of MQTT clients, if there is one.
        self.clients: ClientAdministration | None = None
        #: The listeners of MQ clients, if there are any.
        self.server_connections: ServerConnectionAdministration | None = None
        #: The subscriptions that programs have open.
        self.open_subscriptions = OpenSubscriptions()
        #: Counts the changes of definitions, for those who remember conclusions from them.
        self.changes = 0
        self._store = store
        self._message_cache = message_cache
        self._counters = counters
        self._number = number
        self._definitions: dict[tuple[ObjectType, str], Definition] = {}
        self._targets: dict[tuple[str, str], PutTarget] = {}
        self._deleted: WeakValueDictionary[str, _DeletedQueue] = WeakValueDictionary()
        self._gateways: Collection[str] = ()
        self._set_limits()

    def load(self) -> None:
        """Loads the objects of the store."""
        for definition in self._store.definitions():
            self._definitions[definition.object_type, definition.name] = definition
        for identifier, name, _description in self._store.queues():
            queue = Queue(identifier, name)
            queue.set_attributes(self.definition(ObjectType.QLOCAL, name))
            self._add(queue)
        self._set_limits()
        self._make_room_for_letters()

    # -- looking ------------------------------------------------------------------------------------------------------

    def find(self, object_type: ObjectType, name: str) -> Definition | None:
        """The object of that type and name, if there is one."""
        return self._definitions.get((object_type, name))

    def find_queue(self, name: str) -> Definition | None:
        """The queue of that name, of any type. No two queues have the same name."""
        queue = self.queues.get(name)
        if queue is not None:
            return queue.definition
        others = (kind for kind in QUEUE_TYPES if kind != ObjectType.QLOCAL)
        return next((found for kind in others if (found := self.find(kind, name)) is not None), None)

    def all(self, object_types: Iterable[ObjectType]) -> list[Definition]:
        """Every object of these types by name; temporary dynamic queues are among the local queues."""
        wanted = frozenset(object_types)
        found = [each for each in self._definitions.values() if each.object_type in wanted]
        if ObjectType.QLOCAL in wanted:
            found += [queue.definition for queue in self.queues.values() if queue.is_temporary]
        return sorted(found, key=lambda each: each.name)

    def definition(self, object_type: ObjectType, name: str) -> Definition:
        """The object of that type and name. If it was never defined, one with defaults."""
        return self.find(object_type, name) or Definition(object_type=object_type, name=name)

    @property
    def queue_manager(self) -> Definition:
        """The queue manager's own attributes."""
        return self.definition(ObjectType.QMGR, _QMGR)

    @property
    def dead_letter_queue(self) -> Queue:
        """The queue that DEADQ names; 2085 if DEADQ is blank or the queue does not exist."""
        return self.base_queue(self.queue_manager.text("DEADQ"))

    # -- resolving names ----------------------------------------------------------------------------------------------

    def base_queue(self, name: str) -> Queue:
        """The local queue of that name, or behind an alias; 2085, 2082, 2001 or 2045 if there is none."""
        queue = self.queues.get(name)
        if queue is not None:
            return queue
        operation = f"open queue {name!r}"
        alias = self.find(ObjectType.QALIAS, name)
        if alias is not None:
            return self._local(self._aliased(alias, operation), operation)
        known = self.find_queue(name)
        unknown = ReasonCode.MQRC_UNKNOWN_OBJECT_NAME
        raise QueueManagerError(unknown if known is None else ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)

    def getting(self, name: str) -> Queue:
        """The queue to get from; 2016 if gets are inhibited, on an alias or on the queue."""
        queue = self.base_queue(name)
        alias = self.find(ObjectType.QALIAS, name) if queue.name != name else None
        if queue.is_get_inhibited or (alias is not None and alias["GET"] == "DISABLED"):
            raise QueueManagerError(ReasonCode.MQRC_GET_INHIBITED, f"get from {name}")
        return queue

    def putting(self, name: str, queue_manager_name: str = "") -> PutTarget:
        """The queue that a put on a queue of a queue manager reaches. A blank queue manager is this one.

        Raises QueueManagerError 2051, 2082, 2001, 2085, 2087, 2045, 2196, 2091 or 2092.
        """
        target = self._targets.get((name, queue_manager_name))
        if target is None:
            target = self._targets[name, queue_manager_name] = self._resolve(name, queue_manager_name)
        return target

    def _resolve(self, name: str, queue_manager_name: str) -> PutTarget:
        operation = f"put on {name}"
        if queue_manager_name not in ("", self.name):
            return self._transmit(self._own_way(queue_manager_name, operation), name, queue_manager_name, None)
        queue = self.queues.get(name)
        if queue is not None:
            return _target(queue, queue.definition)
        found = self.find_queue(name)
        if found is None:
            raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, operation)
        if found.object_type == ObjectType.QMODEL:
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)
        if found["PUT"] == "DISABLED":
            raise QueueManagerError(ReasonCode.MQRC_PUT_INHIBITED, operation)
        base = self._aliased(found, operation) if found.object_type == ObjectType.QALIAS else found
        if base.object_type == ObjectType.QLOCAL:
            return _target(self._local(base, operation), found)
        if base["PUT"] == "DISABLED":
            raise QueueManagerError(ReasonCode.MQRC_PUT_INHIBITED, operation)
        return self._remote(base, found, operation)

    def _aliased(self, alias: Definition, operation: str) -> Definition:
        base = self.find_queue(alias.text("TARGET"))
        if base is None:
            raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_ALIAS_BASE_Q, operation)
        if base.object_type not in (ObjectType.QLOCAL, ObjectType.QREMOTE):
            raise QueueManagerError(ReasonCode.MQRC_ALIAS_BASE_Q_TYPE_ERROR, operation)
        return base

    def _local(self, base: Definition, operation: str) -> Queue:
        queue = self.queues.get(base.name)
        if queue is None:
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)
        return queue

    def _remote(self, remote: Definition, opened: Definition, operation: str) -> PutTarget:
        queue_name, queue_manager_name = remote.text("RNAME"), remote.text("RQMNAME")
        if not queue_name:
            raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, operation)
        if queue_manager_name in ("", self.name) and not remote["XMITQ"]:
            return self._resolve(queue_name, "") if queue_name != remote.name else self._nowhere(operation)
        if not remote["XMITQ"]:
            return self._transmit(self._own_way(queue_manager_name, operation), queue_name, queue_manager_name, opened)
        way = self._transmission_queue(
            remote.text("XMITQ"), operation, ReasonCode.MQRC_UNKNOWN_XMIT_Q, ReasonCode.MQRC_XMIT_Q_USAGE_ERROR
        )
        return self._transmit(way, queue_name, queue_manager_name, opened)

    def _nowhere(self, operation: str) -> PutTarget:
        raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, operation)

    def _own_way(self, queue_manager_name: str, operation: str) -> Queue:
        """The transmission queue that has the name of its remote queue manager."""
        unknown = ReasonCode.MQRC_UNKNOWN_REMOTE_Q_MGR
        return self._transmission_queue(queue_manager_name, operation, unknown, unknown)

    def _transmission_queue(self, name: str, operation: str, unknown: ReasonCode, misused: ReasonCode) -> Queue:
        found = self.find_queue(name)
        if found is None:
            raise QueueManagerError(unknown, operation)
        if found.object_type != ObjectType.QLOCAL:
            raise QueueManagerError(ReasonCode.MQRC_XMIT_Q_TYPE_ERROR, operation)
        if found["USAGE"] != "XMITQ":
            raise QueueManagerError(misused, operation)
        return self.queues[name]

    def _transmit(self, way: Queue, queue_name: str, queue_manager_name: str, opened: Definition | None) -> PutTarget:
        defaults = way.definition if opened is None else opened
        return _target(way, defaults, remote_queue=queue_name, remote_queue_manager=queue_manager_name)

    # -- changing -----------------------------------------------------------------------------------------------------

    def define(self, definition: Definition) -> None:
        """Defines an object, durably. 2152 for a bad name, 2100 if it exists."""
        name, operation = definition.name, f"define {definition.object_type.name} {definition.name!r}"
        if not is_object_name(name) or len(name) > longest_name(definition.object_type):
            raise QueueManagerError(ReasonCode.MQRC_OBJECT_NAME_ERROR, operation)
        is_queue = definition.object_type in QUEUE_TYPES
        if (self.find_queue(name) if is_queue else self.find(definition.object_type, name)) is not None:
            raise QueueManagerError(ReasonCode.MQRC_OBJECT_ALREADY_EXISTS, operation)
        if definition.object_type == ObjectType.QLOCAL:
            self._add(self._made_or_revived(self._store.add_queue(definition), definition))
        else:
            self._store.set_definition(definition)
        self._remember(definition)

    def alter(self, definition: Definition) -> None:
        """Replaces the definition of an object, durably. Of a local queue everything may change."""
        queue = self.queues.get(definition.name) if definition.object_type == ObjectType.QLOCAL else None
        if queue is None or not queue.is_temporary:
            self._store.set_definition(definition)
            self._remember(definition)
        self._targets.clear()
        if queue is not None:
            self._change(queue, definition)

    def alter_queue_manager(self, changes: Mapping[str, Value]) -> None:
        """Changes the queue manager's own attributes, durably."""
        self.alter(self.queue_manager.altered(changes))
        self._set_limits()

    def delete(self, definition: Definition) -> None:
        """Deletes an object that is not a local queue."""
        self._store.remove_definition(definition)
        del self._definitions[definition.object_type, definition.name]
        self._changed()

    def delete_queue(self, queue: Queue) -> None:
        """Deletes a local queue with the messages on it. The caller has made sure that nobody uses it."""
        if queue.is_temporary:
            self._counters.close_temporary(queue, self._message_cache.numbers_in_memory(queue))
        else:
            waiting = self._store.count_messages(queue.identifier)
            self._store.remove_queue(queue.identifier, queue.name, self._counters.closing_rows(queue, waiting))
            self._counters.close(queue, waiting)
            del self._definitions[ObjectType.QLOCAL, queue.name]
            queue.trace = self._deleted[queue.name] = _DeletedQueue(queue)
        self._message_cache.remove_queue(queue)
        queue.end()
        del self.queues[queue.name]
        self._targets.clear()
        queue.wake_everyone()

    def create_dynamic(self, model_name: str, name: str) -> Queue:
        """A temporary dynamic queue like a model; `*` at the end of `name` becomes digits that make it unique.

        Raises QueueManagerError 2085 without the model, 2057 if it is no model, 2011 for a bad name, 2100.
        """
        operation = f"open model queue {model_name!r}"
        model = self.find_queue(model_name)
        if model is None:
            raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, operation)
        if model.object_type != ObjectType.QMODEL:
            raise QueueManagerError(ReasonCode.MQRC_Q_TYPE_ERROR, operation)
        number = self._number()
        full_name = f"{name[:-1]}{number:016X}" if name.endswith("*") else name
        if not is_object_name(full_name) or (name.endswith("*") and len(name) > _LONGEST_PREFIX + 1):
            raise QueueManagerError(ReasonCode.MQRC_DYNAMIC_Q_NAME_ERROR, f"{operation} as {name!r}")
        if self.find_queue(full_name) is not None:
            raise QueueManagerError(ReasonCode.MQRC_OBJECT_ALREADY_EXISTS, f"{operation} as {name!r}")
        queue = Queue(-number, full_name, is_temporary=True)
        queue.set_attributes(model.named(full_name, object_type=ObjectType.QLOCAL))
        self._add(queue)
        return queue

    def set_gateways(self, names: Collection[str]) -> None:
        """The queues with these names are the gateway's own, even if they are defined later."""
        self._gateways = names
        for queue in self.queues.values():
            queue.is_gateways = queue.name in names

    # -- inside -------------------------------------------------------------------------------------------------------

    def _add(self, queue: Queue) -> None:
        queue.account = self._counters.former if queue.is_temporary else self._counters.account(queue.name)
        queue.is_gateways = queue.name in self._gateways
        self.queues[queue.name] = queue
        self._message_cache.add_queue(queue)

    def _made_or_revived(self, identifier: int, definition: Definition) -> Queue:
        """A new queue, or the deleted queue of that name if somebody still holds it."""
        deleted = self._deleted.pop(definition.name, None)
        if deleted is None:
            queue = Queue(identifier, definition.name)
        else:
            queue = deleted.queue
            queue.revive(identifier)
        queue.set_attributes(definition)
        return queue

    def _set_limits(self) -> None:
        """Sets MAXMSGL and MAXUMSGS where puts and gets look."""
        self.maximum_message_bytes = self.queue_manager.number("MAXMSGL")
        self.maximum_unit_messages = self.queue_manager.number("MAXUMSGS")

    def _make_room_for_letters(self) -> None:
        """The dead-letter queue takes letters of any length. The queue of held letters takes any number too."""
        letters = {HELD_QUEUE, self.queue_manager.text("DEADQ")}
        with suppress(QueueManagerError):  # if there is no such queue, each put on it says so
            letters.add(self.dead_letter_queue.name)
        for queue in self.queues.values():
            if queue.takes_letters is not (queue.name in letters):
                queue.takes_letters, queue.takes_all = queue.name in letters, has_any_depth(queue.name)
                queue.set_attributes(queue.definition)

    def _remember(self, definition: Definition) -> None:
        self._definitions[definition.object_type, definition.name] = definition
        self._changed()

    def _changed(self) -> None:
        self.changes += 1
        self._make_room_for_letters()
        self._targets.clear()
        self.on_change()

    def _change(self, queue: Queue, definition: Definition) -> None:
        """Sets a queue's attributes. If its delivery sequence changes, its waiting messages get the new order."""
        if definition["MSGDLVSQ"] == queue.definition["MSGDLVSQ"]:
            queue.set_attributes(definition)
            return
        priorities = self._message_cache.priorities(queue)
        waiting = [(correl_id, queue.numbers(correl_id)) for correl_id in queue.lanes]
        queue.empty()
        queue.set_attributes(definition)
        for correl_id, numbers in waiting:
            for number in numbers:
                queue.arrive(correl_id, queue.place(number, priorities[number]))


def _target(queue: Queue, defaults: Definition, *, remote_queue: str = "", remote_queue_manager: str = "") -> PutTarget:
    is_persistent = defaults["DEFPSIST"] == "YES" and not queue.is_temporary
    return PutTarget(
        queue=queue,
        default_priority=defaults.number("DEFPRTY"),
        default_persistence=MQPER_PERSISTENT if is_persistent else MQPER_NOT_PERSISTENT,
        remote_queue=remote_queue,
        remote_queue_manager=remote_queue_manager,
    )
