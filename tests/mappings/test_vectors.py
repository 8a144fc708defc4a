"""Every vector of the corpus: decoded whole, cut at every length, with bytes behind it, linted, there and back."""

import contextlib
from itertools import product

import pytest

from mappings.commands.command import Command, Dialect, Publish, read_command, read_response
from mappings.commands.options import DeleteOption, PublicationOption, RegistrationOption, tokens_of
from mappings.commands.response import Response
from mappings.conversion.convert import Folders, Mode, convert
from mappings.errors import MappingError
from mappings.headers.chain import DeadLetterHeader, Header, HeaderChain, read_header_chain
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Mqrfh2
from mappings.headers.opaque import OpaqueHeader
from mappings.lint import Circumstances, lint
from tests.every_case import for_every
from tests.mappings.there_and_back import assert_law_holds
from tests.mappings.vectors import READABLE, REFUSED, VECTORS, Table, Vector

LEAST_VECTORS = 250
# 13.1 of the documentation's errata: what a client's header can provoke at a broker, and what MQPUT says itself.
CLIENT_REASONS = {2334, 2335, 2336, 2337, 2338, 2339, 2421, 2527, 3071, 3072, 3073, 3074, 3075, 3076, 3077, 3078, 3079}
CLIENT_REASONS |= {3080, 3082, 3083, 3084, 3087, 3150, 3153, 3154}

TEXTS = {
    "StreamName": "stream_name",
    "QName": "queue_name",
    "QMgrName": "queue_manager_name",
    "SubPoint": "subscription_point",
    "Filter": "filter",
    "PubTime": "publication_time",
    "SeqNum": "sequence_number",
    "SubName": "subscription_name",
    "SubIdentity": "subscription_identity",
    "SubUserData": "subscription_user_data",
}

every = for_every(VECTORS)
every_readable = for_every(READABLE)


def chain_of(vector: Vector, data: bytes | None = None) -> HeaderChain:
    return read_header_chain(
        vector.data if data is None else data,
        format=vector.format,
        coded_char_set_id=vector.coded_char_set_id,
        encoding=vector.encoding,
    )


def format_text(format: bytes) -> str:
    return format.decode("ascii").rstrip(" ")


def as_table(header: Header, offset: int) -> Table:
    """A header in the form of the corpus."""
    table: Table = {
        "offset": offset,
        "length": header.struc_length,
        "format": format_text(header.format),
        "coded_char_set_id": header.coded_char_set_id,
        "encoding": header.encoding,
    }
    match header:
        case Mqrfh():
            return {"kind": "MQRFH", **table, "flags": header.flags, "pairs": [list(pair) for pair in header.pairs]}
        case Mqrfh2():
            folders = [[folder.name, folder.text] for folder in header.folders]
            rest = {"flags": header.flags, "name_value_ccsid": header.name_value_ccsid, "folders": folders}
            return {"kind": "MQRFH2", **table, **rest}
        case DeadLetterHeader():
            names = (
                "reason",
                "dest_q_name",
                "dest_q_mgr_name",
                "put_appl_type",
                "put_appl_name",
                "put_date",
                "put_time",
            )
            return {"kind": "MQDLH", **table, **{name: getattr(header, name) for name in names}}
        case OpaqueHeader():
            return {"kind": "opaque", **table}


def command_table(command: Command) -> Table:
    """A command in the form of the corpus: what it does not say is not there."""
    texts = {key: getattr(command, attribute, None) for key, attribute in TEXTS.items()}
    table: Table = {
        "verb": command.verb,
        "topics": list(command.topics),
        "registration_options": list(tokens_of(getattr(command, "registration_options", RegistrationOption(0)))),
        "publication_options": list(tokens_of(getattr(command, "publication_options", PublicationOption(0)))),
        "delete_options": list(tokens_of(getattr(command, "delete_options", DeleteOption(0)))),
        "texts": {key: value for key, value in texts.items() if value is not None},
        "data": [list(pair) for pair in command.data] if isinstance(command, Publish) else [],
    }
    return {key: value for key, value in table.items() if value or key in ("verb", "topics")}


def response_table(response: Response) -> Table:
    reasons = [
        {"reason_code": int(reason.reason_code), "fields": [list(pair) for pair in reason.fields]}
        for reason in response.reasons
    ]
    table: Table = {
        "completion": int(response.completion),
        "reasons": reasons,
        "fields": [list(pair) for pair in response.fields],
    }
    return table if response.verb is None else {**table, "verb": response.verb}


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    assert len(VECTORS) >= LEAST_VECTORS
    names = [str(vector) for vector in VECTORS]
    assert len(set(names)) == len(names)
    assert all(vector.source for vector in VECTORS)


