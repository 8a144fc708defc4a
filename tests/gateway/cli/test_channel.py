"""`rfhbridge channel` where there is none; beside targets see tests/end_to_end/ibm_mq."""

import json

import pytest


@pytest.fixture
def channel(rfhbridge, data_folder):
    """Runs a channel command on a store that no gateway serves."""
    assert rfhbridge("queue", "define", "ORDERS", "--data", data_folder).exit_code == 0
    return lambda *arguments: rfhbridge("channel", *arguments, "--data", data_folder)


def test_no_channels_are_a_list_without_any(channel):
    listed = channel("list", "--json")
    assert (listed.exit_code, json.loads(listed.stdout)) == (0, [])
    assert channel("list").text == "no channel runs, because no gateway runs here\n"


def test_a_channel_that_is_not_there_is_an_error(channel):
    shown = channel("show", "CENTRAL.OUT.0")
    assert shown.exit_code == 1
    assert "AMQ8420I" in shown.stderr
