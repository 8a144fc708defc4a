"""Flows of the queue manager: the conversion service, MQSC, dead letters that go back, clearing, backups, upgrades."""

import shutil
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

import apsw

from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.store.store import FILE_NAME
from mq_adapters.embedded.store.verification import verify_file
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import ReasonCode
from tests.crash_matrix.publish_flows import publish_qos_1, subscribed
from tests.crash_matrix.questions import settle_messages
from tests.crash_matrix.stage import DATA, Flow, Stage, await_condition
from tests.end_to_end.wire import packet

DEAD_LETTERS: Final = "SYSTEM.DEAD.LETTER.QUEUE"
HELD: Final = "SYSTEM.RFHBRIDGE.HELD"
STREAM: Final = "SYSTEM.BROKER.DEFAULT.STREAM"
PUT, WAS_PUT = "put", "was put"


def _put(stage: Stage, queue: str, head: bytes, numbers: Iterable[int] = range(3)) -> None:
    """Messages of an application, each in a unit of work of its own."""
    with stage.application() as application:
        for number in numbers:
            body = head + b"|%d" % number
            stage.ledger.note(queue, PUT, payload=body)
            application.put(queue, Message(MessageDescriptor(format=b"MQHRF   ", persistence=MQPER_PERSISTENT), body))
            stage.ledger.note(queue, WAS_PUT, payload=body)


def _check_each_once(stage: Stage, queue: str, source: str) -> None:
    """What was put on `source` is on `queue`, once; what was not confirmed to its putter is there at most once."""
    with stage.application() as application:
        counts = Counter(message.body.rpartition(b"|")[2] for message in application.browse(queue))
    numbers = {what: {entry.payload.rpartition(b"|")[2] for entry in stage.ledger.of(what)} for what in (PUT, WAS_PUT)}
    assert set(counts.values()) <= {1}, counts
    assert numbers[WAS_PUT] <= set(counts) <= numbers[PUT], (source, counts)


# -- the conversion service --------------------------------------------------------------------------------------------

CONVERSION: Final = '[[conversion]]\nfrom = "OLD"\nto = "NEW"\nheader = "mqrfh2"\n'
_STRING: Final = b"MQPSCommand Publish MQPSTopic a/b   "
PUBLISH: Final = (
    packet("'RFH ' 01000000")
    + (32 + len(_STRING)).to_bytes(4, "little")
    + packet("22020000 B8040000 'MQSTR   ' 00000000")
    + _STRING
)


def _convert(stage: Stage) -> None:
    _put(stage, "OLD", PUBLISH)
    _await_depth(stage, "NEW", 3)


def _await_depth(stage: Stage, queue: str, depth: int) -> None:
    with stage.application() as application:
        await_condition(lambda: application.depth(queue) == depth, stage)


def _settle_conversion(stage: Stage) -> None:
    _await_depth(stage, "OLD", 0)
    _check_each_once(stage, "NEW", "OLD")


# -- MQSC --------------------------------------------------------------------------------------------------------------

COMMANDS: Final = (
    ("DEFINE QLOCAL(APP.1)", "APP.1", True),
    ("DEFINE QLOCAL(APP.2) DESCR('second')", "APP.2", True),
    ("ALTER QLOCAL(APP.1) MAXDEPTH(10)", "", True),
    ("DELETE QLOCAL(APP.2)", "APP.2", False),
    ("DEFINE TOPIC(APP.3) TOPICSTR('closed') PUB(DISABLED)", "", True),
)


def _mqsc(stage: Stage) -> None:
    with stage.application() as application:
        for command, _, _ in COMMANDS:
            stage.ledger.note("operator", "commanding", topic=command)
            answer = application.mqsc(command)
            assert answer.succeeded, answer
            stage.ledger.note("operator", "commanded", topic=command)


def _settle_mqsc(stage: Stage) -> None:
    """What was answered holds; what was not is done or not done."""
    done = {entry.topic for entry in stage.ledger.of("commanded")}
    asked = {entry.topic for entry in stage.ledger.of("commanding")}
    expected = {name: is_there for command, name, is_there in COMMANDS if command in done and name}
    for command, name, _ in COMMANDS:
        if command in asked - done:
            expected.pop(name, None)
    with stage.application() as application:
        found = {status.name for status in application.queues()}
        assert {name: name in found for name in expected} == expected
        if "ALTER QLOCAL(APP.1) MAXDEPTH(10)" in done:
            assert application.inquire("APP.1")["MAXDEPTH"] == 10


# -- dead letters and clearing -----------------------------------------------------------------------------------------


def _bury(stage: Stage) -> None:
    """Three messages that were going to APP.BACK."""
    with stage.application() as application:
        application.define("APP.BACK")
        for number in range(3):
            stage.ledger.note("APP.BACK", WAS_PUT, payload=b"|%d" % number)
            stage.ledger.note("APP.BACK", PUT, payload=b"|%d" % number)
            message = Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"whole |%d" % number)
            letter = dead_letter(
                message,
                queue_name="APP.BACK",
                reason_code=ReasonCode.MQRC_Q_FULL,
                queue_manager_name=application.name,
                now_us=time.time_ns() // 1000,
            )
            application.put(DEAD_LETTERS, letter)


