"""The queue manager of a data folder, for commands: that of a running gateway, or else the command's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mq_adapters.queue_manager import QueueAdministration

if TYPE_CHECKING:
    from mq_adapters.embedded.engine import Engine

#: PutApplName of what commands put.
_APPLICATION_NAME: Final = "rfhbridge"
#: How long a command waits for another one that has the store, in seconds.
_OWNER_WAIT_S: Final = 10.0


@contextmanager
def connected(folder: Path) -> Iterator[QueueAdministration]:
    """A connection. The operator's acts are noted for the audit trail, even without a gateway."""
    from mq_adapters import connect_prepared

    with connect_prepared(folder, _prepare, application_name=_APPLICATION_NAME) as queue_manager:
        yield queue_manager


def tell_order(queue_manager: QueueAdministration, command: str, reason: str) -> None:
    """Notes an act that neither takes nor puts a message. Raises QueueManagerError 2035 without every right."""
    queue_manager.begin()
    queue_manager.operate(command, reason)
    queue_manager.commit()


def tell_act(folder: Path, command: str, *, messages: int, reason: str) -> None:
    """Notes an act of a command on a store that nobody else owns. Raises QueueManagerError 2042, StoreError."""
    from mq_adapters.embedded.direct import Direct
    from mq_adapters.embedded.operators_act import OperatorsAct, tell_alone
    from mq_adapters.embedded.socket.peer import own_name

    def tell(engine: "Engine") -> None:
        _prepare(engine)
        tell_alone(engine, OperatorsAct(operator=own_name(), command=command, reason=reason), messages=messages)

    Direct(folder, application_name=_APPLICATION_NAME, wait_s=_OWNER_WAIT_S, prepare=tell).close()


def _prepare(engine: "Engine") -> None:
    from gateway.audit_trail.notes.acts import keep_acts

    keep_acts(engine)
