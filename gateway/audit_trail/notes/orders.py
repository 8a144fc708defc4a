"""The records of every order that somebody can give: the verbs of the socket, MQSC, and the commands.

This is the only table. A test walks the verbs, the commands of MQSC and those of the command line. It fails for an
order that is not here, for one that changes the store without its record, and for one that changes something although
the table says that it does not. The reference shows the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mq_adapters.embedded.socket.frames import Verb
from spark_audit.record import Kind


@dataclass(frozen=True, slots=True)
class OrderRecords:
    """The records of an order: acts are the field `command` of records `operated`. Without any, it changes nothing."""

    acts: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    remark: str = ""


def _act(*acts: str, kinds: tuple[Kind, ...] = (), remark: str = "") -> OrderRecords:
    return OrderRecords(acts, kinds, remark)


def _records(*kinds: Kind, remark: str = "") -> OrderRecords:
    return OrderRecords((), kinds, remark)


def _nothing(remark: str = "") -> OrderRecords:
    return OrderRecords((), (), remark)


_GOT: Final = _records(Kind.MQGET)
_BY_COMMIT: Final = "COMMIT makes it true, and tells of it"
_FILE: Final = "a running gateway tells of the file when it takes it up"

VERBS: Final[Mapping[Verb, OrderRecords]] = {
    Verb.HELLO: _nothing(),
    Verb.PUT: _records(Kind.MQPUT, Kind.COMMANDED, remark="in a unit of work, COMMIT tells"),
    Verb.GET: _GOT,
    Verb.BROWSE_OPEN: _nothing(),
    Verb.BROWSE_NEXT: _nothing(),
    Verb.BROWSE_CLOSE: _nothing(),
    Verb.BEGIN: _nothing(_BY_COMMIT),
    Verb.COMMIT: OrderRecords((), (Kind.MQPUT, Kind.MQGET, Kind.COMMANDED, Kind.REDRIVEN, Kind.OPERATED)),
    Verb.BACK_OUT: _nothing("messages go back to their queues, and their back-out counts rise"),
    Verb.DEFINE: _act("queue define"),
    Verb.CLEAR: _act("queue clear", kinds=(Kind.DROPPED,)),
    Verb.DEPTH: _nothing(),
    Verb.QUEUES: _nothing(),
    Verb.TAKE_BATCH: _nothing(_BY_COMMIT),
    Verb.TAKE_BROWSED: _GOT,
    Verb.CREATE: _nothing("the temporary queue ends with its connection"),
    Verb.INQUIRE: _nothing(),
    Verb.MQSC: _nothing("the table of MQSC says what each command tells"),
    Verb.HOLD: _nothing("it ends with its connection"),
    Verb.RELEASE: _nothing(),
    Verb.OPERATE: _nothing("it names the order that the unit of work is; COMMIT tells of it"),
    Verb.COMPACT: _act("queue compact"),
    Verb.KEEP_TRAIL_HEAD: _nothing("the writer of the trail alone; COMMIT keeps the end of the trail"),
    Verb.TRAIL_HEAD: _nothing(),
    Verb.SUBSCRIBE: _nothing("it is a RegSub, of which the broker tells as `commanded`"),
    Verb.UNSUBSCRIBE: _nothing("it is a DeregSub, of which the broker tells as `commanded`"),
    Verb.REQUEST_PUBLICATIONS: _nothing("it is a ReqUpdate, of which the broker tells as `commanded`"),
}

_DEFINABLE: Final = ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "TOPIC", "NAMELIST", "CHANNEL")
_DESTROYED: Final = (Kind.DROPPED,)

#: By verb and object; short forms of both are the same commands.
MQSC: Final[Mapping[tuple[str, str], OrderRecords]] = {
    **{("DEFINE", noun): _act(f"DEFINE {noun}", f"DEFINE {noun} REPLACE") for noun in (*_DEFINABLE, "SUB")},
    **{("ALTER", noun): _act(f"ALTER {noun}") for noun in (*_DEFINABLE, "SUB", "QMGR")},
    **{("DELETE", noun): _act(f"DELETE {noun}") for noun in (*_DEFINABLE[1:], "SUB")},
    **{("DISPLAY", noun): _nothing() for noun in (*_DEFINABLE, "QUEUE", "QMGR", "SUB", "CHSTATUS", "CONN")},
    ("DELETE", "QLOCAL"): _act("DELETE QLOCAL", "DELETE QLOCAL PURGE", kinds=_DESTROYED),
    ("CLEAR", "QLOCAL"): _act("CLEAR QLOCAL", kinds=_DESTROYED),
    ("CLEAR", "TOPICSTR"): _act("CLEAR TOPICSTR"),
    ("RESET", "QMGR"): _act("RESET QMGR", kinds=(Kind.CLOCK_JUMPED,)),
    ("START", "CHANNEL"): _act("START CHANNEL"),
    ("STOP", "CHANNEL"): _act("STOP CHANNEL"),
    ("RESOLVE", "CHANNEL"): _act("RESOLVE CHANNEL"),
    ("PURGE", "CHANNEL"): _act("PURGE CHANNEL", kinds=(Kind.SESSION, Kind.DROPPED)),
}

COMMANDS: Final[Mapping[str, OrderRecords]] = {
    "run": _records(Kind.STARTED, Kind.FILE_READ, Kind.STOCK),
    "check": _nothing(),
    "balance": _nothing(),
    "mqsc": _nothing("the table of MQSC says what each command tells"),
    "explain": _nothing(),
    "convert": _nothing(),
    "inspect": _nothing(),
    "lint": _nothing(),
    "simulate": _nothing("its sensors are MQTT clients like others"),
    "queue list": _nothing(),
    "queue define": _act("queue define"),
    "queue depth": _nothing(),
    "queue browse": _nothing(),
    "queue get": _act("queue get", kinds=(Kind.MQGET,), remark="an order if it is a dead letter or the gateway's own"),
    "queue put": _records(Kind.MQPUT, Kind.COMMANDED),
    "queue clear": _act("queue clear", kinds=(Kind.DROPPED,)),
    "queue verify": _act("queue verify --set-aside", remark="without --set-aside it changes nothing"),
    "queue backup": _nothing(),
    "queue compact": _act("queue compact"),
    "queue accept-rollback": _records(Kind.RESTORED),
    "queue redrive": _act("queue redrive", kinds=(Kind.REDRIVEN,)),
    "channel list": _nothing(),
    "channel show": _nothing(),
    "channel start": _act("START CHANNEL"),
    "channel stop": _act("STOP CHANNEL"),
    "channel resolve": _act("RESOLVE CHANNEL"),
    "sessions list": _nothing(),
    "sessions show": _nothing(),
    "sessions disconnect": _act("STOP CHANNEL", kinds=(Kind.SESSION,)),
    "sessions expire": _act("PURGE CHANNEL", kinds=(Kind.SESSION, Kind.DROPPED)),
    "sessions sweep": _act("DELETE SUB", "sessions sweep", kinds=(Kind.MQPUT,)),
    "user add": _records(Kind.FILE_READ, remark=_FILE),
    "user remove": _records(Kind.FILE_READ, remark=_FILE),
    "user list": _nothing(),
    "user token add": _records(Kind.FILE_READ, remark=_FILE),
    "user token remove": _records(Kind.FILE_READ, remark=_FILE),
    "user token list": _nothing(),
    "audit run": _nothing("the notes that wait become records first"),
    "audit ingest": _nothing(),
    "audit stream": _nothing(),
    "audit bulk": _nothing(),
    "audit verify": _nothing(),
    "audit fetch": _nothing(),
    "audit prove": _nothing(),
    "audit pack": _nothing(),
    "audit explain": _nothing(),
    "audit show": _nothing(),
    "audit key show": _nothing(),
    "audit key rotate": _act("audit key rotate", remark="a digest of kind rotation hands over"),
}
