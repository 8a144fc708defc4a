"""Headers of test messages, put together by the byte layout on IBM's pages and never by the code under test.

`format`, `ccsid` and `encoding` describe what follows the header; `order` is the byte order of the header itself. Tests
that are about single bytes write them out instead.
"""

import struct

NO_FORMAT = b"        "  # MQFMT_NONE


def mqrfh(
    string: str | bytes,
    *,
    format: bytes = b"MQSTR   ",
    ccsid: int = 1208,
    encoding: int = 546,
    order: str = "<",
    flags: int = 0,
    padded: bool = True,
) -> bytes:
    """An MQRFH around a NameValueString in UTF-8, which blanks fill up to a multiple of 4 bytes."""
    data = string.encode() if isinstance(string, str) else string
    data += b" " * (-len(data) % 4 if padded else 0)
    return struct.pack(f"{order}4siiii8sI", b"RFH ", 1, 32 + len(data), encoding, ccsid, format, flags) + data


def mqrfh2(
    *folders: str | bytes,
    format: bytes = b"MQSTR   ",
    ccsid: int = 1208,
    encoding: int = 546,
    order: str = "<",
    flags: int = 0,
    name_value_ccsid: int = 1208,
    codec: str = "utf-8",
) -> bytes:
    """An MQRFH2 around folders, each of which blanks fill up to a multiple of 4 bytes."""
    blank, data = " ".encode(codec), b""
    for folder in folders:
        text = folder.encode(codec) if isinstance(folder, str) else folder
        text += blank * (-len(text) % 4 // len(blank))
        data += struct.pack(f"{order}i", len(text)) + text
    fixed = (b"RFH ", 2, 36 + len(data), encoding, ccsid, format, flags, name_value_ccsid)
    return struct.pack(f"{order}4siiii8sIi", *fixed) + data
