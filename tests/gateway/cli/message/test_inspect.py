"""`rfhbridge inspect`: what is there, where, and what is wrong with it."""

import base64
import json
import struct

import pytest

from gateway.cli.message.inspect import inspect_data
from gateway.cli.message.view import inspection_json

DEAD_LETTER = (
    b"DLH "
    + (1).to_bytes(4, "little")
    + (2085).to_bytes(4, "little")
    + b"LOST".ljust(48)
    + b"QM1".ljust(48)
    + (546).to_bytes(4, "little")
    + (1208).to_bytes(4, "little")
    + b"MQHRF2  "
    + (26).to_bytes(4, "little")
    + b"rfhbridge".ljust(28)
    + b"20261120"
    + b"06504812"
)


def test_every_field_of_an_mqrfh_is_shown_with_its_offset(rfhbridge, vectors):
    ended = rfhbridge("inspect", stdin=vectors.mqrfh + b"21.5")
    assert (ended.exit_code, ended.stderr) == (0, "")
    shown = [line.split() for line in ended.text.splitlines()]
    for line in (
        ["0", "StrucId", "RFH"],
        ["4", "Version", "1"],
        ["8", "StrucLength", "88"],
        ["12", "Encoding", "546"],
        ["16", "CodedCharSetId", "1208"],
        ["20", "Format", "MQSTR"],
        ["28", "Flags", "0"],
        ["32", "MQPSCommand", "Publish"],
        ["52", "MQPSPubOpts", "RetainPub"],
        ["74", "MQPSTopic", "a/b"],
        ["52", "option", "MQPSPubOpts", "RetainPub", "=", "2", "(MQPUBO_RETAIN_PUBLICATION)"],
        ["command", "Publish"],
        ["21.5"],
    ):
        assert line in shown
    assert "body at byte 88, 4 bytes, Format MQSTR" in ended.text


def test_every_folder_of_an_mqrfh2_is_in_the_json(rfhbridge, vectors):
    ended = rfhbridge("inspect", "--json", stdin=vectors.mqrfh2_two_folders + b"\x00\x01")
    assert ended.exit_code == 0
    told = json.loads(ended.stdout)
    (header,) = told["headers"]
    assert header["structure"] == "MQRFH2"
    assert (header["fields"]["StrucLength"], header["offsets"]["StrucLength"]) == (160, 8)
    assert header["fields"]["NameValueCCSID"] == 1208
    assert [(folder["name"], folder["offset"]) for folder in header["folders"]] == [("mcd", 40), ("psc", 76)]
    assert header["folders"][0]["elements"] == [{"name": "Msd", "offset": 45, "text": "jms_bytes"}]
    assert [(element["name"], element["text"]) for element in header["folders"][1]["elements"]] == [
        ("Command", "RegSub"),
        ("RegOpt", "CorrelAsId"),
        ("Topic", "a/#"),
    ]
    assert [element["offset"] for element in header["folders"][1]["elements"]] == [81, 106, 133]
    assert header["options"] == [
        {
            "offset": 106,
            "field": "RegOpt",
            "token": "CorrelAsId",
            "number": 1,
            "constant": "MQREGO_CORREL_ID_AS_IDENTITY",
        }
    ]
    assert (told["command"], told["problems"]) == ("RegSub", [])
    assert (told["body_offset"], base64.b64decode(told["body_base64"])) == (160, b"\x00\x01")


def test_offsets_in_the_json_are_those_of_the_bytes(rfhbridge, vectors):
    data = vectors.mqrfh2_two_folders
    told = json.loads(rfhbridge("inspect", "--json", stdin=data).stdout)
    for folder in told["headers"][0]["folders"]:
        assert data[folder["offset"] :].startswith(b"<" + folder["name"].encode())
        for element in folder["elements"]:
            assert data[element["offset"] :].startswith(b"<" + element["name"].encode())


