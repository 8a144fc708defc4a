"""What people see on a terminal."""

import sys

from gateway.cli.terminal import write_table

LONG_NAME = "SYSTEM.A.QUEUE.NAME.OF.FORTY.EIGHT.CHARACTERS.AB"
ROWS = [(LONG_NAME, "12", "2026-11-20T06:50:48+00:00", "commands to the publish/subscribe broker"), ("A", "0", "", "")]


def test_names_are_never_cut_however_narrow_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for columns in ("20", "80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        write_table(("queue", "depth", "oldest message", "description"), ROWS)
        shown = capsys.readouterr().out
        assert f"{LONG_NAME}  12     2026-11-20T06:50:48+00:00  " in shown
        assert "…" not in shown
        last = "".join(line[len(LONG_NAME) + 36 :] for line in shown.splitlines()[1:])
        assert "".join(last.split()) == "commandstothepublish/subscribebroker"
