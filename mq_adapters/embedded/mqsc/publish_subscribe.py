"""What a broker lets the command server of its queue manager do: subscriptions and retained publications by command.

The broker knows the engine and not the other way round, so this is all that the engine's side says of it. Everything
goes into the caller's unit of work.
"""

from typing import TYPE_CHECKING, Protocol

from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message

if TYPE_CHECKING:
    from mappings.commands.command import RegisterSubscriber
    from mappings.table import Dialect
    from mq_adapters.broker.subscription import Subscription


class SubscriptionRefused(Exception):
    """A subscription that cannot be; the text has the reason code, its name, and what is at fault."""


class PublishSubscribe(Protocol):
    """The administration of a broker (broker/administration.py)."""

    def subscriptions(self) -> list["Subscription"]:
        """Every subscription that has not expired."""
        ...

    def define(self, unit: UnitOfWork, message: Message, command: "RegisterSubscriber", dialect: "Dialect") -> None:
        """Adds a subscription, as RegSub `command` in a message with that MQMD does, and sends it what is retained.

        Raises SubscriptionRefused; then nothing has changed.
        """
        ...

    def alter(
        self,
        unit: UnitOfWork,
        existing: "Subscription",
        message: Message,
        command: "RegisterSubscriber",
        dialect: "Dialect",
    ) -> None:
        """Puts a subscription in the place of another, whose joint identities it keeps. Raises SubscriptionRefused."""
        ...

    def delete(self, unit: UnitOfWork, existing: "Subscription") -> None:
        """Ends a subscription."""
        ...

    def clear_retained(self, unit: UnitOfWork, topic_string: str) -> None:
        """Forgets what is retained on the topics that a topic string of the topic scheme matches."""
        ...
