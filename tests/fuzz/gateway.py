"""A coverage-guided fuzzer of the readers at the gateway's rim (gateway_readers.py). Run by `make fuzz`.

The first byte of an input picks the reader; the others are what it reads.
"""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["gateway.listener", "gateway.access", "mappings.topics"]):
    from tests.fuzz.campaign import run
    from tests.fuzz.gateway_readers import READERS, seeds

LONGEST_BYTES = 4_096


def read_one(data: bytes) -> None:
    READERS[data[0] % len(READERS) if data else 0](data[1:])


if __name__ == "__main__":
    beginnings = (
        (f"{reader.__name__}-{name}", bytes((place,)) + data)
        for place, reader in enumerate(READERS)
        for name, data in seeds(reader).items()
    )
    run("gateway", read_one, beginnings, longest_bytes=LONGEST_BYTES)
