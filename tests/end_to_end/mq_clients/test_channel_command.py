"""`rfhbridge channel` for the channels of MQ programs."""

import json

from mq_adapters.client_channel.errors import StatusCode
from tests.command_line import Ended, command
from tests.end_to_end.mq_clients.house import House
from tests.end_to_end.mq_clients.raw_client import RawClient

#: An application's name that would be an attribute of another channel without quotes.
NAME = "raw') STATUS(IDLE"


def channel(house: House, *arguments: str) -> Ended:
    return command("channel", *arguments, "--data", str(house.gateway.data))


def test_the_list_and_one_channel_show_each_connection_of_programs(house: House) -> None:
    with RawClient(house.port) as client, RawClient(house.port) as other:
        client.connect(appl_name=NAME)
        other.connect(channel="FEW")
        listed = json.loads(channel(house, "list", "--json").stdout)
        assert [each["channel"] for each in listed] == ["APP.SVRCONN", "FEW"]
        first = listed[0]
        assert (first["type"], first["state"], first["user"], first["application"]) == (
            "program",
            "running",
            "billing",
            NAME,
        )
        assert first["peer"] == f"127.0.0.1:{client.socket.getsockname()[1]}"
        assert first["calls"] > 0
        headings, *rows = channel(house, "list").text.splitlines()
        assert headings.split() == ["channel", "state", "application", "user", "peer", "conversations", "calls"]
        assert [row.split()[0] for row in rows] == ["APP.SVRCONN", "FEW"]
        assert json.loads(channel(house, "show", "FEW", "--json").stdout)[0]["channel"] == "FEW"
        assert "application     raw\n" in channel(house, "show", "FEW").text


def test_a_channel_of_programs_stops_is_shown_as_stopped_and_starts(house: House) -> None:
    with RawClient(house.port) as client:
        client.connect()
        stopped = channel(house, "stop", "APP.SVRCONN")
        assert (stopped.exit_code, stopped.text, stopped.stderr) == (0, "stopped APP.SVRCONN\n", "")
        assert client.end() == StatusCode.QM_TERMINATING
    assert channel(house, "list").text.splitlines()[1].split() == ["APP.SVRCONN", "stopped", "0", "0"]
    assert channel(house, "start", "APP.SVRCONN").exit_code == 0
    assert channel(house, "list").text == (
        "no channel runs, because the configuration names no target, and no program is connected\n"
    )
    with RawClient(house.port) as client:
        client.connect()


def test_a_channel_that_does_not_exist_is_said_to_be_none(house: House) -> None:
    for verb in ("start", "stop"):
        ended = channel(house, verb, "NOWHERE")
        assert (ended.exit_code, "There is no channel NOWHERE" in ended.stderr) == (1, True)
    assert "no program is connected through it" in channel(house, "show", "APP.SVRCONN").stderr
