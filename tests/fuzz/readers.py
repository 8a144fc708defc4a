"""A coverage-guided fuzzer of every reader in `mappings`: whatever the bytes, a value or a MappingError, soon.

Run by `make fuzz`; see the README beside this. The first byte of an input picks Format, code page and byte order of the
MQMD, the others are the message. What must hold: no foreign exception, the same conversion by the plain and by the full
path, and the law of `tests.mappings.round_trip`.
"""

import contextlib
import sys
from pathlib import Path

import atheris

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

with atheris.instrument_imports(include=["mappings"]):
    from mappings.commands.command import read_command
    from mappings.commands.response import read_response
    from mappings.conversion.chain import convert_chain
    from mappings.conversion.convert import Folders, Mode, convert
    from mappings.errors import MappingError
    from mappings.headers.chain import read_header_chain
    from mappings.lint import lint
    from mappings.table import Dialect
    from tests.fuzz.campaign import run
    from tests.fuzz.header_vectors import pick, seeds
    from tests.mappings.there_and_back import assert_law_holds

LONGEST_BYTES = 2_048


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


if __name__ == "__main__":
    run("readers", read_everything, seeds(), longest_bytes=LONGEST_BYTES)