def test_every_reason_code_that_a_header_can_provoke_is_provoked() -> None:
    codes = {vector.error["reason_code"] for vector in VECTORS if vector.error is not None}
    codes |= {vector.answer for vector in VECTORS if vector.answer}
    assert codes >= CLIENT_REASONS


@every_readable
def test_headers_and_body_are_decoded(vector: Vector) -> None:
    chain = chain_of(vector)
    found = [as_table(header, offset) for header, offset in zip(chain.headers, chain.offsets, strict=True)]
    assert found == vector.headers
    assert vector.body == {
        "offset": chain.body_offset,
        "format": format_text(chain.body_format),
        "coded_char_set_id": chain.body_coded_char_set_id,
        "encoding": chain.body_encoding,
    }


@for_every([vector for vector in VECTORS if vector.command is not None])
def test_commands_are_decoded(vector: Vector) -> None:
    assert command_table(read_command(chain_of(vector))) == vector.command


@for_every([vector for vector in VECTORS if vector.response is not None])
def test_responses_are_decoded(vector: Vector) -> None:
    assert response_table(read_response(chain_of(vector))) == vector.response


@every_readable
def test_bytes_behind_the_headers_are_the_body_and_nothing_else(vector: Vector) -> None:
    alone, longer = chain_of(vector), chain_of(vector, vector.data + b"\xff trailing")
    assert (longer.headers, longer.body_offset) == (alone.headers, alone.body_offset)


@every
def test_a_message_cut_at_every_length_ends_in_a_value_or_in_our_error(vector: Vector) -> None:
    step = 1 + len(vector.data) // 1_000
    for length in range(0, len(vector.data), step):
        with contextlib.suppress(MappingError):
            chain = chain_of(vector, vector.data[:length])
            assert chain.body_offset <= length
            for read in (read_command, read_response):
                with contextlib.suppress(MappingError):
                    read(chain)
        assert isinstance(lint(vector.data[:length], **vector.mqmd), tuple)


@every_readable
def test_a_chain_that_is_cut_is_never_read_as_whole(vector: Vector) -> None:
    whole = chain_of(vector)
    for length in range(whole.body_offset):
        with contextlib.suppress(MappingError):
            assert len(chain_of(vector, vector.data[:length]).headers) < len(whole.headers) or not whole.headers


@for_every(REFUSED)
def test_the_linter_says_what_would_be_answered(vector: Vector) -> None:
    given = dict(vector.circumstances)
    if "correlation_identifier" in given:
        given["correlation_identifier"] = bytes.fromhex(str(given["correlation_identifier"]))
    if "streams" in given:
        given["streams"] = frozenset(given["streams"])
    first, *_ = lint(vector.data, **vector.mqmd, circumstances=Circumstances(**given))
    found = first.as_dict()
    assert vector.error is not None
    assert {key: found[key] for key in vector.error} == vector.error
    assert found["problem"]
    assert found["advice"]


@for_every([vector for vector in VECTORS if vector.command and not vector.error])
def test_the_linter_finds_nothing_in_a_right_command_apart_from_its_folders(vector: Vector) -> None:
    assert [finding for finding in lint(vector.data, **vector.mqmd) if finding.reason_code != 2421] == []


@every
def test_there_and_back_differ_as_the_law_says(vector: Vector) -> None:
    for mode, folders in product(Mode, Folders):
        assert_vector_keeps_the_law(vector, mode, folders)


def assert_vector_keeps_the_law(vector: Vector, mode: Mode, folders: Folders) -> None:
    converted = assert_law_holds(
        vector.data,
        format=vector.format,
        coded_char_set_id=vector.coded_char_set_id,
        encoding=vector.encoding,
        mode=mode,
        folders=folders,
    )
    if vector.error is not None and not vector.command and not vector.circumstances:
        return
    if vector.command is not None and not converted:
        assert is_inexpressible(vector, mode), "only what the other format cannot say stays where it is"


def is_inexpressible(vector: Vector, mode: Mode) -> bool:
    """Whether the conversion of a right command is refused for a reason of its own, or for a name left behind."""
    to = Dialect.MQRFH if any(header["kind"] == "MQRFH2" for header in vector.headers or []) else Dialect.MQRFH2
    if any(header["kind"] == "MQRFH" for header in vector.headers or []):
        to = Dialect.MQRFH2
    with pytest.raises(MappingError) as caught:
        convert(
            vector.data,
            format=vector.format,
            coded_char_set_id=vector.coded_char_set_id,
            encoding=vector.encoding,
            to=to,
            mode=mode,
        )
    allowed = (2119, 2336, 2337, 2421, 3072) if mode is Mode.EXTENDED else (2119, 2336, 2337, 2339, 2421, 3072)
    return caught.value.reason_code in allowed
