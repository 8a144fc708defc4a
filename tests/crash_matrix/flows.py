"""The table of the matrix: every flow that must survive a cut at any change of a file."""

from typing import Final

from tests.crash_matrix import publish_flows, queue_flows, session_flows, target_flows, trail_flows
from tests.crash_matrix.stage import Flow

FLOWS: Final[tuple[Flow, ...]] = (
    *publish_flows.FLOWS,
    *session_flows.FLOWS,
    *queue_flows.FLOWS,
    *trail_flows.FLOWS,
    *target_flows.FLOWS,
)