def test_decimal_sum_of_options_is_taken_apart(rfhbridge):
    string = b"MQPSCommand RegSub MQPSRegOpts 257 MQPSTopic a  "
    message = bytes.fromhex("52464820 01000000") + (32 + len(string)).to_bytes(4, "little")
    message += bytes.fromhex("22020000 b8040000 2020202020202020 00000000") + string
    told = json.loads(rfhbridge("inspect", "--json", stdin=message).stdout)
    assert [(option["token"], option["number"]) for option in told["headers"][0]["options"]] == [
        ("CorrelAsId", 1),
        ("InformIfRet", 256),
    ]


def test_header_behind_a_dead_letter_header_is_found(rfhbridge, vectors):
    told = json.loads(rfhbridge("inspect", "--json", stdin=DEAD_LETTER + vectors.mqrfh2).stdout)
    assert [(header["structure"], header["offset"]) for header in told["headers"]] == [("MQDLH", 0), ("MQRFH2", 172)]
    assert told["headers"][0]["fields"]["DestQName"] == "LOST"
    assert told["headers"][0]["fields"]["Reason"] == 2085


def envelope() -> bytes:
    """An MQXQH by IBM's layout, with an MQMD version 1 in it; big-endian."""
    names = struct.pack(">4si48s48s", b"XQH ", 1, b"ORDERS".ljust(48), b"PLANT".ljust(48))
    begin = struct.pack(">4siiiiiii8sii", b"MD  ", 1, 0, 8, -1, 0, 546, 1208, b"MQHRF2  ", 4, 1)
    end = struct.pack(">i28s8s8s4s", 28, b"orders".ljust(28), b"20261129", b"10203000", b"")
    return names + begin + bytes(range(48)) + bytes(4) + b" " * 108 + bytes(32) + b" " * 32 + end


def test_what_an_envelope_for_another_queue_manager_holds_is_shown(rfhbridge, vectors):
    assert len(envelope()) == 428
    told = json.loads(rfhbridge("inspect", "--json", stdin=envelope() + vectors.mqrfh2).stdout)
    assert [(header["structure"], header["offset"]) for header in told["headers"]] == [("MQXQH", 0), ("MQRFH2", 428)]
    fields = told["headers"][0]["fields"]
    assert (fields["RemoteQName"], fields["Priority"], fields["PutApplName"]) == ("ORDERS", 4, "orders")
    assert fields["MsgId"] == bytes(range(24)).hex()
    assert told["command"] == "Publish"


@pytest.mark.parametrize("damage", [(4, b"\0\0\0\2"), (104, b"XX  "), (136, b"")])
def test_a_wrong_envelope_is_told(rfhbridge, damage):
    at, changed = damage
    wrong = envelope()[:at] + changed + envelope()[at + len(changed) :] if changed else envelope()[:at]
    ended = rfhbridge("inspect", "--json", stdin=wrong)
    assert ended.exit_code != 0
    assert json.loads(ended.stdout)["problems"][0]["reason_code"] in (2260, 2334)


def cics_header(next_format: bytes, *, struc_length: int = 180) -> bytes:
    """An MQCIH by IBM's layout, version 2 and little-endian, with nothing but zeros in its own fields."""
    fixed = b"CIH " + struct.pack("<iiii8si", 2, struc_length, 546, 1208, next_format, 0)
    return fixed + bytes(180 - len(fixed))


@pytest.mark.parametrize("options", [(), ("--format", "MQCICS")])
def test_header_that_is_walked_over_is_shown_as_one(rfhbridge, vectors, options):
    ended = rfhbridge("inspect", *options, stdin=cics_header(b"MQHRF   ") + vectors.mqrfh + b"body")
    lines = ended.stdout.decode().splitlines()
    assert ended.exit_code == 0
    assert lines[0] == "MQCIH at byte 0, CodedCharSetId 1208, Encoding 546 (little-endian)"
    assert "     8  StrucLength     180" in lines
    assert "    20  Format          MQHRF" in lines
    assert lines[8].startswith("MQRFH at byte 180,")
    assert any(line.startswith(f"body at byte {180 + len(vectors.mqrfh)}, 4 bytes") for line in lines)
    shown = json.loads(rfhbridge("inspect", "--json", stdin=cics_header(b"MQHRF   ") + vectors.mqrfh).stdout)
    assert [header["structure"] for header in shown["headers"]] == ["MQCIH", "MQRFH"]
    assert shown["headers"][0]["fields"]["Version"] == 2


