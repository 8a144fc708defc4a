"""A template of publications writes the headers and raises the errors of `write_command`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.commands.command import Dialect, Publish, write_command
from mappings.commands.options import PublicationOption
from mappings.conversion.publication_template import PublicationTemplate
from mappings.errors import MappingError
from tests.mappings.conversion.test_plain import ended

TOPICS = st.one_of(
    st.sampled_from(["a", "a b", "a&b", "<", "100%", "*", 'say "x"', "é", "\U0001f600", "\ud800", "", "x" * 1_500]),
    st.text(max_size=40),
)
PAIRS = st.lists(
    st.tuples(st.sampled_from(["rfhbUserProps", "name with blanks", 'say "it"']), st.text(max_size=20)), max_size=2
)


@given(
    st.lists(TOPICS, max_size=6),
    st.sampled_from(list(Dialect)),
    st.sampled_from(["", "<usr><a>1</a></usr>", "<usr><a>\u20ac12</a></usr>"]),
    PAIRS,
    st.sampled_from([PublicationOption(0), PublicationOption.RETAIN_PUBLICATION]),
)
def test_a_template_writes_what_write_command_writes(
    topics: list[str], dialect: Dialect, folder: str, pairs: list[tuple[str, str]], options: PublicationOption
) -> None:
    publish = Publish(topics=("t",), publication_options=options, sequence_number="7")
    template = PublicationTemplate(publish, dialect)
    for topic in topics:
        expected = ended(
            write_command,
            Publish(topics=(topic,), publication_options=options, sequence_number="7", data=tuple(pairs)),
            dialect,
            extra_folders=(folder,) if folder else (),
        )
        assert ended(template.header, topic, folders=(folder,) if folder else (), data=tuple(pairs)) == expected


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_template_puts_a_header_together_without_write_command(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = PublicationTemplate(Publish(topics=("t",)), dialect)
    expected = write_command(Publish(topics=("plant/a",)), dialect)
    monkeypatch.delattr("mappings.conversion.publication_template.write_command")
    assert template.header("plant/a") == expected


@given(
    st.lists(TOPICS, max_size=6),
    st.sampled_from(list(Dialect)),
    st.sampled_from(["", "<usr><a>1</a></usr>", "<usr><a>\u20ac12</a></usr>"]),
    st.sampled_from([PublicationOption(0), PublicationOption.RETAIN_PUBLICATION]),
)
def test_a_template_reads_what_it_has_put_together_and_nothing_else(
    topics: list[str], dialect: Dialect, folder: str, options: PublicationOption
) -> None:
    folder = folder if dialect is Dialect.MQRFH2 else ""
    template = PublicationTemplate(Publish(topics=("t",), publication_options=options), dialect)
    other = PublicationTemplate(Publish(topics=("t",), sequence_number="7"), dialect)
    for topic in topics:
        try:
            header = template.header(topic, folders=(folder,) if folder else ())
        except MappingError:
            continue
        found = template.read(header)
        assert found in ((topic, folder), None)
        plain = "abx\u00e9" + ("" if dialect is Dialect.MQRFH2 else "\U0001f600")
        assert found is not None or not set(topic).issubset(plain) or len(topic) > 1_024
        assert other.read(header) is None
        for place in range(len(header)):
            damaged = header[:place] + bytes((header[place] ^ 1,)) + header[place + 1 :]
            read = template.read(damaged)
            assert read is None or template.header(read[0], folders=(read[1],) if read[1] else ()) == damaged
            assert template.read(header[:place]) is None


def test_a_template_of_a_wrong_command_is_refused_at_once() -> None:
    with pytest.raises(MappingError):
        PublicationTemplate(Publish(topics=("",)), Dialect.MQRFH2)
