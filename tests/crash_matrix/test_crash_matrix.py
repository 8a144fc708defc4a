"""kill -9 at any change of any file, and a power loss behind it: nothing acknowledged is lost, QoS 2 comes once.

short: a point of each flow. In full (RFHBRIDGE_PROOF=full): every point of every flow, and images of the disk
behind every acknowledgement. A failure names flow, point and moment; with these it comes again:

    make test ARGS="tests/crash_matrix -k 'kill and qos_1_in'"
"""

import os
import random

import pytest

from tests.conftest import PROOF_VARIABLE
from tests.crash_matrix.disk_images import Loss
from tests.crash_matrix.flows import FLOWS
from tests.crash_matrix.points import Moment
from tests.crash_matrix.questions import mend_and_ask
from tests.crash_matrix.stage import Flow, Stage, Theatre
from tests.ibm_mq_stand_in.process import why_unavailable

#: The target's queue manager keeps its own disk: what it had done by some moment nobody knows afterwards.
FLOWS_OF_ONE_DISK = [flow for flow in FLOWS if not flow.has_target]
#: In the short form a flow is not recorded first: nearly all of them have more points than that.
POINTS_IN_SHORT = 70
#: In the short form the power goes in a quarter of the flows; all flows are killed.
FLOWS_WITHOUT_POWER = FLOWS_OF_ONE_DISK if os.environ.get(PROOF_VARIABLE) == "full" else FLOWS_OF_ONE_DISK[::4]
#: Images of the disk in full, for each flow, beside those behind acknowledgements.
RANDOM_IMAGES = 20


def _name(flow: Flow) -> str:
    return flow.name.replace(" ", "_")


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
@pytest.mark.parametrize("flow", FLOWS, ids=_name)
def test_a_kill_at_any_change_loses_and_doubles_nothing(theatre: Theatre, flow: Flow, proof_scale: str) -> None:
    if flow.has_target and (reason := why_unavailable()):
        pytest.skip(reason)
    draw = random.Random(flow.name)
    count = theatre.recorded(flow).count if proof_scale == "full" else POINTS_IN_SHORT
    for number in range(1, count + 1) if proof_scale == "full" else [draw.randint(1, count)]:
        moment = draw.choice(list(Moment))
        _mended(theatre.cut_off(flow, number, moment), f"{flow.name}: killed at {number} of {count}, {moment.name}")


@pytest.mark.proof
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("flow", FLOWS_WITHOUT_POWER, ids=_name)
def test_a_power_loss_at_any_moment_loses_and_doubles_nothing(theatre: Theatre, flow: Flow, proof_scale: str) -> None:
    draw = random.Random(flow.name)
    recorded = theatre.recorded(flow)
    told = sorted({entry.at for entry in recorded.ledger.entries if entry.at})
    cases = [(number, loss) for number in told for loss in Loss]
    cases += [(draw.randint(1, recorded.count), draw.choice(list(Loss))) for _ in range(RANDOM_IMAGES)]
    for number, loss in cases if proof_scale == "full" else draw.sample(cases, 1):
        seed = draw.randrange(1_000_000)
        stage = theatre.power_lost(flow, number, loss, random.Random(seed))
        _mended(stage, f"{flow.name}: power lost behind {number} of {recorded.count}, {loss}, seed {seed}")
