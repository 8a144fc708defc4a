"""Structures as bytes, laid out by the offsets of IBM's pages and of what IBM's client was seen to send."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.message_descriptors import Mqmd
from mq_adapters.client_channel.segments import ByteOrder
from mq_adapters.client_channel.structures import Fopa, Lpoo, Lsd, Mqgmo, Mqod, Mqpmo, Mqsd, Mqsro, Mqsts

#: A text at its offset, blank padded to its length.
Text = tuple[str, int]


def laid_out(length: int, parts: Mapping[int, int | bytes | Text], order: ByteOrder = ByteOrder.BIG_ENDIAN) -> bytes:
    """So many bytes, zeros but for these parts by their offsets: integers of four bytes, bytes, and texts."""
    data = bytearray(length)
    for offset, part in parts.items():
        written = _written(part, order)
        assert offset + len(written) <= length, f"{part!r} at {offset} is outside"
        data[offset : offset + len(written)] = written
    return bytes(data)


def _written(part: int | bytes | Text, order: ByteOrder) -> bytes:
    if isinstance(part, int):
        return part.to_bytes(4, "big" if order is ByteOrder.BIG_ENDIAN else "little", signed=True)
    return part[0].encode().ljust(part[1]) if isinstance(part, tuple) else part


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A structure in words: its length, its parts, and the value that it stands for.

    `filler` is how many of its bytes only fill up the last string.
    """

    length: int
    parts: Mapping[int, int | bytes | Text]
    value: Any
    filler: int = 0

    def data(self, order: ByteOrder) -> bytes:
        return laid_out(self.length, self.parts, order)


_OD_1: dict[int, int | bytes | Text] = {
    0: b"OD  ", 8: 1, 12: ("APP.ORDERS", 48), 60: ("EDGE", 48), 108: ("AMQ.*", 48), 156: ("alice", 12),
}  # fmt: skip
_OD_1_VALUES: dict[str, Any] = {
    "object_type": 1, "object_name": "APP.ORDERS", "object_q_mgr_name": "EDGE", "dynamic_q_name": "AMQ.*",
    "alternate_user_id": "alice",
}  # fmt: skip
_OD_3: dict[int, int | bytes | Text] = {**_OD_1, 200: b"s" * 40, 240: ("RESOLVED.Q", 48), 288: ("RESOLVED.QM", 48)}
_OD_3_VALUES = {
    **_OD_1_VALUES,
    "alternate_security_id": b"s" * 40,
    "resolved_q_name": "RESOLVED.Q",
    "resolved_q_mgr_name": "RESOLVED.QM",
}
_PMO: dict[int, int | bytes | Text] = {
    0: b"PMO ", 8: 0x00022044, 12: -1, 16: 0, 20: 1, 24: 2, 28: 3, 32: ("APP.ORDERS", 48), 80: ("EDGE", 48),
}  # fmt: skip
_PMO_VALUES: dict[str, Any] = {
    "options": 0x00022044, "known_dest_count": 1, "unknown_dest_count": 2, "invalid_dest_count": 3,
    "resolved_q_name": "APP.ORDERS", "resolved_q_mgr_name": "EDGE",
}  # fmt: skip
_GMO: dict[int, int | bytes | Text] = {0: b"GMO ", 8: 0x02003001, 12: 5_000, 16: 1, 20: 2, 24: ("APP.ORDERS", 48)}
_GMO_VALUES: dict[str, Any] = {
    "options": 0x02003001, "wait_interval": 5_000, "signal_1": 1, "signal_2": 2, "resolved_q_name": "APP.ORDERS",
}  # fmt: skip
_GMO_3: dict[int, int | bytes | Text] = {**_GMO, 72: 0x20, 76: b"GSA\0", 80: b"t" * 16, 96: 159}
_GMO_3_VALUES = {
    **_GMO_VALUES, "match_options": 0x20, "group_status": b"G", "segment_status": b"S", "segmentation": b"A",
    "msg_token": b"t" * 16, "returned_length": 159,
}  # fmt: skip

