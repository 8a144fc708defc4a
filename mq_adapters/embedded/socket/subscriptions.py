"""Subscriptions of a program over the socket: SUBSCRIBE, UNSUBSCRIBE and REQUEST_PUBLICATIONS.

What they do stands in mq_adapters/embedded/mqi/subscribing.py, as for MQ clients. A subscription has a number, and its
queue is got from by its name.
"""

from collections.abc import Callable
from typing import Final

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.options import SubOption
from mq_adapters.embedded.mqi.subscribing import Subscription, Subscriptions
from mq_adapters.embedded.mqi.subscription_request import SubscriptionRequest
from mq_adapters.embedded.mqi.topics import Topics
from mq_adapters.embedded.rights import Right, TopicRights
from mq_adapters.embedded.socket.frames import FrameFields, Verb, name_field, u32
from mq_adapters.message import MQEI_UNLIMITED
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

#: Open subscriptions of one connection.
MAXIMUM_OPEN_SUBSCRIPTIONS: Final = 256
_SIGN_BIT: Final = 1 << 31

Done = Callable[..., None]
"""Takes the fields of the answer."""
Refused = Callable[[QueueManagerError], None]


class SocketSubscriptions:
    """The subscriptions of one connection."""

    def __init__(self, engine: Engine, application: Application, rights: TopicRights) -> None:
        self._application = application
        find_topic = Topics(engine, rights).topic_of
        self._subscribing = Subscriptions(engine, application, rights, find_topic, check_queue=_any_queue)
        self._open: dict[int, Subscription] = {}
        self._next_number = 1

    def carry_out(self, verb: Verb, fields: FrameFields, done: Done, refused: Refused) -> None:
        """Carries out a request. `done` or `refused` is called once, now or later. Raises QueueManagerError."""
        if verb == Verb.SUBSCRIBE:
            self._subscribe(fields, done, refused)
        elif verb == Verb.UNSUBSCRIBE:
            self._unsubscribe(fields, done)
        else:
            self._request_publications(fields, done, refused)

    def end(self) -> None:
        """The program has gone: its durable subscriptions stay, and the others end."""
        self._subscribing.end()
        opened, self._open = self._open, {}
        for subscription in opened.values():
            try:
                self._subscribing.close(subscription)
                self._subscribing.end_queue(subscription)
            except (QueueManagerError, StoreError):  # it ends when the broker finds its queue gone
                continue

    def _subscribe(self, fields: FrameFields, done: Done, refused: Refused) -> None:
        options, topic, name, user_data = fields.u32(), fields.text(), fields.text(), fields.text()
        correl_id, expiry, queue_name = fields.identifier(), fields.u32(), fields.name()
        fields.end()
        if len(self._open) >= MAXIMUM_OPEN_SUBSCRIPTIONS:
            raise QueueManagerError(ReasonCode.MQRC_HANDLE_NOT_AVAILABLE, f"subscribe to {topic}")
        request = SubscriptionRequest(
            options=options if options < _SIGN_BIT else options - 2 * _SIGN_BIT,
            object_name="",
            topic=topic,
            name=name,
            user_data=user_data,
            correl_id=correl_id,
            expiry=expiry or MQEI_UNLIMITED,
        )
        is_own = queue_name and not request.has(SubOption.MANAGED)
        own_queue = self._application.getting(queue_name) if is_own else None

        def subscribed(result: Subscription | QueueManagerError) -> None:
            if isinstance(result, QueueManagerError):
                refused(result)
                return
            number, self._next_number = self._next_number, self._next_number + 1
            self._open[number] = result
            done(u32(number), name_field(result.queue.name), result.correl_id)

        self._subscribing.subscribe(request, own_queue, subscribed)

    def _unsubscribe(self, fields: FrameFields, done: Done) -> None:
        number, options = fields.u32(), fields.u32()
        fields.end()
        subscription = self._found(number)
        self._subscribing.close(subscription, options)
        del self._open[number]
        self._subscribing.end_queue(subscription)
        done()

    def _request_publications(self, fields: FrameFields, done: Done, refused: Refused) -> None:
        subscription = self._found(fields.u32())
        fields.end()
        copies = self._subscribing.retained_copies(subscription)

        def ended(error: QueueManagerError | None) -> None:
            if error is not None:
                refused(error)
            else:
                done(u32(copies))

        self._subscribing.request_publications(subscription, ended)

    def _found(self, number: int) -> Subscription:
        if number not in self._open:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"subscription number {number}")
        return self._open[number]


def _any_queue(_right: Right, _queue_name: str, _operation: str) -> None:
    """A pattern such as `*` opens every queue on the socket, also with GET."""
