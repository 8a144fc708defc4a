"""The proof itself: syncs that are left out are found, each by its own question."""

import random
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.crash_matrix.disk_images import Loss
from tests.crash_matrix.flows import FLOWS
from tests.crash_matrix.ledger import ACKNOWLEDGED
from tests.crash_matrix.questions import mend_and_ask
from tests.crash_matrix.stage import Recorded, Theatre

QOS_1_IN = next(flow for flow in FLOWS if flow.name == "qos 1 in")
#: The client misses what it was promised, or the gateway itself sees at its start that the store went back.
UNSEEN = "came 0 times|the gateway ended before"


def _last_acknowledgement(recorded: Recorded) -> int:
    return max(entry.at for entry in recorded.ledger.of(ACKNOWLEDGED))


def _end(recorded: Recorded) -> int:
    return recorded.count


@pytest.mark.parametrize(
    ("unsynced", "moment", "loss", "found"),
    [
        ("WAL", _last_acknowledgement, Loss.ALL, UNSEEN),
        ("trail", _end, Loss.ALL, "audit verify: violated"),
        ("digests", _end, Loss.CONTENTS, "digest"),
        ("store", _end, Loss.CONTENTS, UNSEEN),
    ],
)
def test_files_that_are_not_synced_are_found_by_a_power_loss(
    theatre: Theatre, unsynced: str, moment: Callable[[Recorded], int], loss: Loss, found: str
) -> None:
    number = moment(theatre.recorded(QOS_1_IN, unsynced))
    stage = theatre.power_lost(QOS_1_IN, number, loss, random.Random(1), unsynced=unsynced)
    with closing(stage), pytest.raises(AssertionError, match=found):
        mend_and_ask(stage)
