"""`rfhbridge queue` without a gateway: the commands own the store for as long as they run."""

import base64
import json
import os

import pytest

from tests.processes import forked

NO_CORREL_ID = "00" * 24


@pytest.fixture
def queue(rfhbridge, data_folder):
    """Runs a queue command on a data folder of the test's own, where queue ORDERS is defined."""

    def run(command, *arguments, stdin=b""):
        return rfhbridge("queue", command, *arguments, "--data", data_folder, stdin=stdin)

    assert run("define", "ORDERS", "--description", "orders of the shop").exit_code == 0
    return run


def test_put_prints_the_msg_id_that_get_finds(queue, vectors):
    put = queue("put", "ORDERS", "-", "--format", "MQHRF2", stdin=vectors.mqrfh2 + b"21.5")
    assert put.exit_code == 0
    assert len(bytes.fromhex(put.text.strip())) == 24
    told = json.loads(queue("get", "ORDERS", "--msg-id", put.text.strip(), "--json").stdout)
    assert told["md"]["msg_id"] == put.text.strip()
    assert told["headers"][0]["structure"] == "MQRFH2"
    assert base64.b64decode(told["body_base64"]) == b"21.5"
    assert queue("depth", "ORDERS").text == "0\n"


def test_defaults_of_put_are_those_of_a_datagram(queue):
    queue("put", "ORDERS", "-", stdin=b"x")
    md = json.loads(queue("get", "ORDERS", "--json").stdout)["md"]
    assert (md["msg_type"], md["encoding"], md["coded_char_set_id"]) == (8, 546, 1208)
    assert (md["correl_id"], md["format"], md["expiry"]) == (NO_CORREL_ID, "", -1)
    assert (md["reply_to_q"], md["reply_to_q_mgr"]) == ("", "")


def test_every_option_of_put_reaches_the_mqmd(queue):
    options = "--format MQSTR --reply-to ANSWERS@QM2 --correl-id 0102 --msg-type request --persistence 0"
    more = "--expiry 6000 --encoding 273 --ccsid 500"
    put = queue("put", "ORDERS", "-", *options.split(), *more.split(), "--persistence", "persistent", stdin=b"x")
    assert put.exit_code == 0
    md = json.loads(queue("browse", "ORDERS", "--json").stdout)[0]["md"]
    assert (md["format"], md["reply_to_q"], md["reply_to_q_mgr"]) == ("MQSTR", "ANSWERS", "QM2")
    assert md["correl_id"] == "0102" + "00" * 22
    assert (md["msg_type"], md["persistence"], md["encoding"], md["coded_char_set_id"]) == (1, 1, 273, 500)
    assert 5900 < md["expiry"] <= 6000


def test_put_takes_a_file(queue, tmp_path):
    file = tmp_path / "message.bin"
    file.write_bytes(b"\x00\xff")
    assert queue("put", "ORDERS", file).exit_code == 0
    assert queue("get", "ORDERS", "--raw").stdout == b"\x00\xff"


def test_put_as_json_gives_the_msg_id(queue):
    msg_id = json.loads(queue("put", "ORDERS", "-", "--json", stdin=b"x").stdout)["msg_id"]
    assert msg_id == json.loads(queue("get", "ORDERS", "--json").stdout)["md"]["msg_id"]


def test_raw_gives_headers_and_body_and_nothing_else(queue, vectors):
    queue("put", "ORDERS", "-", "--format", "MQHRF", stdin=vectors.mqrfh + b"\n\x00")
    assert queue("browse", "ORDERS", "--raw").stdout == vectors.mqrfh + b"\n\x00"
    assert queue("get", "ORDERS", "--raw").stdout == vectors.mqrfh + b"\n\x00"


def test_get_by_correl_id_takes_the_oldest_of_its_kind(queue):
    for correl_id, body in (("0a", b"1"), ("0b", b"2"), ("0b", b"3")):
        queue("put", "ORDERS", "-", "--correl-id", correl_id, stdin=body)
    assert queue("get", "ORDERS", "--correl-id", "0b", "--raw").stdout == b"2"
    assert queue("browse", "ORDERS", "--raw").stdout == b"13"


