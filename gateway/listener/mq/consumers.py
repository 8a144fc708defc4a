"""The message listeners of one conversation: what they select, their room, and the messages on their way to them.

A client starts and stops the delivery to all its listeners with a notification. Between two messages it says with
REQUEST_MSGS for how many bytes it has room.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from mq_adapters.client_channel.asynchronous import AsyncMessage, Consumer
from mq_adapters.client_channel.events import MessagesAsked
from mq_adapters.client_channel.message_descriptors import Mqmd
from mq_adapters.client_channel.status import DELIVERY_STARTED, Notification, NotificationCode
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.connection import Connection
from mq_adapters.embedded.mqi.consuming import Listening
from mq_adapters.embedded.mqi.data_conversion import wanted_format
from mq_adapters.embedded.mqi.getting import GetRequest, Got
from mq_adapters.reasons import QueueManagerError

#: The client has room for a message of any length.
_ANY_LENGTH: Final = 2**31 - 1

#: Sends a message, with the request number that it answers.
Deliver = Callable[[int, AsyncMessage], None]


class Consumers:
    """The listeners of one connection, by handle."""

    def __init__(
        self,
        engine: Engine,
        connection: Connection,
        *,
        may_send: Callable[[], bool],
        wake: Callable[[], None],
        deliver: Deliver,
        failed: Callable[[QueueManagerError], None],
    ) -> None:
        """`wake` asks for a call of `go_on`, because messages have come.

        `failed` ends the conversation, because a listener cannot go on and there is no answer that says so.
        """
        self._engine = engine
        self._connection = connection
        self._may_send = may_send
        self._wake = wake
        self._deliver = deliver
        self._failed = failed
        self._listeners: dict[int, tuple[Consumer, Listening]] = {}
        self._is_started = False
        self._delivered = 0

    def messages_asked(self, event: MessagesAsked) -> None:
        """A listener has room. The first request makes it. QueueManagerError for a handle that is not open for it."""
        handle = event.asked.object_handle
        found = self._listeners.get(handle)
        consumer = Consumer(handle) if found is None else found[0]
        consumer.take(event.request, event.asked)
        request = _request(consumer, event)
        if found is None:
            listening = self._connection.listen(
                handle,
                request,
                may_get=lambda: consumer.may_get and self._may_send(),
                wake=self._wake,
                deliver=partial(self._send, consumer),
                failed=self._failed,
            )
            self._listeners[handle] = consumer, listening
            if self._is_started:
                listening.start()
            return
        found[1].request = request
        found[1].go_on()

    def notified(self, notification: Notification) -> None:
        """The program begins or ends the delivery; other notifications tell nothing that is needed."""
        if notification.code != NotificationCode.CONN_STATE:
            return
        self._is_started = notification.value == DELIVERY_STARTED
        for _consumer, listening in tuple(self._listeners.values()):
            if self._is_started:
                listening.start()
            else:
                listening.stop()

    def go_on(self) -> None:
        """There is room or time for messages again. Another listener is the first each time."""
        if len(self._listeners) > 1:
            first = next(iter(self._listeners))
            self._listeners[first] = self._listeners.pop(first)
        for _consumer, listening in tuple(self._listeners.values()):
            listening.go_on()

    def end(self, handle: int) -> None:
        """The handle is closed."""
        found = self._listeners.pop(handle, None)
        if found is not None:
            found[1].close()

    def end_all(self) -> None:
        """The connection is over."""
        for handle in tuple(self._listeners):
            self.end(handle)

    def _send(self, consumer: Consumer, got: Got) -> None:
        self._delivered += 1
        descriptor = Mqmd.of(got.message, consumer.selection.md_version, now_us=self._engine.now_us())
        message = AsyncMessage(
            object_handle=consumer.object_handle,
            global_message_index=self._delivered,
            selection_index=consumer.selection.selection_index,
            msg_token=got.token,
            resolved_q_name=got.queue_name,
            message_descriptor=descriptor,
            data=got.data,
        )
        consumer.sent(len(got.data))
        self._deliver(consumer.request, message)


def _request(consumer: Consumer, event: MessagesAsked) -> GetRequest:
    selection, longest = consumer.selection, event.asked.max_msg_length
    return GetRequest(
        options=consumer.get_options,
        match_options=selection.match_options,
        msg_id=selection.msg_id,
        correl_id=selection.correl_id,
        token=selection.msg_token,
        buffer_bytes=_ANY_LENGTH if longest < 0 else longest,
        data_format=wanted_format(selection.ccsid, selection.encoding),
    )
