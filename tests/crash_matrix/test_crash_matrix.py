"""kill -9 at any change of any file, and a power loss behind it: nothing acknowledged is lost, QoS 2 comes once.

Short: a point of each flow, and a power loss in a quarter of them. In full (RFHBRIDGE_PROOF=full): every point of every
flow, and a power loss behind every sync. A failure names flow, point and moment, and comes again:

    make prove ARGS="tests/crash_matrix -k 'kill and qos_1_in'"
"""

import os
import random
from collections.abc import Iterator
from typing import Final

import pytest

from tests.conftest import PROOF_VARIABLE
from tests.crash_matrix.disk_images import Loss
from tests.crash_matrix.flows import FLOWS
from tests.crash_matrix.points import Moment, Operation
from tests.crash_matrix.questions import mend_and_ask
from tests.crash_matrix.stage import Flow, Recorded, Stage, Theatre
from tests.ibm_mq_stand_in.process import why_unavailable

IS_FULL: Final = os.environ.get(PROOF_VARIABLE) == "full"
FLOWS_KILLED: Final = [flow for flow in FLOWS if IS_FULL or not flow.is_long]
#: The target's queue manager keeps its own disk: what it had done by some moment nobody knows afterwards.
FLOWS_WITHOUT_POWER: Final = [flow for flow in FLOWS_KILLED if not flow.has_target][:: 1 if IS_FULL else 4]
#: In the short form a flow is not recorded first: nearly all of them have more points than that.
POINTS_IN_SHORT: Final = 70
#: Of longer flows so many points are drawn.
POINTS_IN_FULL: Final = 150
#: Images of the disk in full, for each flow, beside those behind syncs.
FURTHER_IMAGES: Final = 30


def _name(flow: Flow) -> str:
    return flow.name.replace(" ", "_")


def _points(count: int, draw: random.Random) -> list[int]:
    """The points that are tried, of so many."""
    if not IS_FULL:
        return [draw.randint(1, count)]
    return sorted(draw.sample(range(1, count + 1), min(count, POINTS_IN_FULL)))


def _losses(recorded: Recorded, draw: random.Random) -> Iterator[tuple[int, Loss]]:
    """Behind which changes the power goes, and what is lost: all that is not synced, where somebody relies on syncs."""
    told = sorted({entry.at for entry in recorded.ledger.entries if entry.at}) or [recorded.count]
    if not IS_FULL:
        yield draw.choice(told), draw.choice(list(Loss))
        return
    for change in recorded.changes:
        if change.operation in (Operation.SYNC, Operation.SYNC_FOLDER):
            yield change.number, Loss.ALL
    for _ in range(FURTHER_IMAGES):
        yield draw.choice((draw.choice(told), draw.randint(1, recorded.count))), draw.choice(list(Loss))


def _mended(stage: Stage, what: str) -> None:
    """The gateway starts on what is left, and every question is answered."""
    try:
        mend_and_ask(stage)
    except BaseException as error:
        error.add_note(what)
        raise
    finally:
        stage.close()
    stage.forget()


@pytest.mark.proof
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("flow", FLOWS_KILLED, ids=_name)
def test_a_kill_at_any_change_loses_and_doubles_nothing(theatre: Theatre, flow: Flow) -> None:
    if flow.has_target and (reason := why_unavailable()):
        pytest.skip(reason)
    draw = random.Random(flow.name)
    count = theatre.recorded(flow).count if IS_FULL else POINTS_IN_SHORT
    for number in _points(count, draw):
        moment = draw.choice(list(Moment))
        _mended(theatre.cut_off(flow, number, moment), f"{flow.name}: killed at {number} of {count}, {moment.name}")


@pytest.mark.proof
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("flow", FLOWS_WITHOUT_POWER, ids=_name)
def test_a_power_loss_at_any_moment_loses_and_doubles_nothing(theatre: Theatre, flow: Flow) -> None:
    draw = random.Random(flow.name)
    recorded = theatre.recorded(flow)
    for number, loss in _losses(recorded, draw):
        seed = draw.randrange(1_000_000)
        stage = theatre.power_lost(flow, number, loss, random.Random(seed))
        _mended(stage, f"{flow.name}: power lost behind {number} of {recorded.count}, {loss}, seed {seed}")
