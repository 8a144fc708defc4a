"""The page of the metrics, from a gateway that runs for a moment and is asked for each of them."""

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from unittest.mock import patch

from prometheus_client.metrics_core import Metric

from docs.generator.markdown import code, sentence, table
from gateway import metrics
from gateway.config import Settings
from gateway.daemon import Daemon

INTRODUCTION: Final = """
With `[http] enabled = true`, `GET /metrics` answers these metrics, in the text format of Prometheus or in OpenMetrics.
It also answers metrics of the process, such as `process_cpu_seconds_total`, `process_resident_memory_bytes` and
`process_open_fds`. The name of a counter ends with `_total`, as Prometheus wants it. No client identifier and no topic
is a label, so the number of lines follows from the configuration alone.
""".strip()


def lines() -> list[str]:
    """The page, without its title."""
    rows = [
        (code(_written(each)), each.type, ", ".join(code(name) for name in labels), sentence(each.documentation))
        for each, labels in _collected()
    ]
    return [*INTRODUCTION.splitlines(), "", *table(["Metric", "Type", "Labels", "Meaning"], rows)]


def _written(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def _collected() -> list[tuple[Metric, tuple[str, ...]]]:
    """Every metric family with the names of its labels, of a gateway in a folder of its own."""
    found: list[Metric] = []

    class Asked(metrics.GatewayCollector):
        """Is asked once, when the gateway opens its HTTP port."""

        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(*arguments, **named)  # type: ignore[arg-type]
            found.extend(self.collect())

    with tempfile.TemporaryDirectory() as folder, patch.object(metrics, "GatewayCollector", Asked):
        asyncio.run(_run(Path(folder)))
    return [(family, family._labelnames) for family in found]  # type: ignore[attr-defined]


async def _run(folder: Path) -> None:
    overrides = {"data": str(folder), "listen": "127.0.0.1:0", "audit.enabled": False}
    http = {"http.enabled": True, "http.listen": "127.0.0.1:0"}
    mq = {"mq_listener": [{"listen": "127.0.0.1:0"}]}
    daemon = Daemon(Settings.load(overrides=overrides | http | mq))

    def stop(_: Iterable[object]) -> None:
        daemon._stop.set()

    await daemon.run(stop)
