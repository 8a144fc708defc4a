"""The subscriptions with a name that programs have open now. A subscription is for one of them, unless all share it."""

from typing import TYPE_CHECKING

from mq_adapters.reasons import QueueManagerError, ReasonCode

if TYPE_CHECKING:
    from mq_adapters.embedded.application import Application


class OpenSubscriptions:
    """By name: each opening, with its application and whether it shares. An opening is any object of its own."""

    def __init__(self) -> None:
        self._openings: dict[str, dict[object, tuple[Application, bool]]] = {}

    def check(self, name: str, *, is_shared: bool) -> None:
        """2429 while a program has the subscription open, unless it shares it and this one wants to."""
        openings = self._openings.get(name, {}).values()
        if openings and not (is_shared and all(shares for _, shares in openings)):
            raise QueueManagerError(ReasonCode.MQRC_SUBSCRIPTION_IN_USE, f"subscribe as {name}")

    def add(self, name: str, opening: object, application: "Application", *, is_shared: bool) -> None:
        """A program opens a subscription."""
        self._openings.setdefault(name, {})[opening] = application, is_shared

    def remove(self, name: str, opening: object) -> None:
        """A program closes it."""
        openings = self._openings.get(name, {})
        openings.pop(opening, None)
        if not openings:
            self._openings.pop(name, None)

    def others(self, name: str, opening: object) -> "list[Application]":
        """The applications that have a subscription open, but for one opening."""
        openings = self._openings.get(name, {})
        return [application for each, (application, _) in openings.items() if each is not opening]
