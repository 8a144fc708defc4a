"""The fixed fields of IBM MQ's headers: one table for each, from which all readers and writers here take their layout.

A field is its IBM name and its kind: `i` is an MQLONG of 4 bytes, `I` one whose bits are flags, `48s` are 48
characters. Integers are in the Encoding, characters in the CodedCharSetId of the structure in front. All headers but
MQDLH and MQXQH begin with the same fields.
Sources: IBM MQ documentation, the fields of MQRFH, MQRFH2, MQDLH, MQXQH, MQMD, MQCIH, MQDH, MQIIH, MQMDE, MQRMH and
MQWIH.
"""

import struct
from typing import Final

from mappings.headers.charset import is_big_endian


class Layout:
    """The fixed fields of one header, in order. `offsets` are in bytes from the beginning of the header."""

    __slots__ = ("big_endian", "fields", "length_bytes", "little_endian", "offsets")

    def __init__(self, *fields: tuple[str, str]) -> None:
        codes = "".join(code for _, code in fields)
        self.fields = fields
        self.big_endian = struct.Struct(f">{codes}")
        self.little_endian = struct.Struct(f"<{codes}")
        self.length_bytes = self.big_endian.size
        self.offsets: dict[str, int] = {}
        offset = 0
        for name, code in fields:
            self.offsets[name] = offset
            offset += struct.calcsize(f">{code}")

    def in_encoding(self, encoding: int) -> struct.Struct:
        """The fields in the byte order of an Encoding; HeaderError where the Encoding names none."""
        return self.big_endian if is_big_endian(encoding) else self.little_endian


_COMMON: Final = (
    ("StrucId", "4s"),
    ("Version", "i"),
    ("StrucLength", "i"),
    ("Encoding", "i"),
    ("CodedCharSetId", "i"),
    ("Format", "8s"),
    ("Flags", "I"),
)
#: What MQRFH, MQRFH2 and the headers that are walked over have in common; an MQRFH has no other fixed fields.
COMMON: Final = Layout(*_COMMON)
MQRFH2: Final = Layout(*_COMMON, ("NameValueCCSID", "i"))
MQDLH: Final = Layout(
    ("StrucId", "4s"),
    ("Version", "i"),
    ("Reason", "i"),
    ("DestQName", "48s"),
    ("DestQMgrName", "48s"),
    ("Encoding", "i"),
    ("CodedCharSetId", "i"),
    ("Format", "8s"),
    ("PutApplType", "i"),
    ("PutApplName", "28s"),
    ("PutDate", "8s"),
    ("PutTime", "8s"),
)
#: MQXQH, version 1, with the MQMD in it (MsgDesc, version 1), whose fields say what follows.
MQXQH: Final = Layout(
    ("StrucId", "4s"),
    ("Version", "i"),
    ("RemoteQName", "48s"),
    ("RemoteQMgrName", "48s"),
    ("MsgDesc.StrucId", "4s"),
    ("MsgDesc.Version", "i"),
    ("Report", "i"),
    ("MsgType", "i"),
    ("Expiry", "i"),
    ("Feedback", "i"),
    ("Encoding", "i"),
    ("CodedCharSetId", "i"),
    ("Format", "8s"),
    ("Priority", "i"),
    ("Persistence", "i"),
    ("MsgId", "24s"),
    ("CorrelId", "24s"),
    ("BackoutCount", "i"),
    ("ReplyToQ", "48s"),
    ("ReplyToQMgr", "48s"),
    ("UserIdentifier", "12s"),
    ("AccountingToken", "32s"),
    ("ApplIdentityData", "32s"),
    ("PutApplType", "i"),
    ("PutApplName", "28s"),
    ("PutDate", "8s"),
    ("PutTime", "8s"),
    ("ApplOriginData", "4s"),
)
MQIIH: Final = Layout(
    *_COMMON,
    ("LTermOverride", "8s"),
    ("MFSMapName", "8s"),
    ("ReplyToFormat", "8s"),
    ("Authenticator", "8s"),
    ("TranInstanceId", "16s"),
    ("TranState", "1s"),
    ("CommitMode", "1s"),
    ("SecurityScope", "1s"),
    ("Reserved", "1s"),
)
_CICS_1: Final = (
    *_COMMON,
    ("ReturnCode", "i"),
    ("CompCode", "i"),
    ("Reason", "i"),
    ("UOWControl", "i"),
    ("GetWaitInterval", "i"),
    ("LinkType", "i"),
    ("OutputDataLength", "i"),
    ("FacilityKeepTime", "i"),
    ("ADSDescriptor", "i"),
    ("ConversationalTask", "i"),
    ("TaskEndStatus", "i"),
    ("Facility", "8s"),
    ("Function", "4s"),
    ("AbendCode", "4s"),
    ("Authenticator", "8s"),
    ("Reserved1", "8s"),
    ("ReplyToFormat", "8s"),
    ("RemoteSysId", "4s"),
    ("RemoteTransId", "4s"),
    ("TransactionId", "4s"),
    ("FacilityLike", "4s"),
    ("AttentionId", "4s"),
    ("StartCode", "4s"),
    ("CancelCode", "4s"),
    ("NextTransactionId", "4s"),
    ("Reserved2", "8s"),
    ("Reserved3", "8s"),
)
#: MQCIH, version 1 and version 2.
MQCIH_1: Final = Layout(*_CICS_1)
MQCIH_2: Final = Layout(*_CICS_1, ("CursorPosition", "i"), ("ErrorOffset", "i"), ("InputItem", "i"), ("Reserved4", "i"))
#: Fields that are bytes and no characters. No code page counts for them.
BINARY: Final = frozenset({"MsgId", "CorrelId", "AccountingToken", "TranInstanceId", "Facility"})
#: One NameValueLength of an MQRFH2, in front of each folder.
NAME_VALUE_LENGTH: Final = Layout(("NameValueLength", "i"))