def _redrive(stage: Stage) -> None:
    ended = stage.command("queue", "redrive", "--data", str(stage.data))
    assert ended.returncode == 0, ended


def _settle_redrive(stage: Stage) -> None:
    _redrive(stage)
    _check_each_once(stage, "APP.BACK", DEAD_LETTERS)
    with stage.application() as application:
        assert application.depth(DEAD_LETTERS) == 0


def _close_dead_letters(stage: Stage) -> None:
    """The only subscriber has no room, and neither has the dead-letter queue."""
    with stage.application() as application:
        for command in (
            "DEFINE QLOCAL(APP.LOST) MAXDEPTH(0)",
            "DEFINE SUB(LOST) TOPICSTR('a/b') DEST(APP.LOST)",
            f"ALTER QLOCAL({DEAD_LETTERS}) PUT(DISABLED)",
        ):
            assert application.mqsc(command).succeeded, command


def _hold_letters(stage: Stage) -> None:
    """Each by an application of its own: who has caused what is held gives the broker nothing more."""
    for number in range(3):
        _put(stage, STREAM, PUBLISH, numbers=(number,))
    _let_letters_go(stage)


def _let_letters_go(stage: Stage) -> None:
    with stage.application() as application:
        assert application.mqsc(f"ALTER QLOCAL({DEAD_LETTERS}) PUT(ENABLED)").succeeded
    _await_depth(stage, HELD, 0)


def _settle_letters(stage: Stage) -> None:
    _let_letters_go(stage)
    _check_each_once(stage, DEAD_LETTERS, STREAM)


def _fill(stage: Stage) -> None:
    with stage.application() as application:
        application.define("APP.FULL")
    _put(stage, "APP.FULL", b"", range(5))


def _clear(stage: Stage) -> None:
    with stage.application() as application:
        assert application.clear("APP.FULL") == 5
        stage.ledger.note("operator", "cleared")


def _settle_clear(stage: Stage) -> None:
    """All of them are gone, or none: there were few enough for one unit of work."""
    with stage.application() as application:
        depth = application.depth("APP.FULL")
    assert depth == 0 or (depth == 5 and not stage.ledger.of("cleared"))


# -- backups and upgrades ----------------------------------------------------------------------------------------------


def _back_up(stage: Stage) -> None:
    publish_qos_1(stage)
    ended = stage.command("queue", "backup", str(stage.folder / "backup.sqlite"), "--data", str(stage.data))
    assert ended.returncode == 0, ended
    stage.ledger.note("operator", "backed up")


def _inspect_backup(stage: Stage) -> None:
    """A backup that has its name is whole, and one that was reported has its name."""
    backup = stage.folder / "backup.sqlite"
    assert backup.exists() or not stage.ledger.of("backed up")
    if backup.exists():
        verification = verify_file(backup)
        assert verification.is_sound, verification


def _older_store(version: int, folder: Path) -> None:
    """A store that an earlier version of the program wrote; the session in it was never a gateway's."""
    (folder / DATA).mkdir()
    store = folder / DATA / FILE_NAME
    shutil.copy(Path(__file__).parents[1] / "mq_adapters" / "embedded" / "stores" / f"version_{version}.sqlite", store)
    connection = apsw.Connection(str(store))
    connection.execute("DELETE FROM state")
    connection.close()
    store.chmod(0o600)


def _settle_upgrade(stage: Stage) -> None:
    with stage.application() as application:
        bodies = [message.body for message in application.browse("ORDERS")]
    assert {b"one", b"two"} < set(bodies)
    assert len(bodies) == 3
    settle_nobody(stage)


def settle_nobody(stage: Stage) -> None:
    """The gateway works: a message goes through it."""
    subscribed(stage)
    settle_messages(stage)


def _first_start(_folder: Path) -> None:
    return


def _first_messages(stage: Stage) -> None:
    """What the first clients are told holds, although nothing but the folder above was there before."""
    subscribed(stage)
    publish_qos_1(stage)


def _settle_first_messages(stage: Stage) -> None:
    if not stage.ledger.of("subscribed"):
        subscribed(stage)
    settle_messages(stage)


def _start_alone(_stage: Stage) -> None:
    return


FLOWS: Final = (
    Flow(name="conversion", settings=CONVERSION, run=_convert, settle=_settle_conversion),
    Flow(name="mqsc", run=_mqsc, settle=_settle_mqsc),
    Flow(name="redrive", prepare=_bury, run=_redrive, settle=_settle_redrive),
    Flow(name="held letters", prepare=_close_dead_letters, run=_hold_letters, settle=_settle_letters),
    Flow(name="clear", prepare=_fill, run=_clear, settle=_settle_clear),
    Flow(name="backup", prepare=subscribed, run=_back_up, settle=settle_messages, inspect=_inspect_backup),
    Flow(name="first start", found=_first_start, run=_first_messages, settle=_settle_first_messages),
    Flow(
        name="keys elsewhere",
        settings='[audit]\nsigning_key = "FOLDER/keys/sign.pem"\n',
        folders=("keys",),
        found=_first_start,
        run=_start_alone,
        settle=settle_nobody,
    ),
    *(
        Flow(
            name=f"upgrade of layout {version}",
            found=partial(_older_store, version),
            run=_start_alone,
            settle=_settle_upgrade,
        )
        for version in (1, 2, 3)
    ),
)
