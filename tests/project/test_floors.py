"""The import contracts of pyproject.toml hold for a small house built right, and each is broken by one wrong import."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# The least that the contracts name: each module with one import that is allowed there.
ALLOWED = {
    "rfhbridge/__init__.py": "import mappings.headers.mqrfh2",
    "rfhbridge/__main__.py": "import gateway.cli",
    "gateway/__init__.py": "",
    "gateway/cli.py": "import spark_audit.verify",
    "gateway/daemon.py": "import gateway.metrics",
    "gateway/metrics.py": "import gateway.bridge",
    "gateway/listener.py": "import gateway.limits",
    "gateway/explain.py": "import gateway.bridge",
    "gateway/operations.py": "import gateway.channels",
    "gateway/bridge/__init__.py": "import gateway.access",
    "gateway/bridge/assembly.py": "import gateway.bridge.bridge",
    "gateway/bridge/bridge.py": "import gateway.bridge.connect, gateway.bridge.sys_topics",
    "gateway/bridge/connect.py": "import gateway.bridge.publish",
    "gateway/bridge/sys_topics.py": "import gateway.bridge.sessions",
    "gateway/bridge/publish.py": "import gateway.bridge.subscribe",
    "gateway/bridge/subscribe.py": "import gateway.bridge.deliver",
    "gateway/bridge/deliver.py": "import gateway.bridge.commands",
    "gateway/bridge/commands.py": "import gateway.bridge.sessions, gateway.bridge.messages",
    "gateway/bridge/sessions.py": "import gateway.bridge.counts",
    "gateway/bridge/messages.py": "",
    "gateway/bridge/counts.py": "",
    "gateway/access.py": "import gateway.limits",
    "gateway/channels.py": "import gateway.audit_trail",
    "gateway/conversion.py": "import gateway.config",
    "gateway/clock_watch.py": "",
    "gateway/limits.py": "",
    "gateway/audit_trail/__init__.py": "",
    "gateway/audit_trail/trail.py": "import spark_audit.record",
    "gateway/audit_trail/exporter.py": "import gateway.audit_trail.witnesses",
    "gateway/audit_trail/witnesses.py": "import gateway.audit_trail.segment",
    "gateway/audit_trail/segment.py": "import gateway.audit_trail.digests",
    "gateway/audit_trail/digests.py": "import spark_audit.trail.digest, gateway.audit_trail.keys",
    "gateway/audit_trail/keys.py": "import gateway.audit_trail.durable_file",
    "gateway/audit_trail/durable_file.py": "",
    "gateway/audit_trail/notes.py": "import spark_audit.record",
    "gateway/compiled.py": "",
    "gateway/config.py": "",
    "gateway/free_memory.py": "",
    "gateway/free_space.py": "",
    "gateway/private_process.py": "",
    "gateway/rescue_folder.py": "",
    "gateway/system_notices.py": "",
    "gateway/log.py": "",
    "gateway/settling.py": "",
    "gateway/signals.py": "",
    "gateway/mqtt/__init__.py": "",
    "gateway/mqtt/wire.py": "import struct",
    "mappings/__init__.py": "",
    "mappings/headers/__init__.py": "",
    "mappings/topics/__init__.py": "",
    "mappings/headers/mqrfh2.py": "import lxml.etree",
    "mq_adapters/__init__.py": "",
    "mq_adapters/broker.py": "import mappings.headers.mqrfh2, mq_adapters.embedded.store.store",
    "mq_adapters/channel.py": "",
    "mq_adapters/client_channel/__init__.py": "",
    "mq_adapters/client_channel/message_descriptors.py": "import mq_adapters.mqmd",
    "mq_adapters/embedded/__init__.py": "",
    "mq_adapters/embedded/store/__init__.py": "",
    "mq_adapters/embedded/store/store.py": "import apsw",
    "mq_adapters/ibm_mq.py": "",
    "mq_adapters/mqmd.py": "import time",
    "mq_adapters/native.py": "",
    "spark_audit/__init__.py": "",
    "spark_audit/record.py": "",
    "spark_audit/trail/__init__.py": "",
    "spark_audit/trail/merkle.py": "",
    "spark_audit/trail/digest.py": "import spark_audit.trail.merkle",
    "spark_audit/personal.py": "",
    "spark_audit/options.py": "",
    "spark_audit/pack.py": "import spark_audit.verify",
    "spark_audit/life.py": "import spark_audit.verify",
    "spark_audit/fates.py": "import spark_audit.life",
    "spark_audit/segment_index.py": "import spark_audit.life",
    "spark_audit/seal.py": "import spark_audit.verify",
    "spark_audit/location.py": "",
    "spark_audit/period.py": "",
    "spark_audit/verify.py": "import spark_audit.record",
    "spark_audit/bulk.py": "import mappings.headers.mqrfh2",
    "spark_audit/read.py": "import pyspark",
    "spark_audit/reperform/__init__.py": "",
    "spark_audit/custody/__init__.py": "",
}

WRONG = [
    ("gateway/bridge/bridge.py", "import rfhbridge", "Imports go down the floors only"),
    ("rfhbridge/__init__.py", "import gateway.mqtt.wire", "The library offers nothing of the gateway"),
    ("rfhbridge/__init__.py", "import pyspark.sql", "never reach Spark"),
    ("mappings/topics/topics.py", "import gateway.cli", "Imports go down the floors only"),
    ("mappings/topics/topics.py", "import spark_audit.record", "Imports go down the floors only"),
    ("mq_adapters/channel.py", "import spark_audit.record", "Imports go down the floors only"),
    ("spark_audit/stream.py", "import mq_adapters.broker", "Imports go down the floors only"),
    ("gateway/bridge/bridge.py", "import gateway.listener", "In gateway imports go down the floors only"),
    ("gateway/listener.py", "import gateway.explain", "In gateway imports go down the floors only"),
    ("gateway/bridge/deliver.py", "import gateway.bridge.publish", "In the bridge imports go down its rooms only"),
    ("gateway/bridge/messages.py", "import gateway.bridge.sessions", "In the bridge imports go down its rooms only"),
    ("gateway/audit_trail/plan.py", "import gateway.channels", "In gateway imports go down the floors only"),
    ("gateway/audit_trail/keys.py", "import gateway.audit_trail.digests", "In the trail notes know no lines"),
    ("gateway/audit_trail/notes.py", "import gateway.audit_trail.segment", "In the trail notes know no lines"),
    ("gateway/log.py", "import gateway.daemon", "In gateway imports go down the floors only"),
    ("mq_adapters/embedded/store/rows.py", "import mq_adapters.broker", "never imports its broker"),
    ("mappings/topics/topics.py", "import time", "mappings is pure"),
    ("mappings/topics/topics.py", "from os import path", "mappings is pure"),
    ("gateway/mqtt/outgoing_flows.py", "import asyncio", "gateway.mqtt is MQTT alone"),
    ("gateway/mqtt/outgoing_flows.py", "import mappings.headers.mqrfh2", "gateway.mqtt is MQTT alone"),
    ("mq_adapters/client_channel/server.py", "import time", "client_channel is a protocol"),
    (
        "mq_adapters/client_channel/server.py",
        "import mq_adapters.embedded",
        "client_channel is a protocol",
    ),
    ("mq_adapters/native.py", "import mq_adapters.ibm_mq", "The native client knows the protocol alone"),
    ("mq_adapters/channel.py", "import botocore.session", "botocore is named in"),
    ("mappings/topics/topics.py", "import lxml.etree", "lxml is named in mappings.headers.mqrfh2 alone"),
    ("spark_audit/reperform/header.py", "from lxml import etree", "lxml is named in mappings.headers.mqrfh2 alone"),
    ("mq_adapters/channel.py", "import apsw", "apsw is named in mq_adapters.embedded alone"),
    ("mq_adapters/channel.py", "import pymqi", "IBM's libraries are named in mq_adapters.ibm_mq.binding alone"),
    ("gateway/bridge/bridge.py", "import pyspark.sql", "never reach Spark"),
    ("spark_audit/verify.py", "import spark_audit.read", "never reach Spark"),
    ("spark_audit/trail/digest.py", "import pyspark.sql", "never reach Spark"),
    ("gateway/bridge/bridge.py", "import spark_audit.read", "takes from spark_audit definitions and verify"),
    ("gateway/bridge/bridge.py", "import spark_audit.reperform", "takes from spark_audit definitions and verify"),
    ("spark_audit/reperform/header.py", "import mappings.headers.mqrfh2", "share no code with what they audit"),
    ("spark_audit/reperform/header.py", "import spark_audit.bulk", "share no code with what they audit"),
    ("spark_audit/custody/__init__.py", "import mappings.headers.mqrfh2", "share no code with what they audit"),
    ("spark_audit/custody/__init__.py", "import pyspark.sql", "never reach Spark"),
    ("spark_audit/stream.py", "import mappings.headers.mqrfh2", "In spark_audit only bulk uses mappings"),
]


@pytest.fixture
def check_house(tmp_path: Path, root: Path) -> Callable[[dict[str, str]], tuple[bool, str]]:
    """Builds a house of the given modules under this project's contracts; tells whether they hold, and the report."""

    def check(modules: dict[str, str]) -> tuple[bool, str]:
        (tmp_path / "pyproject.toml").write_text((root / "pyproject.toml").read_text())
        for name, source in modules.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(source + "\n")
        linter = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
        run = subprocess.run(linter, cwd=tmp_path, capture_output=True, text=True, check=False)
        return run.returncode == 0, run.stdout + run.stderr

    return check


def test_a_house_built_right_keeps_every_contract(check_house: Callable[[dict[str, str]], tuple[bool, str]]) -> None:
    kept, report = check_house(ALLOWED)
    assert kept, report


@pytest.mark.parametrize(("module", "wrong_import", "contract"), WRONG)
def test_one_wrong_import_breaks_its_contract(
    check_house: Callable[[dict[str, str]], tuple[bool, str]], module: str, wrong_import: str, contract: str
) -> None:
    kept, report = check_house(ALLOWED | {module: wrong_import})
    assert not kept, report
    assert any(contract in line and " BROKEN" in line for line in report.splitlines()), report


@pytest.mark.parametrize("package", ["gateway", "gateway.bridge"])
def test_a_module_without_a_floor_is_named(
    check_house: Callable[[dict[str, str]], tuple[bool, str]], package: str
) -> None:
    kept, report = check_house(ALLOWED | {f"{package.replace('.', '/')}/stray.py": ""})
    assert not kept, report
    assert f"{package}.stray" in report
