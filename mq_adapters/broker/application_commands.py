"""Tells the listener of each command of an MQ application, in the unit of work that carries it out.

The gateway notes the commands of MQTT clients itself: their messages have a private origin, and are passed over here.
A RegSub is told when the subscription begins, before it is answered. If its answer is an error because the retained
publications are too many, it is told again. A ReqUpdate is told when it is answered.
"""

from typing import Final

from mappings.commands.response import Completion, ResponseReason
from mq_adapters.broker.received import UnreadableCommand
from mq_adapters.command_header import CommandHeader
from mq_adapters.delivery_listener import DeliveryListener, TakenCommand
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message

_NO_REASONS: Final[tuple[ResponseReason, ...]] = ()


class ApplicationCommands:
    """Tells a listener of the commands of applications. Many publications with one header share a TakenCommand."""

    def __init__(self, listener: DeliveryListener) -> None:
        self._listener = listener
        self._last: tuple[CommandHeader, TakenCommand] | None = None

    def tell(
        self,
        unit: UnitOfWork,
        message: Message,
        about: CommandHeader | UnreadableCommand,
        queue_name: str,
        reasons: tuple[ResponseReason, ...] = _NO_REASONS,
        *,
        is_refused: bool = False,
    ) -> None:
        """Tells of a command that was carried out, with warnings if there are reasons, or that was refused."""
        if message.origin:
            return
        worst = Completion.FAILED if is_refused else Completion.WARNING
        completion = worst if reasons else Completion.OK
        taken = self._taken(message, about, queue_name)
        self._listener.commanded(unit, message, taken, completion, reasons[0].reason_code if reasons else 0)

    def _taken(self, message: Message, about: CommandHeader | UnreadableCommand, queue_name: str) -> TakenCommand:
        if isinstance(about, UnreadableCommand):
            descriptor = message.descriptor
            return TakenCommand(
                verb=about.verb,
                queue_name=queue_name,
                topics=(),
                filter="",
                format=descriptor.format,
                coded_char_set_id=descriptor.coded_char_set_id,
                encoding=descriptor.encoding,
                header=b"",
            )
        last = self._last
        if last is None or last[0] is not about or last[1].queue_name != queue_name:
            last = self._last = about, _taken_command(about, queue_name)
        return last[1]


def _taken_command(about: CommandHeader, queue_name: str) -> TakenCommand:
    command = about.command
    return TakenCommand(
        verb=about.verb,
        queue_name=queue_name,
        topics=tuple(getattr(command, "topics", ())),
        filter=getattr(command, "filter", None) or "",
        format=about.format,
        coded_char_set_id=about.coded_char_set_id,
        encoding=about.encoding,
        header=about.data,
    )
