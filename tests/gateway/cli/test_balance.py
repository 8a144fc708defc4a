"""`rfhbridge balance` on a stopped store: what it shows, what it tells a program, and its exit codes."""

import json
import sqlite3


def test_what_became_of_messages_is_shown_for_each_queue_and_in_all(rfhbridge, data_folder):
    rfhbridge("queue", "define", "ORDERS", "--data", data_folder)
    for _ in range(3):
        rfhbridge("queue", "put", "ORDERS", "-", "--data", data_folder, stdin=b"x")
    rfhbridge("queue", "get", "ORDERS", "--data", data_folder)
    shown = rfhbridge("balance", "--data", data_folder)
    assert shown.exit_code == 0
    lines = [line.split() for line in shown.text.splitlines()]
    assert lines[0] == ["queue", "messages", "put", "taken", "waiting", "missing"]
    assert ["ORDERS", "stored", "3", "1", "2", "0"] in lines
    notes = int(rfhbridge("queue", "depth", "SYSTEM.RFHBRIDGE.AUDIT", "--data", data_folder).text)
    assert ["in", "all", "stored", str(3 + notes), "1", str(2 + notes), "0"] in lines
    assert "It adds up: no message and no publication is missing." in shown.text


def test_a_program_is_told_every_counter(rfhbridge, data_folder):
    rfhbridge("queue", "define", "ORDERS", "--data", data_folder)
    rfhbridge("queue", "put", "ORDERS", "-", "--data", data_folder, stdin=b"x")
    told = json.loads(rfhbridge("balance", "--json", "--data", data_folder).stdout)
    assert told["adds_up"] is True
    (orders,) = [queue for queue in told["queues"] if queue["name"] == "ORDERS"]
    assert (orders["persistent"]["put"], orders["persistent"]["waiting"], orders["persistent"]["difference"]) == (
        1,
        1,
        0,
    )
    assert told["publications"]["difference"] == 0


def test_a_message_that_vanished_is_exit_code_1_and_named_with_its_queue(rfhbridge, data_folder):
    rfhbridge("queue", "define", "ORDERS", "--data", data_folder)
    rfhbridge("queue", "put", "ORDERS", "-", "--data", data_folder, stdin=b"x")
    with sqlite3.connect(data_folder / "queue_manager.sqlite") as connection:
        connection.execute("DELETE FROM message WHERE queue = (SELECT id FROM queue WHERE name = 'ORDERS')")
    connection.close()
    shown = rfhbridge("balance", "--data", data_folder)
    assert shown.exit_code == 1
    assert "It does not add up. Missing (below 0: too many): 1 messages in all, on ORDERS." in shown.text


def test_where_there_is_nothing_to_judge_the_exit_code_is_2(rfhbridge, data_folder, tmp_path):
    nothing = rfhbridge("balance", "--data", tmp_path / "nowhere")
    assert (nothing.exit_code, nothing.stdout) == (2, b"")
    assert "there is no store" in nothing.stderr
    rfhbridge("queue", "define", "ORDERS", "--data", data_folder)
    with sqlite3.connect(data_folder / "queue_manager.sqlite") as connection:
        connection.execute("DELETE FROM state")
    connection.close()
    before = rfhbridge("balance", "--data", data_folder)
    assert before.exit_code == 2
    assert "counts nothing yet" in before.stderr
    (data_folder / "queue_manager.sqlite").write_bytes(b"no database" * 1_000)
    assert rfhbridge("balance", "--data", data_folder).exit_code == 2