#: Every structure at every version, by name.
STRUCTURES = {
    "MQOD 1": Layout(length=168, parts={**_OD_1, 4: 1}, value=Mqod(version=1, **_OD_1_VALUES)),
    "MQOD 2": Layout(
        length=200,
        parts={**_OD_1, 4: 2, 172: 1, 176: 2, 180: 3, 184: 4, 188: 5, 192: 6, 196: 7},
        value=Mqod(
            version=2, known_dest_count=1, unknown_dest_count=2, invalid_dest_count=3, object_rec_offset=4,
            response_rec_offset=5, object_rec_ptr=6, response_rec_ptr=7, **_OD_1_VALUES,
        ),
    ),
    "MQOD 3": Layout(length=336, parts={**_OD_3, 4: 3}, value=Mqod(version=3, **_OD_3_VALUES)),
    "MQOD 4 without strings": Layout(
        length=400,
        parts={**_OD_3, 4: 4, 352: 1208, 372: 1208, 384: 0x2800, 392: 1208, 396: 1},
        value=Mqod(version=4, res_object_string=Charv(buffer_size=0x2800), resolved_type=1, **_OD_3_VALUES),
    ),
    "MQOD 4 with strings": Layout(
        length=400 + 8 + 16,
        filler=2,
        parts={
            **_OD_3, 4: 4, 340: 400, 348: 7, 352: 1208, 360: 408, 368: 14, 372: 1208, 392: 1208,
            400: b"plant/x\0", 408: b"colour='blue' \0\0",
        },
        value=Mqod(
            version=4,
            object_string=Charv(value=b"plant/x"),
            selection_string=Charv(value=b"colour='blue' "),
            **_OD_3_VALUES,
        ),
    ),
    "MQPMO 1": Layout(length=128, parts={**_PMO, 4: 1}, value=Mqpmo(version=1, **_PMO_VALUES)),
    "MQPMO 2": Layout(
        length=152,
        parts={**_PMO, 4: 2, 132: 1, 136: 2, 140: 3, 144: 4, 148: 5},
        value=Mqpmo(
            version=2, put_msg_rec_fields=1, put_msg_rec_offset=2, response_rec_offset=3, put_msg_rec_ptr=4,
            response_rec_ptr=5, **_PMO_VALUES,
        ),
    ),
    "MQPMO 3": Layout(
        length=176,
        parts={**_PMO, 4: 3, 152: b"\xff" * 8, 160: b"\xff" * 8, 168: 2, 172: 9},
        value=Mqpmo(
            version=3, original_msg_handle=-1, new_msg_handle=-1, action=2, pub_level=9, **_PMO_VALUES
        ),
    ),
    "MQGMO 1": Layout(length=72, parts={**_GMO, 4: 1}, value=Mqgmo(version=1, **_GMO_VALUES)),
    "MQGMO 2": Layout(
        length=80,
        parts={**_GMO, 4: 2, 72: 3, 76: b"   \0"},
        value=Mqgmo(version=2, match_options=3, **_GMO_VALUES),
    ),
    "MQGMO 3": Layout(length=100, parts={**_GMO_3, 4: 3}, value=Mqgmo(version=3, **_GMO_3_VALUES)),
    "MQGMO 4": Layout(
        length=112,
        parts={**_GMO_3, 4: 4, 100: b"rest", 104: b"\xff" * 8},
        value=Mqgmo(version=4, reserved_2=b"rest", msg_handle=-1, **_GMO_3_VALUES),
    ),
    "MQSD": Layout(
        length=312 + 16 + 20 + 4,
        filler=2,
        parts={
            0: b"SD  ", 4: 1, 8: 0x0020222B, 12: (" ", 48), 60: (" ", 12), 112: -1,
            120: 312, 128: 14, 132: 1208, 140: 328, 148: 17, 152: 1208, 160: 348, 168: 2, 172: 819,
            176: b"c" * 24, 200: -3, 204: b"a" * 32, 236: ("data", 32), 284: 1208, 288: 1, 300: 0x2800, 308: 1208,
            312: b"plant/pump 7/#", 328: b"JMS:QM1:cid1:dur1", 348: b"ud",
        },
        value=Mqsd(
            options=0x0020222B,
            object_string=Charv(value=b"plant/pump 7/#"),
            sub_name=Charv(value=b"JMS:QM1:cid1:dur1"),
            sub_user_data=Charv(value=b"ud", ccsid=819),
            sub_correl_id=b"c" * 24,
            pub_accounting_token=b"a" * 32,
            pub_appl_identity_data="data",
            res_object_string=Charv(buffer_size=0x2800),
        ),
    ),
    "MQSTS": Layout(
        length=224,
        parts={
            0: b"STAT", 4: 1, 8: 2, 12: 2085, 16: 1, 20: 2, 24: 3, 28: 1, 32: ("A", 48), 80: ("B", 48),
            128: ("C", 48), 176: ("D", 48),
        },
        value=Mqsts(
            comp_code=2, reason=2085, put_success_count=1, put_warning_count=2, put_failure_count=3, object_name="A",
            object_q_mgr_name="B", resolved_object_name="C", resolved_q_mgr_name="D",
        ),
    ),
    "MQSRO": Layout(
        length=16,
        parts={0: b"SRO ", 4: 1, 8: 0x2000, 12: 7},
        value=Mqsro(options=0x2000, num_pubs=7),
    ),
    "FOPA": Layout(
        length=28,
        parts={0: b"FOPA", 4: 1, 8: 28, 12: -1, 16: -1, 20: 0, 24: 0},
        value=Fopa(def_persistence=-1, def_put_response=-1),
    ),
    "FOPA of later clients": Layout(
        length=36,
        parts={0: b"FOPA", 4: 2, 8: 36, 12: 1, 16: 1, 28: b"whatever"},
        value=Fopa(version=2, def_persistence=1, tail=b"whatever"),
    ),
    "LPOO": Layout(
        length=32,
        parts={0: b"LPOO", 4: 1, 8: 0x2010, 12: 3, 16: 0, 20: 1, 24: 0, 28: 0},
        value=Lpoo(options=0x2010, lpi_options=3),
    ),
    "LSD": Layout(
        length=196,
        parts={0: b"LSD ", 4: 1, 16: 196, 28: 1208, 60: 0x2029, 64: (" ", 96), 184: 3, 192: 1},
        value=Lsd(open_options=0x2029, unknown_2=3, unknown_4=1),
    ),
}  # fmt: skip

