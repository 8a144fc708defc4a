"""`rfhbridge mqsc`, and the commands that check and copy the store."""

import json
import os
import pwd
import sqlite3

import ormsgpack
import pytest

from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.direct import Direct
from mq_adapters.message import Message, MessageDescriptor

SCRIPT = b"""* queues of the shop
DEFINE QLOCAL(ORDERS) +
       DESCR('orders of the shop') MAXDEPTH(5)
DEFINE QALIAS(DOOR) TARGET(ORDERS)
END
DEFINE QLOCAL(NEVER)
"""


@pytest.fixture
def mqsc(rfhbridge, data_folder):
    """Gives commands on standard input to a data folder of the test's own."""

    def run(text, *arguments):
        return rfhbridge("mqsc", *arguments, "--data", data_folder, stdin=text)

    return run


def test_commands_are_carried_out_up_to_end_and_kept(mqsc, rfhbridge, data_folder):
    defined = mqsc(SCRIPT)
    assert (defined.exit_code, defined.text.splitlines()) == (
        0,
        ["AMQ8006I: Queue created.", "AMQ8006I: Queue created."],
    )
    assert rfhbridge("queue", "put", "DOOR", "-", "--data", data_folder, stdin=b"x").exit_code == 0
    shown = mqsc(b"display qlocal(orders) curdepth descr")
    assert "CURDEPTH(1)" in shown.text
    assert "DESCR('orders of the shop')" in shown.text
    assert "NEVER" not in mqsc(b"DISPLAY Q(*)").text


@pytest.mark.parametrize("text", [b"DISPLAY QLOCAL(*)\n", b"  dis q(a)\n"])
def test_question_alone_makes_no_store(mqsc, data_folder, text):
    ended = mqsc(text)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert f"there is no store in {data_folder}" in ended.stderr
    assert not data_folder.exists()


@pytest.mark.parametrize("text", [b"", b"END\n", b"* nothing\n"])
def test_script_without_a_command_makes_no_store(mqsc, data_folder, text):
    assert mqsc(text).exit_code == 0
    assert not data_folder.exists()


def test_endless_line_is_one_error(mqsc):
    ended = mqsc(bytes(1 << 20))
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "is no MQSC command" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_commands_may_come_from_a_file(mqsc, tmp_path):
    script = tmp_path / "queues.mqsc"
    script.write_bytes(SCRIPT)
    assert mqsc(b"", script).exit_code == 0


def test_a_command_in_the_place_of_the_file_is_told_where_it_belongs(mqsc, data_folder):
    ended = mqsc(b"", "DISPLAY QLOCAL(*)")
    assert ended.exit_code == 1
    assert ended.stderr.endswith("(give a command on standard input: echo 'DISPLAY QLOCAL(*)' | rfhbridge mqsc)\n")
    assert (
        mqsc(b"", "none.mqsc").stderr
        == "rfhbridge: none.mqsc: No such file or directory (see that the path is right)\n"
    )
    assert not data_folder.exists()


def test_a_command_that_fails_is_exit_code_1_and_those_behind_it_are_carried_out(mqsc):
    ended = mqsc(b"DEFINE QLOCAL(A) TRIGGER\nDEFINE QLOCAL(B)\n")
    assert ended.exit_code == 1
    assert ended.text.splitlines() == ["AMQ8405E: QLOCAL has no attribute TRIGGER here.", "AMQ8006I: Queue created."]


def test_a_sound_store_is_verified(mqsc, rfhbridge, data_folder):
    mqsc(SCRIPT)
    rfhbridge("queue", "put", "ORDERS", "-", "--data", data_folder, stdin=b"x")
    verified = rfhbridge("queue", "verify", "--json", "--data", data_folder)
    assert verified.exit_code == 0
    told = json.loads(verified.stdout)
    notes = len(batches_noted(data_folder))
    assert (told["messages"], told["count"], told["findings"]) == (1 + notes, 0, [])
    assert "the store is sound" in rfhbridge("queue", "verify", "--data", data_folder).text


def test_a_store_that_does_not_agree_is_exit_code_1(mqsc, rfhbridge, data_folder):
    mqsc(SCRIPT)
    rfhbridge("queue", "put", "ORDERS", "-", "--data", data_folder, stdin=b"x")
    with sqlite3.connect(data_folder / "queue_manager.sqlite") as connection:
        connection.execute("UPDATE message SET priority = 3")
    connection.close()
    verified = rfhbridge("queue", "verify", "--data", data_folder)
    assert verified.exit_code == 1
    assert "differs from its descriptor" in verified.text