def test_browse_shows_md_headers_and_body_and_takes_nothing(queue, vectors):
    queue("put", "ORDERS", "-", "--format", "MQHRF2", stdin=vectors.mqrfh2 + b"warm")
    ended = queue("browse", "ORDERS")
    assert ended.exit_code == 0
    for text in ("message 1", "MsgId", "CorrelId", "Format           MQHRF2", "folder psc", "Topic a/b", "  warm"):
        assert text in ended.text
    assert queue("depth", "ORDERS").text == "1\n"


def test_malformed_header_does_not_stop_browse(queue, vectors):
    queue("put", "ORDERS", "-", "--format", "MQHRF2", stdin=vectors.mqrfh2[:70])
    queue("put", "ORDERS", "-", stdin=b"next")
    ended = queue("browse", "ORDERS")
    assert ended.exit_code == 0
    assert "problem at byte 8: MQRC_RFH_ERROR (2334)" in ended.text
    assert "52 46 48 20 02 00 00 00 7c" in ended.text
    assert "  next" in ended.text
    first, second = json.loads(queue("browse", "ORDERS", "--json").stdout)
    assert first["problems"][0]["reason_code"] == 2334
    assert base64.b64decode(first["body_base64"]) == vectors.mqrfh2[:70]
    assert base64.b64decode(second["body_base64"]) == b"next"


def test_browse_of_an_empty_queue_is_an_empty_array(queue):
    assert json.loads(queue("browse", "ORDERS", "--json").stdout) == []
    assert queue("browse", "ORDERS").stdout == b""


def test_list_names_every_queue_with_depth_and_description(queue):
    queue("put", "ORDERS", "-", stdin=b"x")
    told = {each["name"]: each for each in json.loads(queue("list", "--json").stdout)}
    assert (told["ORDERS"]["depth"], told["ORDERS"]["description"]) == (1, "orders of the shop")
    assert told["ORDERS"]["oldest_put_at"].endswith("+00:00")
    assert told["SYSTEM.DEAD.LETTER.QUEUE"]["oldest_put_at"] is None
    lines = queue("list").text.splitlines()
    assert lines[0].split() == ["queue", "depth", "oldest", "message", "description"]
    assert any(line.startswith("ORDERS ") and line.endswith("orders of the shop") for line in lines)


def test_clear_says_how_many_messages_there_were(queue):
    for _ in range(3):
        queue("put", "ORDERS", "-", stdin=b"x")
    assert queue("clear", "ORDERS").text == "cleared 3\n"
    assert json.loads(queue("clear", "ORDERS", "--json").stdout) == {"name": "ORDERS", "cleared": 0}
    assert json.loads(queue("depth", "ORDERS", "--json").stdout) == {"name": "ORDERS", "depth": 0}


@pytest.mark.parametrize("command", ["depth", "browse", "get", "clear", "put"])
def test_undefined_queue_is_2085(queue, command):
    ended = queue(command, "NOWHERE", *(["-"] if command == "put" else []))
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "2085 MQRC_UNKNOWN_OBJECT_NAME" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_get_from_an_empty_queue_is_2033_and_never_waits_without_a_gateway(queue):
    ended = queue("get", "ORDERS", "--wait", "3600")
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "2033 MQRC_NO_MSG_AVAILABLE" in ended.stderr


def test_defining_a_queue_twice_is_2100_and_a_bad_name_2152(queue):
    assert "2100" in queue("define", "ORDERS").stderr
    ended = queue("define", "A QUEUE")
    assert ended.exit_code == 1
    assert "2152" in ended.stderr


