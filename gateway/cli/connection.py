"""The queue manager of a data folder, for commands: the gateway's where one runs, else the command's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mq_adapters.queue_manager import QueueAdministration

if TYPE_CHECKING:
    from mq_adapters.embedded.engine import Engine

#: PutApplName of what commands put.
_APPLICATION_NAME: Final = "rfhbridge"


@contextmanager
def connected(folder: Path) -> Iterator[QueueAdministration]:
    """A connection; without a gateway, what the operator does is noted for its audit trail all the same."""
    from mq_adapters import connect

    with connect(folder, application_name=_APPLICATION_NAME, prepare=_prepare) as queue_manager:
        yield queue_manager


def _prepare(engine: "Engine") -> None:
    from gateway.audit_trail.acts import keep_acts
    from gateway.bridge.origin import exchange_of

    keep_acts(engine, exchange_of)
