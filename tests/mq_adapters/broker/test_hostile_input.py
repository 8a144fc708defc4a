"""Whatever stands in a message: nothing is raised, nothing stays on a served queue, and the next message is served."""

import struct
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.broker.broker import BrokerRules
from mq_adapters.broker.topic_spaces import BrokerDialect

CONTROL = "SYSTEM.BROKER.CONTROL.QUEUE"
DEFAULT = "SYSTEM.BROKER.DEFAULT.STREAM"
MQRFH = b"MQHRF   "
MQRFH2 = b"MQHRF2  "
PROBE = "<psc><Command>Publish</Command><Topic>probe</Topic></psc>"

_FORMATS = st.sampled_from([MQRFH, MQRFH2, b"MQDEAD  ", b"MQSTR   ", b" " * 8, bytes(8), b"\xff" * 8])
_ENCODINGS = st.sampled_from([546, 273, 0, 3, -1, 2**40])
_CODED_CHAR_SET_IDS = st.sampled_from([1208, 819, 500, 1200, 0, -2, 99999, 2**40])
_DESCRIPTORS = st.fixed_dictionaries(
    {
        "msg_type": st.sampled_from([1, 2, 4, 8, 0, 65536]),
        "report": st.sampled_from([0, 1, 2, 3, 67, 131, 0x0800_0000, 0x0F00_0003]),
        "encoding": _ENCODINGS,
        "coded_char_set_id": _CODED_CHAR_SET_IDS,
        "expiry": st.sampled_from([-1, 1, 2**31 - 1]),
        "correl_id": st.sampled_from([bytes(24), b"c" * 24]),
        "reply_to_q": st.sampled_from(["", "REPLY", "OLD", CONTROL, DEFAULT, "NO.Q", "é" * 60, "a\0b"]),
        "reply_to_q_mgr": st.sampled_from(["", "QM1", "QM9"]),
        "user_identifier": st.sampled_from(["", "ann", "\x00é"]),
    }
)
_TOKENS = st.sampled_from(
    [
        *("Publish", "DeletePub", "RegSub", "DeregSub", "ReqUpdate", "RegPub", "DeregPub"),
        *("JoinShared", "JoinExcl", "LeaveOnly", "NoAlter", "DirectReq", "Local", "OtherSubsOnly", "VariableUserId"),
        *("x = 1", "Body.a = 1 OR y LIKE '%'", "f(x)", "((", "$SYS/STREAM/S/a", "$SYS/STREAM/#", "IN"),
        *("CorrelAsId", "DeregAll", "FullResp", "AddName", "RetainPub", "NoReg", "None", "257", "99999999999", "0x1"),
        *("a/b", "#", "a/#/b", "*", "%", "%%x", '"', '""', '"a b"', "NEW", "OLD", DEFAULT, CONTROL, "NO.Q", "QM1", ""),
    ]
)
_V1_NAMES = st.sampled_from(
    [
        *("MQPSCommand", "MQPSTopic", "MQPSRegOpts", "MQPSPubOpts", "MQPSDelOpts", "MQPSStreamName", "MQPSQName"),
        *("MQPSQMgrName", "MQPSSubName", "MQPSSubIdentity", "MQPSStringData", "own", "MQPSWhat", "MQPSCompCode"),
    ]
)
_V2_NAMES = st.sampled_from(
    [
        *("Command", "Topic", "RegOpt", "PubOpt", "DelOpt", "QName", "QMgrName", "SubPoint", "Filter", "SubName"),
        *("SubIdentity", "SubUserData", "PubTime", "What"),
    ]
)


def _string(items: list[tuple[str, str]]) -> bytes:
    return " ".join(f"{name} {value}" for name, value in items).encode()


def _psc(items: list[tuple[str, str]]) -> bytes:
    return b"<psc>" + b"".join(f"<{name}>{value}</{name}>".encode() for name, value in items) + b"</psc>"


def _v1(order: str, next_format: bytes, string: bytes, body: bytes) -> bytes:
    fixed = struct.pack(order + "iiii8si", 1, 32 + len(string), 546, -2, next_format, 0)
    return b"RFH " + fixed + string + body


def _v2(order: str, next_format: bytes, folder: bytes, body: bytes) -> bytes:
    folder += b" " * (-len(folder) % 4)
    fixed = struct.pack(order + "iiii8sii", 2, 40 + len(folder), 546, -2, next_format, 0, 1208)
    return b"RFH " + fixed + struct.pack(order + "i", len(folder)) + folder + body


_ORDERS = st.sampled_from(["<", ">"])
_NEXT = st.sampled_from([b"MQSTR   ", MQRFH, MQRFH2, b"MQDEAD  "])
_PAIRS = st.lists(st.tuples(_V1_NAMES, _TOKENS), max_size=8)
_COMMAND_PAIRS = st.builds(lambda verb, rest: [("MQPSCommand", verb), *rest], _TOKENS, _PAIRS)
_ELEMENTS = st.builds(
    lambda verb, rest: [("Command", verb), *rest], _TOKENS, st.lists(st.tuples(_V2_NAMES, _TOKENS), max_size=8)
)
_SINGLE = st.one_of(
    st.builds(_v1, _ORDERS, _NEXT, _COMMAND_PAIRS.map(_string) | st.binary(max_size=60), st.binary(max_size=40)),
    st.builds(_v2, _ORDERS, _NEXT, _ELEMENTS.map(_psc) | st.binary(max_size=60), st.binary(max_size=40)),
)
_CHAINS = st.builds(lambda *parts: b"".join(parts), _SINGLE, _SINGLE)
_CUT = st.builds(lambda data, length: data[:length], _SINGLE, st.integers(0, 200))
_DATA = st.one_of(st.binary(max_size=200), _SINGLE, _CHAINS, _CUT)


_RULES = st.builds(
    BrokerRules,
    dialect=st.sampled_from(BrokerDialect),
    input_queues=st.just(("IN",)),
    has_implicit_stream_naming=st.booleans(),
    subscription_points=st.sampled_from([{}, {"IN": "point"}]),
)


@given(
    messages=st.lists(
        st.tuples(st.sampled_from([CONTROL, DEFAULT, "IN"]), _FORMATS, _DATA, _DESCRIPTORS), min_size=1, max_size=12
    ),
    rules=_RULES,
)
def test_any_bytes_end_in_a_value_and_the_next_publication_arrives(station_class, messages, rules):
    with TemporaryDirectory() as folder:
        station = station_class(Path(folder), (), rules)
        station.subscribe_new("probe", user_identifier="probe")
        station.subscribe_old("a/*", user_identifier="ann")
        for queue_name, format, data, fields in messages:
            station.put(queue_name, format, data, **fields)
        assert station.engine.queue(CONTROL).depth == station.engine.queue(DEFAULT).depth == 0
        station.restart()
        station.publish(PROBE, b"x")
        assert station.mqrfh2(PROBE, body=b"x") in station.bodies("NEW")
        station.engine.close()