def test_header_that_cannot_be_walked_over_is_part_of_the_body(rfhbridge, vectors):
    header = vectors.mqrfh.replace(b"MQSTR   ", b"MQIMS   ")
    for behind in (b"IIH ", cics_header(b"MQSTR   ", struc_length=9_999)):
        shown = json.loads(rfhbridge("inspect", "--json", stdin=header + behind).stdout)
        assert [header["structure"] for header in shown["headers"]] == ["MQRFH"]
        assert (shown["body_offset"], shown["body_format"]) == (len(header), "MQIMS")


def test_ebcdic_header_is_shown_in_letters(rfhbridge, vectors):
    ended = rfhbridge("inspect", stdin=vectors.mqrfh_ebcdic)
    assert ended.exit_code == 0
    assert "CodedCharSetId 500" in ended.text
    assert "MQPSTopic       a/b" in ended.text


@pytest.mark.parametrize("name", ["mqrfh", "mqrfh2", "mqrfh_ebcdic", "mqrfh2_two_folders"])
def test_message_cut_at_any_length_shows_what_is_there_and_the_problem(rfhbridge, vectors, name):
    message = getattr(vectors, name)
    for length in range(len(message)):
        data = message[:length]
        told = inspection_json(inspect_data(data), data)
        assert told["problems"], length
        assert base64.b64decode(told["body_base64"]) == data
        if length >= 12:
            assert told["headers"][0]["fields"]["StrucLength"] == len(message)
        if length in (0, 11, 12, len(message) - 1):
            ended = rfhbridge("inspect", "--json", stdin=data)
            assert (ended.exit_code, ended.stderr, json.loads(ended.stdout)) == (1, "", told), length


def test_problem_stands_behind_what_is_readable(rfhbridge, vectors):
    ended = rfhbridge("inspect", stdin=vectors.mqrfh[:60])
    assert ended.exit_code == 1
    lines = ended.text.splitlines()
    assert lines[-1].startswith("problem at byte 8: MQRC_RFH_ERROR (2334)")
    assert "    32  NameValueString MQPSCommand Publish MQPSPubO" in lines
    assert sum(line.startswith("problem") for line in lines) == 1


@pytest.mark.parametrize(
    ("string", "offset", "reason"),
    [
        (b'MQPSCommand Publish MQPSTopic "a b  ', 62, 2335),
        (b"MQPSCommand Publish MQPSTopic       ", 68, 2335),
        (b"MQPSCommand Publish MQPSPubOpts Lou ", 52, 3084),
        (b"MQPSCommand Jump MQPSTopic a        ", 32, 2336),
        (b"MQPSTopic a                         ", 32, 2336),
        (b"MQPSCommand Publish                 ", 0, 2339),
        (b"MQPSCommand Publish MQPSFoo a       ", 52, 2337),
        (b"MQPSCommand RegSub MQPSTopic a MQPSSubName x MQPSSubName y  ", 77, 2338),
    ],
)
def test_wrong_name_value_string_is_a_problem_with_its_place(rfhbridge, string, offset, reason):
    message = bytes.fromhex("52464820 01000000") + (32 + len(string)).to_bytes(4, "little")
    message += bytes.fromhex("22020000 b8040000 2020202020202020 00000000") + string
    ended = rfhbridge("inspect", "--json", stdin=message)
    problem = json.loads(ended.stdout)["problems"][0]
    assert ended.exit_code == 1
    assert problem["reason_code"] == reason
    assert problem["offset"] == offset


