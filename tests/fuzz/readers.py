"""A coverage-guided fuzzer of every reader in `mappings`: whatever the bytes, a value or a MappingError, soon.

Run by `make fuzz`; see the README beside this. The first byte of an input picks Format, code page and byte order of the
MQMD, the others are the message. What must hold: no foreign exception, the same conversion by the plain and by the full
path, and the law of `tests.mappings.round_trip`.
"""

import contextlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import atheris

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

with atheris.instrument_imports(include=["mappings"]):
    from mappings.commands.command import FORMAT_DEAD_LETTER, FORMAT_MQRFH, FORMAT_MQRFH2, read_command
    from mappings.commands.response import read_response
    from mappings.conversion.chain import convert_chain
    from mappings.conversion.convert import Folders, Mode, convert
    from mappings.errors import MappingError
    from mappings.headers.chain import read_header_chain
    from mappings.lint import lint
    from mappings.table import Dialect
    from tests.fuzz.campaign import run
    from tests.mappings.there_and_back import assert_law_holds

FORMATS = (FORMAT_MQRFH, FORMAT_MQRFH2, FORMAT_DEAD_LETTER, b"MQCICS  ")
CODED_CHAR_SET_IDS = (1208, 819, 500, 1200, 37, 0, 932, 1252)
ENCODINGS = (546, 273)
LONGEST_BYTES = 2_048


def pick(selector: int) -> dict[str, object]:
    """What the MQMD says."""
    return {
        "format": FORMATS[selector % 4],
        "coded_char_set_id": CODED_CHAR_SET_IDS[selector // 4 % 8],
        "encoding": ENCODINGS[selector // 32 % 2],
    }


def outcome(call, data: bytes, **arguments) -> object:
    try:
        return call(data, **arguments)
    except MappingError as problem:
        return type(problem), problem.reason_code, str(problem), problem.offset, problem.parameter


def read_everything(given: bytes) -> None:
    """One input of the fuzzer."""
    if not given:
        return
    mqmd, data = pick(given[0]), given[1:]
    with contextlib.suppress(MappingError):
        chain = read_header_chain(data, **mqmd)
        assert chain.body_offset <= len(data)
        for read in (read_command, read_response):
            with contextlib.suppress(MappingError):
                read(chain)
    for to in Dialect:
        for mode in Mode:
            assert outcome(convert, data, **mqmd, to=to, mode=mode) == outcome(
                convert_chain, data, **mqmd, to=to, mode=mode
            )
    for finding in (*lint(data), *lint(data, **mqmd)):
        finding.as_dict()
    assert_law_holds(data, **mqmd, mode=Mode.EXTENDED, folders=Folders.KEPT)


def seeds() -> Iterator[tuple[str, bytes]]:
    """The messages of the corpus, each behind the byte that picks what its MQMD says."""
    for path in sorted((PROJECT / "tests" / "vectors").glob("*.toml")):
        for number, vector in enumerate(tomllib.loads(path.read_text())["vector"]):
            digits = "".join(line.partition("#")[0] for line in vector["bytes"].splitlines())
            mqmd = (vector["format"].ljust(8).encode(), vector["coded_char_set_id"], vector["encoding"])
            selector = next((each for each in range(64) if tuple(pick(each).values()) == mqmd), 0)
            yield f"{path.stem}-{number}", bytes([selector]) + bytes.fromhex(digits)


if __name__ == "__main__":
    run("readers", read_everything, seeds(), longest_bytes=LONGEST_BYTES)
