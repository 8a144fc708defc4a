"""Headers that are written here as IBM's classes read them, and the other way round, in every page that both know."""

import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from mappings.errors import HeaderError
from mappings.headers.chain import DeadLetterHeader, read_header_chain
from mappings.headers.charset import (
    CODED_CHAR_SET_IDS,
    ENCODING_NORMAL,
    ENCODING_REVERSED,
    TWO_BYTE_CODED_CHAR_SET_IDS,
    encode_text,
)
from mappings.headers.mqrfh import Mqrfh, write_mqrfh
from mappings.headers.mqrfh2 import Mqrfh2, flat_folder, write_mqrfh2
from mappings.headers.name_value import format_name_value_string
from tests.end_to_end.mq_clients.house import PATIENCE_S

StartJava = Callable[..., "subprocess.Popen[str]"]
#: Pages of headers. A two-byte page has none.
PAGES: Final = sorted(CODED_CHAR_SET_IDS - TWO_BYTE_CODED_CHAR_SET_IDS)
FORMATS: Final = {"MQRFH2": "MQHRF2  ", "MQRFH": "MQHRF   ", "MQDLH": "MQDEAD  "}
LETTERS: Final = "abcxyzABC019 _-./äöüßéÑ¤€日本\U0001f600&<>'\"\t"
#: Letters that have one byte in each page. IBM's class gives an MQRFH with others a StrucLength that is not its length.
PLAIN_LETTERS: Final = "".join(letter for letter in LETTERS if letter.isascii())
BODY: Final = b"\x00\xffbody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A header with its values, and how its writer describes what follows."""

    kind: str
    page: int
    encoding: int
    next_page: int
    next_encoding: int
    number: int
    pairs: tuple[tuple[str, str], ...]
    next_format: str = "MQSTR"


