"""An engine with a queue ORDERS, and programs that are connected to it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.rights import EVERYTHING, Rights
from tests.mq_adapters.embedded.mqi.program import Program


@pytest.fixture
def engine(data_folder: Path) -> Iterator[Engine]:
    made = Engine.open(data_folder, name="RFHB")
    made.define("ORDERS")
    yield made
    made.close()


@pytest.fixture
def connect(engine: Engine) -> Iterator[Callable[..., Program]]:
    """Connects a program with rights; without any named, with every right."""
    programs: list[Program] = []

    def connected(**patterns: tuple[str, ...]) -> Program:
        programs.append(Program(engine, Rights(**patterns) if patterns else EVERYTHING))
        return programs[-1]

    yield connected
    for program in programs:
        program.connection.end()