@pytest.mark.parametrize(
    ("folders", "found", "reason"),
    [
        ([b"<psc><Command>Jump</Command></psc>  "], b"<Command>", 2336),
        ([b"<psc><Topic>a</Topic></psc> "], b"<psc>", 2336),
        ([b"<psc><Command>RegSub</Command><Topic>a</Topic><Foo>a</Foo></psc>    "], b"<Foo>", 2337),
        ([b"<psc><Command>Publish</Command><Topic></Topic></psc>"], b"<Topic>", 3072),
        ([b"<psc><Command>Publish</Command></psc>   "], b"<psc>", 2339),
        (
            [b"<usr><Foo>a</Foo></usr> ", b"<psc><Command>RegSub</Command><Foo>a</Foo></psc>"],
            b"<Foo>a</Foo></psc>",
            2337,
        ),
        ([b"<psc><Command>Publish</Command></psc>   ", b"<psc><Topic>a</Topic></psc> "], b"<psc><Topic>", 2334),
    ],
)
def test_wrong_command_in_a_folder_is_a_problem_with_its_place(rfhbridge, folders, found, reason):
    variable = b"".join(len(folder).to_bytes(4, "little") + folder for folder in folders)
    message = bytes.fromhex("52464820 02000000") + (36 + len(variable)).to_bytes(4, "little")
    message += bytes.fromhex("22020000 b8040000 2020202020202020 00000000 b8040000") + variable
    problem = json.loads(rfhbridge("inspect", "--json", stdin=message).stdout)["problems"][0]
    assert (problem["reason_code"], problem["offset"]) == (reason, message.index(found))
    assert f"problem at byte {problem['offset']}: " in rfhbridge("inspect", stdin=message).text


def test_malformed_folder_is_shown_as_its_text(rfhbridge, vectors):
    damaged = vectors.mqrfh2.replace(b"</Topic>", b"</Topik>")
    ended = rfhbridge("inspect", stdin=damaged)
    assert ended.exit_code == 1
    assert "<psc><Command>Publish</Command>" in ended.text
    assert "problem at byte 40: MQRC_RFH_FORMAT_ERROR (2421)" in ended.text


def test_header_that_is_no_command_is_no_problem(rfhbridge):
    folder = b"<usr><shop>7</shop></usr>   "
    message = bytes.fromhex("52464820 02000000") + (40 + len(folder)).to_bytes(4, "little")
    message += bytes.fromhex("22020000 b8040000 2020202020202020 00000000 b8040000")
    message += len(folder).to_bytes(4, "little") + folder
    told = json.loads(rfhbridge("inspect", "--json", stdin=message).stdout)
    assert (told["command"], told["problems"]) == (None, [])


def test_control_characters_of_a_message_do_not_reach_the_terminal(rfhbridge):
    string = b"MQPSCommand Publish MQPSTopic a\x1b[31m\x07 "
    string += b" " * (-len(string) % 4)
    message = bytes.fromhex("52464820 01000000") + (32 + len(string)).to_bytes(4, "little")
    message += bytes.fromhex("22020000 b8040000 2020202020202020 00000000") + string
    ended = rfhbridge("inspect", stdin=message)
    assert b"\x1b" not in ended.stdout
    assert b"\x07" not in ended.stdout
    assert b"a\\x1b[31m\\x07" in ended.stdout


def test_long_body_is_shown_in_part(rfhbridge, vectors):
    ended = rfhbridge("inspect", stdin=vectors.mqrfh + "é".encode() * 5000)
    assert ended.exit_code == 0
    assert "8976 bytes more" in ended.text
    assert len(ended.stdout) < 3000


@pytest.mark.parametrize(
    "arguments", [["a", "b"], ["--ccsid", "x"], ["--encoding", "99999999999"], ["--format", "NINELONG9"]]
)
def test_wrong_use_is_exit_code_2(rfhbridge, arguments):
    assert rfhbridge("inspect", *arguments).exit_code == 2