def test_a_message_with_a_changed_bit_is_named_and_can_be_set_aside(mqsc, rfhbridge, data_folder):
    mqsc(SCRIPT)
    body = b"temperature=21.5;" * 20
    for each in (b"before", body):
        rfhbridge("queue", "put", "ORDERS", "-", "--data", data_folder, stdin=each)
    store = data_folder / "queue_manager.sqlite"
    content = bytearray(store.read_bytes())
    content[content.index(body) + 3] ^= 0x10
    store.write_bytes(content)
    verified = rfhbridge("queue", "verify", "--data", data_folder)
    assert verified.exit_code == 1
    assert "on queue ORDERS is not as it was put: its checksum is another" in verified.text
    assert rfhbridge("queue", "get", "ORDERS", "--raw", "--data", data_folder).stdout == b"before"
    refused = rfhbridge("queue", "get", "ORDERS", "--raw", "--data", data_folder)
    assert (refused.exit_code, refused.stdout) == (1, b"")
    assert "on queue ORDERS: it is not as it was put" in refused.stderr
    aside = rfhbridge("queue", "verify", "--set-aside", "--data", data_folder)
    assert aside.exit_code == 0
    assert aside.text.startswith("set aside: message")
    assert rfhbridge("queue", "depth", "ORDERS", "--data", data_folder).text == "0\n"
    assert noted(data_folder)[-1][3:7] == ["queue verify --set-aside", "", "", 1]


def batches_noted(data_folder):
    with Direct(data_folder) as queue_manager:
        return [ormsgpack.unpackb(message.body) for message in queue_manager.browse("SYSTEM.RFHBRIDGE.AUDIT")]


def noted(data_folder):
    """The notes that wait for the audit trail."""
    return [note for _, _, notes, _ in batches_noted(data_folder) for note in ormsgpack.unpackb(notes)]


def test_dead_letters_that_go_back_are_an_act(mqsc, rfhbridge, data_folder):
    mqsc(SCRIPT)
    with Direct(data_folder) as queue_manager:
        for body in (b"one", b"two"):
            message = Message(MessageDescriptor(persistence=1), body)
            letter = dead_letter(message, queue_name="ORDERS", queue_manager_name="", reason_code=2053, now_us=0)
            queue_manager.put("SYSTEM.DEAD.LETTER.QUEUE", letter)
    assert rfhbridge("queue", "redrive", "--data", data_folder).exit_code == 0
    kind, _, operator, *act = [note for note in noted(data_folder) if note[0] == NoteKind.OPERATED][-1]
    assert (kind, act[:-1]) == (19, ["queue redrive", "SYSTEM.DEAD.LETTER.QUEUE", "", 2, ""])
    assert len(act[-1]) == 2, "the numbers of the dead letters"
    assert operator == pwd.getpwuid(os.geteuid()).pw_name


def test_a_backup_is_a_store_of_its_own(mqsc, rfhbridge, data_folder, tmp_path):
    mqsc(SCRIPT)
    rfhbridge("queue", "put", "ORDERS", "-", "--data", data_folder, stdin=b"x")
    backup = tmp_path / "restored" / "queue_manager.sqlite"
    backup.parent.mkdir()
    assert rfhbridge("queue", "backup", backup, "--data", data_folder).exit_code == 0
    refused = rfhbridge("queue", "get", "ORDERS", "--raw", "--data", backup.parent)
    assert (refused.exit_code, refused.stdout) == (1, b"")
    assert "rfhbridge queue accept-rollback" in refused.stderr
    assert rfhbridge("queue", "accept-rollback", "--yes", "--data", backup.parent).exit_code == 0
    assert rfhbridge("queue", "get", "ORDERS", "--raw", "--data", backup.parent).stdout == b"x"
    assert rfhbridge("queue", "depth", "ORDERS", "--data", data_folder).text == "1\n"


def test_a_backup_replaces_no_file(mqsc, rfhbridge, data_folder, tmp_path):
    mqsc(SCRIPT)
    (tmp_path / "there").write_bytes(b"precious")
    refused = rfhbridge("queue", "backup", tmp_path / "there", "--data", data_folder)
    assert refused.exit_code == 1
    assert (tmp_path / "there").read_bytes() == b"precious"
