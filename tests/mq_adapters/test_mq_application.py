"""examples/mq_application.py where something is wrong; tests/end_to_end/test_readme.py runs it beside a gateway."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "mq_application.py"


def test_application_without_a_gateway_says_so_in_one_line_and_makes_no_store(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLE), "--data", str(tmp_path / "var")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("mq_application: connect to the gateway of ")
    assert "2059 MQRC_Q_MGR_NOT_AVAILABLE (start the gateway, or name the right data folder" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "var").exists()
