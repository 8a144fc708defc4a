"""Input made to cost: what is refused is refused soon, and what is read is read in linear time and memory.

Short: 300,000 repetitions, 30 megabytes. In full (RFHBRIDGE_PROOF=full): a million, and 100 megabytes.
"""

import os
import struct
import tracemalloc
from functools import partial

import pytest

import tests.headers
from mappings.commands.command import FORMAT_MQRFH, FORMAT_MQRFH2, Dialect, read_command, read_response
from mappings.conversion.convert import convert
from mappings.errors import MappingError
from mappings.headers.chain import read_header_chain
from mappings.lint import lint
from tests.conftest import PROOF_VARIABLE
from tests.headers import mqrfh2

mqrfh = partial(tests.headers.mqrfh, padded=False)

# In the short form each takes at most two seconds of a quick machine. A copy of the rest for each repetition takes more
# than a minute there. Laughing is refused at the first "<!".
pytestmark = [pytest.mark.proof, pytest.mark.timeout(60)]

MEBIBYTE = 1_048_576
REPEATED = 1_000_000 if os.environ.get(PROOF_VARIABLE) == "full" else 300_000
LARGE = 100 * REPEATED
#: Peak memory for a message of that size: the bytes, their text, and a copy of each in flight.
MEMORY_FACTOR = 8

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BILLION_LAUGHS = f'<psc><!DOCTYPE l [<!ENTITY l0 "ha">{LAUGHS}]><Topic>&l9;</Topic></psc>'.encode()


def refusal(data: bytes, format: bytes) -> int:
    """The reason code that every reader gives."""
    arguments = {"format": format, "coded_char_set_id": 1208, "encoding": 546}
    chain = read_header_chain(data, **arguments)
    for read in (read_command, read_response):
        with pytest.raises(MappingError) as caught:
            read(chain)
        assert caught.value.reason_name
    with pytest.raises(MappingError):
        convert(data, **arguments, to=Dialect.MQRFH if format == FORMAT_MQRFH2 else Dialect.MQRFH2)
    (finding,) = lint(data, **arguments)
    return finding.reason_code


def peak_bytes(data: bytes, format: bytes) -> int:
    tracemalloc.start()
    try:
        refusal(data, format)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_billion_laughs_are_refused_without_laughing() -> None:
    data = mqrfh2(BILLION_LAUGHS)
    assert refusal(data, FORMAT_MQRFH2) == 2421
    assert peak_bytes(data, FORMAT_MQRFH2) < MEBIBYTE


@pytest.mark.parametrize(
    "declaration",
    [
        b'<!DOCTYPE psc SYSTEM "file:///etc/passwd">',
        b'<!DOCTYPE psc PUBLIC "x" "http://127.0.0.1:9/x.dtd">',
        b'<!DOCTYPE psc [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>',
        b'<?xml-stylesheet href="http://127.0.0.1:9/x"?>',
    ],
)
def test_declarations_are_refused_and_nothing_is_fetched(declaration: bytes) -> None:
    assert refusal(mqrfh2(b"<psc>" + declaration + b"<Command>Publish</Command></psc>"), FORMAT_MQRFH2) == 2421


def test_a_large_folder_is_refused_in_bounded_memory() -> None:
    folder = b"<psc><Command>Publish</Command><Topic>&amp;" + b"t" * LARGE + b"</Topic></psc>"
    assert peak_bytes(mqrfh2(folder), FORMAT_MQRFH2) < MEMORY_FACTOR * LARGE


def test_a_large_plain_topic_is_too_long_for_a_topic() -> None:
    folder = b"<psc><Command>Publish</Command><Topic>" + b"t" * LARGE + b"</Topic></psc>"
    with pytest.raises(MappingError) as caught:
        read_command(read_header_chain(mqrfh2(folder), format=FORMAT_MQRFH2, coded_char_set_id=1208, encoding=546))
    assert caught.value.reason_code == 3072


@pytest.mark.parametrize(
    "string",
    [
        b"MQPSCommand Publish MQPSQName " * (REPEATED // 2),
        b"MQPSCommand Publish " + b"MQPSColour x " * REPEATED,
        b'MQPSCommand Publish MQPSTopic "' + b'""' * REPEATED,
        b"MQPSCommand Publish MQPSTopic " + b'"' * (REPEATED + 1),
    ],
    ids=["commands", "unknown names", "quotes in quotes", "quotes"],
)
def test_names_or_quotes_that_are_repeated_end_soon(string: bytes) -> None:
    data = mqrfh(string)
    for to in Dialect:
        try:
            convert(data, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, to=to)
        except MappingError as problem:
            assert problem.reason_code in (2335, 2338, 3072)  # noqa: PT017 - some are dropped, and that is right
    assert lint(data)


def test_elements_that_are_repeated_end_soon() -> None:
    folder = b"<psc><Command>Publish</Command>" + b"<SeqNum>1</SeqNum>" * REPEATED + b"</psc>"
    assert lint(mqrfh2(folder))[0].reason_code == 2338
    topics = b"<psc><Command>Publish</Command>" + b"<Topic>a</Topic>" * (REPEATED // 5) + b"</psc>"
    conversion = convert(mqrfh2(topics), format=FORMAT_MQRFH2, coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH)
    assert conversion.header.count(b"MQPSTopic a") == REPEATED // 5


def test_ten_thousand_chained_headers_are_walked() -> None:
    empty = struct.pack("<4siiii8sii", b"RFH ", 2, 36, 546, 1208, b"MQHRF2  ", 0, 1208)
    last = empty.replace(b"MQHRF2  ", b"MQSTR   ")
    data = empty * 9_999 + last
    chain = read_header_chain(data, format=FORMAT_MQRFH2, coded_char_set_id=1208, encoding=546)
    assert (len(chain.headers), chain.body_offset) == (10_000, len(data))
