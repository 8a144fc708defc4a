"""The corpus of the fuzzers is read again: what once ran a line for the first time, or was found, stays well."""

import random
from collections.abc import Callable

import pytest

from tests.fuzz.gateway_readers import READERS, lines_of, mutated, seeds

#: Fewer than what each reader has; a folder that was lost is noticed.
LEAST = 3
LARGEST_BYTES = 100_000


@pytest.mark.parametrize("reader", READERS)
def test_each_input_of_the_corpus_is_read_as_it_should_be(reader: Callable[[bytes], None]) -> None:
    found = seeds(reader)
    assert len(found) >= LEAST
    assert sum(map(len, found.values())) <= LARGEST_BYTES, "a corpus in the repository is small"
    for name, data in found.items():
        ran = lines_of(reader, data)
        assert ran, name


@pytest.mark.parametrize("reader", READERS)
def test_some_hundred_mutations_find_nothing(reader: Callable[[bytes], None]) -> None:
    chance = random.Random(15)
    inputs = list(seeds(reader).values())
    for _ in range(300):
        reader(mutated(chance.choice(inputs), chance.choice(inputs), chance))
