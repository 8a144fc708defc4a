"""What the export of the audit trail costs QoS 1: the same load with the exporter at work, and with it standing still.

The notes are stored with their messages in both runs; standing still, the exporter leaves them on the audit queue. Once
it has a core that neither gateway nor generator may use, once all share all cores. Each figure is the median of some
runs, taken in turn, because the disk of a shared machine changes from one second to the next.
"""

import os
import signal
import time
from statistics import median
from typing import Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.load.wire import BenchmarkError
from benchmarks.qos1_offline import CONNECTIONS, PAYLOAD_BYTES, WINDOW, measure
from benchmarks.servers import Gateway, cpu_s

NAME: Final = "export"
_RUNS: Final = 3
_START_WAIT_S: Final = 15.0
_POLL_S: Final = 0.02
_ON: Final = "export on"
_OFF: Final = "export off"
_OWN_CORE: Final = "a core for the exporter"
_SHARED: Final = "all share all cores"


def run(seconds: float) -> Report:
    """Measures on and off, with a core for the exporter where there are two, and without."""
    cores = os.sched_getaffinity(0)
    rows: list[Row] = []
    for case in (_OWN_CORE, _SHARED) if len(cores) > 1 else (_SHARED,):
        runs = {_ON: list[_Run](), _OFF: list[_Run]()}
        for _ in range(_RUNS):
            for subject, done in runs.items():
                done.append(_Run(seconds, cores, has_own_core=case == _OWN_CORE, exports=subject == _ON))
        rows += [_row(subject, case, done) for subject, done in runs.items()]
    return Report(
        name=NAME,
        title=f"QoS 1, {CONNECTIONS} connections with {WINDOW} in flight, {PAYLOAD_BYTES} B, with and without export",
        rows=tuple(rows),
        notes=tuple(_ratio(on, off) for on, off in zip(rows[::2], rows[1::2], strict=True)),
    )


class _Run:
    """One run: messages a second, and CPU of gateway and exporter for one message, microseconds."""

    def __init__(self, seconds: float, cores: set[int], *, has_own_core: bool, exports: bool) -> None:
        with Gateway() as gateway:
            exporter = _exporter_at_work(gateway)
            if has_own_core:
                own = max(cores)
                os.sched_setaffinity(gateway.process_id, cores - {own})
                os.sched_setaffinity(exporter, {own})
                os.sched_setaffinity(0, cores - {own})  # the generator inherits it
            try:
                if not exports:
                    os.kill(exporter, signal.SIGSTOP)
                before_s = cpu_s(exporter)
                outcome, used_s = measure(gateway, seconds)
                exporter_s = cpu_s(exporter) - before_s
            finally:
                os.sched_setaffinity(0, cores)
                gateway.kill()
                os.kill(exporter, signal.SIGKILL)
        self.rate = outcome.rate
        self.gateway_us = used_s / outcome.messages * 1e6
        self.exporter_us = exporter_s / outcome.messages * 1e6


def _exporter_at_work(gateway: Gateway) -> int:
    """The exporter's process, once it has written its first line: before, it may not be itself yet."""
    deadline_s = time.monotonic() + _START_WAIT_S
    while time.monotonic() < deadline_s:
        exporter = gateway.exporter
        if exporter is not None and any((gateway.data / "trail").glob("*.open")):
            return exporter
        time.sleep(_POLL_S)
    raise BenchmarkError("the gateway's exporter does not run, so the audit is not on")


def _row(subject: str, case: str, runs: list[_Run]) -> Row:
    return Row(
        subject=subject,
        case=case,
        measures=(
            Measure(name="rate", value=median(run.rate for run in runs), unit="messages/s"),
            Measure(name="CPU", value=median(run.gateway_us for run in runs), unit="us/message"),
            Measure(
                name="CPU of the exporter meanwhile", value=median(run.exporter_us for run in runs), unit="us/message"
            ),
        ),
    )


def _ratio(on: Row, off: Row) -> str:
    return f"{on.case}: with the export on the rate is {on.value('rate') / off.value('rate'):.0%} of that with it off."
