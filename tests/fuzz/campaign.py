"""What every fuzzer here does beside reading: seeds, corpus and findings in var/fuzz, and the time that it runs."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

PROJECT = Path(__file__).resolve().parents[2]
SECONDS_FOR_ONE_INPUT = 10
DEFAULT_SECONDS = 600


def run(
    name: str, read_everything: Callable[[bytes], None], seeds: Iterable[tuple[str, bytes]], *, longest_bytes: int
) -> None:
    """Fuzz for the seconds of the command line; or read again the inputs that stand there instead."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0].isdecimal():
        found = PROJECT / "var" / "fuzz" / name
        for folder in ("seeds", "corpus"):
            (found / folder).mkdir(parents=True, exist_ok=True)
        for seed, data in seeds:
            (found / "seeds" / seed).write_bytes(data)
        arguments = [
            f"-max_total_time={arguments[0] if arguments else DEFAULT_SECONDS}",
            f"-max_len={longest_bytes}",
            f"-timeout={SECONDS_FOR_ONE_INPUT}",
            f"-artifact_prefix={found}/",
            str(found / "corpus"),
            str(found / "seeds"),
        ]
    atheris.Setup([sys.argv[0], *arguments], read_everything)
    atheris.Fuzz()