def cases(seed: int, count: int, *, mqrfh_letters: str = LETTERS) -> Iterator[Case]:
    """Headers of all kinds, pages and byte orders in turns, with values by chance."""
    chance = random.Random(seed)
    orders = (ENCODING_NORMAL, ENCODING_REVERSED)
    for number in range(count):
        kind, page = tuple(FORMATS)[number % 3], PAGES[number // 3 % len(PAGES)]
        texts, letters = (page, mqrfh_letters) if kind == "MQRFH" else (1208, LETTERS)
        pairs = tuple((f"n{at}", text(chance, texts, letters)) for at in range(chance.randint(1, 5)))
        if kind == "MQDLH":
            pairs = (("DestQName", f"Q{number}.X"), ("PutApplName", f"appl {number}"))
        yield Case(
            kind=kind,
            page=page,
            encoding=chance.choice(orders),
            next_page=chance.choice([819, 1208, 500]),
            next_encoding=chance.choice(orders),
            number=chance.randint(0, 9_999),
            pairs=pairs,
        )


def text(chance: random.Random, page: int, letters: str) -> str:
    """A text that a page can hold, without blanks at its ends."""
    found = "".join(chance.choice(letters) for _ in range(chance.randint(1, 12)))
    return "".join(letter for letter in found if holds(page, letter)).strip(" \t") or "x"


def holds(page: int, letter: str) -> bool:
    try:
        encode_text(letter, page)
    except HeaderError:
        return False
    return True


def written(case: Case) -> bytes:
    """The header as it is written here."""
    if case.kind == "MQDLH":
        names = dict(case.pairs)
        return DeadLetterHeader(
            reason=case.number,
            dest_q_name=names["DestQName"],
            dest_q_mgr_name="",
            encoding=case.next_encoding,
            coded_char_set_id=case.next_page,
            format=case.next_format.ljust(8).encode(),
            put_appl_type=28,
            put_appl_name=names["PutApplName"],
            put_date="20261129",
            put_time="10203000",
        ).to_bytes(coded_char_set_id=case.page, encoding=case.encoding)
    said = {
        "format": case.next_format.ljust(8).encode(),
        "next_coded_char_set_id": case.next_page,
        "next_encoding": case.next_encoding,
        "coded_char_set_id": case.page,
        "encoding": case.encoding,
        "flags": case.number,
    }
    if case.kind == "MQRFH":
        return write_mqrfh(case.pairs, **said)  # type: ignore[arg-type]
    return write_mqrfh2((flat_folder("usr", case.pairs).encode(),), **said)  # type: ignore[arg-type]


def hex_of(value: str) -> str:
    return value.encode().hex()


def as_told(case: Case) -> str:
    """A header as the program tells it."""
    described = f"{case.next_format}/{case.next_page}/{case.next_encoding} {case.number}"
    if case.kind == "MQDLH":
        names = dict(case.pairs)
        return f"MQDLH {described} {hex_of(names['DestQName'])},,{hex_of(names['PutApplName'])}"
    if case.kind == "MQRFH":
        return f"MQRFH {described} {hex_of(format_name_value_string(case.pairs))}"
    return f"MQRFH2 {described} " + ",".join(hex_of(value) for _, value in case.pairs)


def to_read(case: Case) -> str:
    asked = ",".join(f"usr:{hex_of(name)}" for name, _ in case.pairs) if case.kind == "MQRFH2" else ""
    data = (written(case) + BODY).hex()
    return "\t".join(("read", FORMATS[case.kind], str(case.page), str(case.encoding), data, asked))


def to_write(case: Case) -> str:
    pairs = ",".join(f"{hex_of(name)}={hex_of(value)}" for name, value in case.pairs)
    if case.kind == "MQRFH":
        pairs = hex_of(format_name_value_string(case.pairs))
    numbers = (case.next_page, case.next_encoding, case.number)
    begin = ("write", case.kind, str(case.page), str(case.encoding), case.next_format.ljust(8))
    return "\t".join((*begin, *map(str, numbers), pairs))


def read_here(case: Case, data: bytes) -> str:
    """What a header of IBM's classes says, told in the same way."""
    chain = read_header_chain(
        data + BODY, format=FORMATS[case.kind].encode(), coded_char_set_id=case.page, encoding=case.encoding
    )
    (header,) = chain.headers
    assert (data + BODY)[chain.body_offset :] == BODY
    described = f"{header.format.decode().strip()}/{header.coded_char_set_id}/{header.encoding}"
    if isinstance(header, DeadLetterHeader):
        return f"MQDLH {described} {header.reason} {hex_of(header.dest_q_name)},,{hex_of(header.put_appl_name)}"
    if isinstance(header, Mqrfh):
        assert header.pairs == case.pairs
        return f"MQRFH {described} {header.flags} {hex_of(header.name_value_string.rstrip())}"
    assert isinstance(header, Mqrfh2)
    folder = header.folder("usr")
    assert folder is not None
    values = {element.name: element.text for element in folder.elements}
    return f"MQRFH2 {described} {header.flags} " + ",".join(hex_of(values[name]) for name, _ in case.pairs)


def asked_of_ibm(start_java: StartJava, folder: Path, lines: list[str]) -> list[str]:
    (folder / "cases").write_text("".join(f"{line}\n" for line in lines))
    program = start_java("Headers", folder=folder, stdin=folder / "cases")
    results = program.communicate(timeout=PATIENCE_S)[0].splitlines()
    assert len(results) == len(lines), results[:3]
    return results


def count_of(proof_scale: str) -> int:
    return 3_000 if proof_scale == "full" else 300


@pytest.mark.proof
def test_ibm_reads_headers_that_are_written_here(start_java: StartJava, tmp_path: Path, proof_scale: str) -> None:
    given = list(cases(1, count_of(proof_scale)))
    told = asked_of_ibm(start_java, tmp_path, [to_read(case) for case in given])
    unknown = {case.page for case, result in zip(given, told, strict=True) if "UnsupportedEncoding" in result}
    for case, result in zip(given, told, strict=True):
        if case.page not in unknown:
            assert result.split("\t") == [as_told(case), BODY.hex()], case
    assert unknown == set()


@pytest.mark.proof
def test_headers_that_ibm_writes_are_read_here(start_java: StartJava, tmp_path: Path, proof_scale: str) -> None:
    given = list(cases(2, count_of(proof_scale), mqrfh_letters=PLAIN_LETTERS))
    for case, result in zip(given, asked_of_ibm(start_java, tmp_path, [to_write(case) for case in given]), strict=True):
        assert not result.startswith("error"), (case, result)
        assert read_here(case, bytes.fromhex(result)) == as_told(case), case


def chains(seed: int, count: int) -> Iterator[tuple[Case, ...]]:
    """Three headers of different kinds in any order, each in the page and byte order that the one in front names."""
    chance = random.Random(seed)
    source = cases(seed, 3 * count, mqrfh_letters=PLAIN_LETTERS)
    for _ in range(count):
        first, second, third = chance.sample([next(source) for _ in range(3)], 3)
        second = replace(second, page=first.next_page, encoding=first.next_encoding)
        third = replace(third, page=second.next_page, encoding=second.next_encoding)
        formats = FORMATS[second.kind].strip(), FORMATS[third.kind].strip()
        yield replace(first, next_format=formats[0]), replace(second, next_format=formats[1]), third


@pytest.mark.proof
def test_ibm_walks_chains_that_are_written_here(start_java: StartJava, tmp_path: Path, proof_scale: str) -> None:
    given = list(chains(3, count_of(proof_scale) // 3))
    lines = []
    for first, second, third in given:
        (named,) = (case for case in (first, second, third) if case.kind == "MQRFH2")
        data = b"".join(map(written, (first, second, third))) + BODY
        asked = ",".join(f"usr:{hex_of(name)}" for name, _ in named.pairs)
        said = (FORMATS[first.kind], str(first.page), str(first.encoding), data.hex(), asked)
        lines.append("\t".join(("read", *said)))
    for chain, result in zip(given, asked_of_ibm(start_java, tmp_path, lines), strict=True):
        assert result.split("\t") == [*map(as_told, chain), BODY.hex()], chain
