"""Messages with headers as inputs of fuzzers: a byte that picks what the MQMD says, and the bytes of a vector."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mappings.commands.command import FORMAT_DEAD_LETTER, FORMAT_MQRFH, FORMAT_MQRFH2

VECTORS: Final = Path(__file__).resolve().parents[1] / "vectors"
FORMATS: Final = (FORMAT_MQRFH, FORMAT_MQRFH2, FORMAT_DEAD_LETTER, b"MQCICS  ")
CODED_CHAR_SET_IDS: Final = (1208, 819, 500, 1200, 37, 0, 932, 1252)
ENCODINGS: Final = (546, 273)


def pick(selector: int) -> dict[str, object]:
    """What the MQMD says."""
    return {
        "format": FORMATS[selector % 4],
        "coded_char_set_id": CODED_CHAR_SET_IDS[selector // 4 % 8],
        "encoding": ENCODINGS[selector // 32 % 2],
    }


def seeds() -> Iterator[tuple[str, bytes]]:
    """The messages of the corpus, each behind the byte that picks what its MQMD says."""
    for path in sorted(VECTORS.glob("*.toml")):
        for number, vector in enumerate(tomllib.loads(path.read_text())["vector"]):
            digits = "".join(line.partition("#")[0] for line in vector["bytes"].splitlines())
            mqmd = (vector["format"].ljust(8).encode(), vector["coded_char_set_id"], vector["encoding"])
            selector = next((each for each in range(64) if tuple(pick(each).values()) == mqmd), 0)
            yield f"{path.stem}-{number}", bytes([selector]) + bytes.fromhex(digits)