def test_missing_file_is_one_line_and_puts_nothing(queue, tmp_path):
    ended = queue("put", "ORDERS", tmp_path / "none")
    assert (ended.exit_code, ended.stderr) == (
        1,
        f"rfhbridge: {tmp_path / 'none'}: No such file or directory (see that the path is right)\n",
    )
    assert queue("depth", "ORDERS").text == "0\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["put", "ORDERS"],
        ["put", "ORDERS", "-", "--format", "TOO.LONG."],
        ["put", "ORDERS", "-", "--format", "é"],
        ["put", "ORDERS", "-", "--correl-id", "0"],
        ["put", "ORDERS", "-", "--correl-id", "00" * 25],
        ["put", "ORDERS", "-", "--correl-id", ""],
        ["put", "ORDERS", "-", "--msg-type", "letter"],
        ["put", "ORDERS", "-", "--msg-type", "0"],
        ["put", "ORDERS", "-", "--persistence", "3"],
        ["put", "ORDERS", "-", "--expiry", "0"],
        ["put", "ORDERS", "-", "--expiry", "-5"],
        ["put", "ORDERS", "-", "--reply-to", "A@B@C"],
        ["put", "ORDERS", "-", "--reply-to", "@B"],
        ["put", "ORDERS", "-", "--encoding", "x"],
        ["put", "ORDERS", "-", "--encoding", "2147483648"],
        ["put", "ORDERS", "-", "--ccsid", "-2147483649"],
        ["get"],
        ["get", "ORDERS", "--wait", "-1"],
        ["get", "ORDERS", "--wait", "inf"],
        ["get", "ORDERS", "--msg-id", "xyz"],
        ["browse", "ORDERS", "MORE"],
        ["browse", "ORDERS", "--raw", "--json"],
        ["get", "ORDERS", "--raw", "--json"],
        ["define"],
        ["depth"],
        ["clear"],
        ["list", "ORDERS"],
        ["drop", "ORDERS"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_exit_code_2_in_one_line(queue, arguments):
    ended = queue(*arguments)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert ended.stderr.count("\n") == 1


def test_data_folder_may_come_from_the_configuration(rfhbridge, tmp_path):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'data = "{tmp_path / "elsewhere"}"\n')
    assert rfhbridge("queue", "define", "A", "--config", config).exit_code == 0
    assert "A" in rfhbridge("queue", "list", "--data", tmp_path / "elsewhere").text
    ended = rfhbridge("queue", "list", "--config", tmp_path / "none.toml")
    assert ended.exit_code == 2
    assert "none.toml" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["depth", "A"],
        ["browse", "A"],
        ["get", "A"],
        ["clear", "A"],
        ["verify"],
        ["backup", "copy.sqlite"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("is_there", [False, True], ids=["no folder", "an empty folder"])
def test_command_that_only_looks_makes_no_store(rfhbridge, data_folder, arguments, is_there):
    if is_there:
        data_folder.mkdir()
    ended = rfhbridge("queue", *arguments, "--data", data_folder)
    message = f"rfhbridge: there is no store in {data_folder} (name the gateway's folder with --data)\n"
    assert (ended.exit_code, ended.stdout, ended.stderr) == (1, b"", message)
    assert data_folder.exists() == is_there
    assert not is_there or list(data_folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["queue", "list"], ["queue", "put", "A", "-"], ["mqsc"], ["run"], ["audit", "verify"]], ids=" ".join
)
def test_data_folder_without_a_name_is_wrong_use(rfhbridge, arguments):
    ended = rfhbridge(*arguments, "--data", "")
    assert (ended.exit_code, ended.stdout) == (3 if arguments[0] == "audit" else 2, b"")
    assert "'--data'" in ended.stderr


def test_endless_input_is_2030_and_puts_nothing(queue):
    ended = queue("put", "ORDERS", "/dev/zero")
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "2030 MQRC_MSG_TOO_BIG_FOR_Q" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert queue("depth", "ORDERS").text == "0\n"


def test_data_folder_that_cannot_be_made_is_one_line(rfhbridge, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    ended = rfhbridge("queue", "define", "A", "--data", tmp_path / "file" / "data")
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert ended.stderr.count("\n") == 1
    assert "Traceback" not in ended.stderr


def test_message_stays_on_the_queue_when_nobody_reads_it(queue, data_folder):
    queue("put", "ORDERS", "-", stdin=b"precious")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = forked.rfhbridge("queue", "get", "ORDERS", "--data", data_folder, stdout=writing)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert queue("get", "ORDERS", "--raw").stdout == b"precious"