_MD: dict[int, int | bytes | Text] = {
    0: b"MD  ", 8: 1, 12: 8, 16: -1, 20: 0, 24: 273, 28: 1208, 32: b"MQHRF2  ", 40: 4, 44: 1, 48: b"m" * 24,
    72: b"c" * 24, 96: 2, 100: ("REPLY.Q", 48), 148: ("QM1", 48), 196: ("alice", 12), 208: b"a" * 32,
    240: ("identity", 32), 272: 28, 276: ("java", 28), 304: b"20260102", 312: b"03040506", 320: b"orig",
}  # fmt: skip
_MD_2: dict[int, int | bytes | Text] = {**_MD, 324: bytes(24), 348: 1, 352: 0, 356: 0, 360: -1}

#: A message's descriptor, without a value: what it stands for is in test_message_descriptors.py.
DESCRIPTORS = {
    1: Layout(length=324, parts={**_MD, 4: 1}, value=None),
    2: Layout(length=364, parts={**_MD_2, 4: 2}, value=None),
}


def descriptor(version: int, order: ByteOrder = ByteOrder.BIG_ENDIAN) -> bytes:
    """An MQMD as bytes."""
    return DESCRIPTORS[version].data(order)


def descriptor_value(version: int) -> Mqmd:
    """The same as it is read."""
    values = (1, 8, -1, 0, 273, 1208, b"MQHRF2  ", 4, 1, b"m" * 24, b"c" * 24, 2)
    texts = (b"REPLY.Q".ljust(48), b"QM1".ljust(48), b"alice".ljust(12), b"a" * 32, b"identity".ljust(32))
    put = (28, b"java".ljust(28), b"20260102", b"03040506", b"orig")
    return Mqmd(version, (*values, *texts, *put, bytes(24), 1, 0, 0, -1))
