"""Topics below `$SYS/broker`: numbers of the gateway, under the names that mosquitto gives them.

    version                        the program, and its version
    uptime                         "N seconds" since it started
    clients/connected              clients that are connected
    clients/total                  clients that have a session, connected or not
    clients/disconnected           the difference
    messages/received, sent        MQTT packets, since the start
    publish/messages/received, sent    PUBLISHes among them
    retained messages/count        retained messages

A client that subscribes gets the values as retained messages, before or after its SUBACK, and the changed values every
`sys_topics_interval_s`. They are sent at QoS 0 and are not stored. No MQ application gets them, the audit does not
re-perform them, and a client that reads too slowly misses some. A shared subscription gets none. The module
access/dollar_topics.py decides rights on these topics.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Final

from gateway.access.dollar_topics import SYS_ROOT
from gateway.bridge.counts import Traffic
from gateway.bridge.sessions.link import Link
from gateway.bridge.sessions.sessions import ClientSession
from gateway.mqtt.events import SubscribeReceived, SubscriptionOptions
from gateway.mqtt.properties import PublishProperties
from mappings.topics.topics import Scheme, matches

_SECOND_US: Final = 1_000_000
#: The beginning of filters for these topics.
_BEGINNING: Final = "$SYS/"
#: Clients that get values in one turn of the event loop, at some 100 microseconds each.
_AT_ONCE: Final = 20

Values = Mapping[str, bytes]


class SysTopics:
    """Sends the values to subscribers; one for the gateway. With the interval 0 it does nothing."""

    def __init__(
        self,
        *,
        interval_s: int,
        version: str,
        now_us: Callable[[], int],
        sessions: Sized,
        connected_clients: Sized,
        retained: Sized,
        traffic: Traffic,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._interval_us = interval_s * _SECOND_US
        self._version = version
        self._now_us = now_us
        self._sessions = sessions
        self._connected_clients = connected_clients
        self._retained = retained
        self._traffic = traffic
        self._call_soon = call_soon
        self._started_us = now_us()
        self._due_us = self._started_us + self._interval_us
        #: The values at the last interval.
        self._told = self._values()
        #: Connected sessions that may have such a subscription, and those of them that still wait for `_news`.
        self._listening: dict[ClientSession, None] = {}
        self._waiting: deque[ClientSession] = deque()
        self._news: Values = {}

    def opened(self, session: ClientSession) -> None:
        """A session is connected. From now on its existing subscriptions get changed values."""
        if self._interval_us and any(topic_filter.startswith(_BEGINNING) for topic_filter in session.subscriptions):
            self._listening[session] = None

    def asked(self, session: ClientSession, event: SubscribeReceived) -> tuple[str, ...]:
        """The filters of a SUBSCRIBE that ask for these retained messages. After its answer call `subscribed`."""
        if not self._interval_us:
            return ()
        options = event.options or (SubscriptionOptions(),) * len(event.subscriptions)
        filters = ((topic_filter, asked) for (topic_filter, _), asked in zip(event.subscriptions, options, strict=True))
        return tuple(each for each, asked in filters if each.startswith(_BEGINNING) and _wants(session, each, asked))

    def subscribed(self, link: Link, session: ClientSession, asked: Iterable[str]) -> None:
        """The SUBSCRIBE is answered: sends the values for each filter in `asked` that was granted."""
        granted = [each for each in asked if each in session.subscriptions]
        if granted:
            self._listening[session] = None
            values = self._values()
            wanted = {topic: value for topic, value in values.items() if _is_matched(topic, granted)}
            self._tell(link, session, wanted, is_retained=True)

    def tick(self) -> None:
        """Several times a second."""
        now_us = self._now_us()
        is_early = self._due_us - self._interval_us <= now_us < self._due_us  # a clock may be set back
        if is_early or not self._interval_us or self._waiting:
            return
        self._due_us = now_us + self._interval_us
        values = self._values()
        self._news = {topic: value for topic, value in values.items() if self._told.get(topic) != value}
        self._told = values
        self._waiting.extend(self._listening)
        self._tell_some()

    def _tell_some(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._waiting))):
            session = self._waiting.popleft()
            link = session.link
            if link is None:
                self._listening.pop(session, None)
            elif link.can_send:
                self._tell(link, session, self._news, is_retained=False)
        if self._waiting:
            self._call_soon(self._tell_some)

    def _tell(self, link: Link, session: ClientSession, values: Values, *, is_retained: bool) -> None:
        """One PUBLISH of QoS 0 for each value that the session subscribes to, and that its client takes."""
        made: list[bytes] = []
        for topic, value in values.items():
            entitlement = session.entitlement(topic, is_own=False)
            if entitlement is None:
                continue
            identifiers = entitlement.identifiers
            header = link.connection.writer.publish_header(
                topic,
                len(value),
                retain=is_retained or entitlement.retain_as_published,
                properties=PublishProperties()._replace(subscription_identifiers=identifiers) if identifiers else None,
            )
            if header is not None:
                made.append(header + value)
        if made:
            link.send(b"".join(made))
            self._traffic.delivered[0] += len(made)

    def _values(self) -> Values:
        connected, total, traffic = len(self._connected_clients), len(self._sessions), self._traffic
        numbers = {
            "clients/connected": connected,
            "clients/total": total,
            "clients/disconnected": max(0, total - connected),
            "messages/received": traffic.packets_received,
            "messages/sent": traffic.packets_sent,
            "publish/messages/received": sum(traffic.published),
            "publish/messages/sent": sum(traffic.delivered),
            "retained messages/count": len(self._retained),
        }
        texts = {
            "version": f"rfhbridge {self._version}",
            "uptime": f"{max(0, self._now_us() - self._started_us) // _SECOND_US} seconds",
            **{name: str(number) for name, number in numbers.items()},
        }
        return {SYS_ROOT + name: text.encode() for name, text in texts.items()}


def _wants(session: ClientSession, topic_filter: str, asked: SubscriptionOptions) -> bool:
    """Whether a filter asks for retained messages: 0 always, 1 only a new one, 2 never (MQTT 5.0 section 3.8.3.1)."""
    return asked.retain_handling == 0 or (asked.retain_handling == 1 and topic_filter not in session.subscriptions)


def _is_matched(topic: str, topic_filters: Iterable[str]) -> bool:
    return any(matches(topic_filter, topic, Scheme.MQTT) for topic_filter in topic_filters)
