"""The question to `rfhbridge explain`, and one message of its answer."""

from dataclasses import dataclass

from gateway.explain.asked_properties import PropertyPlace
from gateway.mqtt.properties import PublishProperties
from gateway.mqtt.topics import share_of
from mappings.headers.chain import FORMAT_MQRFH
from mappings.headers.mqrfh import read_mqrfh
from mappings.headers.mqrfh2 import read_mqrfh2
from mq_adapters.message import MessageDescriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question: a topic name or filter, its publisher, QoS and flags; `properties` are those of MQTT 5."""

    topic: str
    client: str = "sensor"
    user: str | None = None
    qos: int = 1
    retain: bool = False
    properties: PublishProperties | None = None

    @property
    def is_shared(self) -> bool:
        """Whether MQTT 5 takes the topic for a shared subscription."""
        return share_of(self.topic) is not None

    @property
    def is_filter(self) -> bool:
        return self.is_shared or any(level in ("+", "#") for level in self.topic.split("/"))

    @property
    def topic_filter(self) -> str:
        """The filter at the broker: for a shared subscription, the part behind the group's name."""
        share = share_of(self.topic)
        return self.topic if share is None else share.topic_filter

    @property
    def subscriber(self) -> str:
        """The registered subscriber: the client, or the group under its whole name."""
        return self.topic if self.is_shared else self.client


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedCommand:
    """One message: the packet that causes it, its queue, its MQMD and the header in front of the payload.

    `properties` says where those of the packet have gone.
    """

    packet: str
    verb: str
    topics: tuple[str, ...]
    target: str
    queue: str
    descriptor: MessageDescriptor
    header: bytes
    properties: tuple[PropertyPlace, ...] = ()

    @property
    def header_text(self) -> tuple[str, ...]:
        """The text of the header: the NameValueString of an MQRFH, the folders of an MQRFH2 one by one."""
        chain = {"coded_char_set_id": self.descriptor.coded_char_set_id, "encoding": self.descriptor.encoding}
        if self.descriptor.format == FORMAT_MQRFH:
            return (read_mqrfh(self.header, **chain).name_value_string.rstrip(" \0"),)
        return tuple(folder.raw.decode() for folder in read_mqrfh2(self.header, **chain).folders)
