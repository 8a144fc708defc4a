"""Vectors whose answer depends on what a broker took before, put to the embedded queue manager's broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mappings.commands.command import read_response
from mappings.headers.chain import read_header_chain
from mq_adapters.system_queues import CONTROL_QUEUE
from tests.mappings.vectors import VECTORS, Vector
from tests.mq_adapters.broker.conftest import Station

BY_NAME = {(vector.file, vector.name): vector for vector in VECTORS}


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    made = Station(tmp_path, ())
    yield made
    made.engine.close()


def answer(station: Station, vector: Vector) -> int:
    """The reason code that the broker answers with; 0 when all is well."""
    user = {"user_identifier": vector.circumstances["user_identifier"]} if vector.circumstances else {}
    station.put(CONTROL_QUEUE, vector.format, vector.data, msg_type=1, reply_to_q="REPLY", **user)
    (reply,) = station.take_all("REPLY")
    chain = read_header_chain(
        reply.body,
        format=reply.descriptor.format,
        coded_char_set_id=reply.descriptor.coded_char_set_id,
        encoding=reply.descriptor.encoding,
    )
    return next((int(reason.reason_code) for reason in read_response(chain).reasons), 0)


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if vector.answer is not None], ids=str)
def test_the_broker_answers_as_the_vector_says(station: Station, vector: Vector) -> None:
    for name in vector.after:
        assert answer(station, BY_NAME[vector.file, name]) == 0
    assert answer(station, vector) == vector.answer
