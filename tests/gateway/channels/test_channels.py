"""What the daemon tells a channel process."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from gateway.channels.channels import Channels
from gateway.config import Settings
from mq_adapters.embedded.engine import Engine

STEP_S = 60.0
#: In place of a channel process: keeps the first line, its settings, where it works.
KEEPS = "import os, sys; open('new', 'w').write(sys.stdin.readline()); os.rename('new', 'settings'); sys.stdin.read()"


def test_files_of_a_target_are_found_although_its_process_works_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = {"name": "PLANT", "user": "gateway", "password_file": "gateway.password", "key_repository": "tls/keys"}
    engine = Engine.open(tmp_path / "var")
    queues = {name: engine.ensure(f"RFHBRIDGE.{name.upper()}", "") for name in ("subscriber", "reply")}
    settings = Settings.model_validate({"data": "var", "target": [target]})

    async def run() -> None:
        channels = Channels(
            engine,
            settings,
            subscriber_queue=queues["subscriber"],
            reply_queue=queues["reply"],
            command=(sys.executable, "-c", KEEPS),
        )
        channels.begin()
        while not Path("var/settings").exists():
            await asyncio.sleep(0.01)
        await channels.end()

    asyncio.run(asyncio.wait_for(run(), STEP_S))
    engine.close()
    told = json.loads(Path("var/settings").read_text())
    assert told["target"]["password_file"] == str(tmp_path / "gateway.password")
    assert told["target"]["key_repository"] == str(tmp_path / "tls" / "keys")
    assert told["target"]["ccdt_url"] == ""
