"""DISPLAY SUB and DELETE SUB: the broker's registrations, as the queue manager's commands show and end them.

They are read from the store's state. They end as an application would end them: by DeregSub on the control queue, with
the identity and user of the subscription. Without a gateway that command waits there.
"""

from dataclasses import dataclass
from typing import Final

from mappings.command import DeregisterSubscriber, write_command
from mappings.options import RegistrationOption
from mappings.table import Dialect
from mq_adapters.embedded.engine import CONTROL_QUEUE, DEFAULT_STREAM, Engine
from mq_adapters.embedded.mqsc_display import Shown
from mq_adapters.embedded.unit_of_work import StateSpace
from mq_adapters.message import MQCI_NONE, MQMT_DATAGRAM, MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.mqsc import quoted

_FORMATS: Final = {Dialect.MQRFH: b"MQHRF   ", Dialect.MQRFH2: b"MQHRF2  "}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRow:
    """One registration: its name, what DISPLAY shows, and the command that ends it."""

    name: str
    shown: Shown
    dialect: Dialect
    command: DeregisterSubscriber
    correl_id: bytes
    user_identifier: str


def rows(engine: Engine) -> list[SubscriptionRow]:
    """Every registration that has not expired, by name: its SubName, else its identity `QMgr:Queue[:CorrelId]`."""
    from mq_adapters.broker.subscription import Subscription, unpack_subscription  # the broker knows the engine
    from mq_adapters.broker.topic_spaces import TopicSpaces

    def row(found: Subscription) -> SubscriptionRow:
        identity = found.identity
        name = found.name or str(identity)
        prefix = "" if found.stream_name == DEFAULT_STREAM else f"{found.stream_name}/"
        options = RegistrationOption(0) if identity.correl_id is None else RegistrationOption.CORREL_ID_AS_IDENTITY
        return SubscriptionRow(
            name=name,
            shown={
                "SUB": f"'{name}'",
                "TOPICSTR": quoted(prefix + found.topic),
                "DEST": quoted(identity.queue_name),
                "DESTQMGR": quoted(identity.queue_manager_name),
                "DESTCORL": (identity.correl_id or MQCI_NONE).hex().upper(),
                "SUBUSER": quoted(found.user_identifier),
                "USERDATA": quoted(found.user_data),
                "SELECTOR": quoted(found.interest.filter),
                "WSCHEMA": "CHAR" if found.dialect == Dialect.MQRFH else "TOPIC",
            },
            dialect=found.dialect,
            command=DeregisterSubscriber(
                topics=(found.topic,),
                registration_options=options | found.options & RegistrationOption.VARIABLE_USER_ID,
                stream_name=found.stream_name if found.dialect == Dialect.MQRFH else None,
                subscription_point=found.interest.point or None,
                filter=found.interest.filter or None,
                queue_manager_name=identity.queue_manager_name,
                queue_name=identity.queue_name,
            ),
            correl_id=identity.correl_id or MQCI_NONE,
            user_identifier=found.user_identifier,
        )

    found = (unpack_subscription(packed, TopicSpaces()) for _, packed in engine.states(StateSpace.BROKER_SUBSCRIPTION))
    now_us = engine.now_us()
    living = (each for each in found if not each.expires_us or each.expires_us > now_us)
    return sorted(map(row, living), key=lambda each: (each.name, each.shown["TOPICSTR"]))


def delete(engine: Engine, found: list[SubscriptionRow]) -> None:
    """Ends registrations, in one unit of work."""
    unit = engine.begin()
    for row in found:
        descriptor = MessageDescriptor(
            msg_type=MQMT_DATAGRAM,
            persistence=MQPER_PERSISTENT,
            format=_FORMATS[row.dialect],
            correl_id=row.correl_id,
            user_identifier=row.user_identifier,
        )
        engine.put(unit, engine.queue(CONTROL_QUEUE), Message(descriptor, write_command(row.command, row.dialect)))
    engine.submit(unit)


def is_waiting(engine: Engine) -> bool:
    """Whether no broker serves the control queue now."""
    return engine.queue(CONTROL_QUEUE).handler is None
