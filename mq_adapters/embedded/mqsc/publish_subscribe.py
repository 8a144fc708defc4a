"""The part of a publish/subscribe broker that the command server uses: subscriptions and retained publications.

The broker imports the engine, and the engine never imports the broker: these protocols describe the broker to it.
Each change goes into the caller's unit of work.
"""

from collections.abc import Iterator
from typing import Protocol

from mappings.commands.command import RegisterSubscriber
from mappings.commands.options import RegistrationOption
from mappings.table import Dialect
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message


class SubscriptionRefused(Exception):
    """The broker refuses a subscription. The text has the reason code, its name, and the fault."""


class SubscriberIdentity(Protocol):
    """A subscriber as the broker knows it: `QMgr:Queue[:CorrelId]`."""

    @property
    def queue_manager_name(self) -> str: ...
    @property
    def queue_name(self) -> str: ...
    @property
    def correl_id(self) -> bytes | None: ...


class SubscriptionInterest(Protocol):
    """The subscription point and the content filter of a subscription; "" for none."""

    @property
    def point(self) -> str: ...
    @property
    def filter(self) -> str: ...


class RegisteredSubscription(Protocol):
    """A subscription of a broker (broker/subscription.py says what each field means). Its number names it."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def identity(self) -> SubscriberIdentity: ...
    @property
    def interest(self) -> SubscriptionInterest: ...
    @property
    def stream_name(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def dialect(self) -> Dialect: ...
    @property
    def options(self) -> RegistrationOption: ...
    @property
    def user_data(self) -> str: ...
    @property
    def user_identifier(self) -> str: ...
    @property
    def accounting_token(self) -> bytes: ...
    @property
    def appl_identity_data(self) -> str: ...
    @property
    def expires_us(self) -> int: ...
    @property
    def is_on_temporary_queue(self) -> bool: ...
    @property
    def is_of_mqsub(self) -> bool: ...
    @property
    def priority(self) -> int: ...
    @property
    def is_durable(self) -> bool: ...


class PublishSubscribe(Protocol):
    """The administration of a broker (broker/administration.py)."""

    def subscriptions(self) -> Iterator[RegisteredSubscription]:
        """Every subscription that has not expired."""
        ...

    def named(self, stream_name: str, name: str) -> RegisteredSubscription | None:
        """The subscription with that SubName on a stream."""
        ...

    def of(self, stream_name: str, queue_name: str, correl_id: bytes | None) -> tuple[RegisteredSubscription, ...]:
        """The subscriptions on a stream whose publications come to a queue with that CorrelId, or with the broker's."""
        ...

    def durable_of_user(self, user: str) -> int:
        """How many durable subscriptions of MQSUB a user owns."""
        ...

    def retained_copies(self, stream_name: str, topic: str) -> int:
        """How many retained publications on a stream match a topic string of the topic scheme."""
        ...

    def end_queue(self, queue: Queue) -> None:
        """Ends the managed queue of a durable subscription that has ended, unless somebody has it open."""
        ...

    def define(self, unit: UnitOfWork, message: Message, command: RegisterSubscriber, dialect: Dialect) -> None:
        """Adds a subscription as a RegSub `command` with that MQMD does, and sends it retained publications.

        Raises SubscriptionRefused, and then changes nothing.
        """
        ...

    def alter(
        self, unit: UnitOfWork, number: int, message: Message, command: RegisterSubscriber, dialect: Dialect
    ) -> None:
        """Replaces a subscription, and keeps the joint identities of the old one. Raises SubscriptionRefused."""
        ...

    def delete(self, unit: UnitOfWork, number: int) -> None:
        """Ends a subscription."""
        ...

    def clear_retained(self, unit: UnitOfWork, topic_string: str) -> None:
        """Removes the retained publications on the topics that a topic string of the topic scheme matches."""
        ...
