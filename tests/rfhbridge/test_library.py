"""The documented library: its names, what loading it costs, and messages that came without their MQMD."""

import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import rfhbridge
from rfhbridge import Dialect, Folders, Mode, Outcome, Publish, Speaker
from tests.every_case import for_every

OURS = {"rfhbridge", "gateway", "mappings", "mq_adapters", "spark_audit"}

#: An MQRFH in EBCDIC and big-endian, written by hand after IBM's layout: page 500, `MQPSCommand DeletePub MQPSTopic a`.
EBCDIC_MQRFH = (
    "RFH ".encode("cp500")
    + bytes.fromhex("00000001 00000044 00000111 000001F4")
    + "MQSTR   ".encode("cp500")
    + bytes(4)
    + "MQPSCommand DeletePub MQPSTopic a   ".encode("cp500")
)


def test_every_name_is_there_and_says_what_it_is() -> None:
    for name in rfhbridge.__all__:
        each = getattr(rfhbridge, name)
        if inspect.isclass(each) or inspect.isfunction(each):
            assert inspect.getdoc(each), name


@for_every([name for name in rfhbridge.__all__ if inspect.isfunction(getattr(rfhbridge, name))])
def test_every_function_says_what_it_raises(name: str) -> None:
    assert "Raises" in (getattr(rfhbridge, name).__doc__ or "")


def _types_in(annotation: object) -> Iterator[type]:
    """The classes that an annotation names, whatever they stand in."""
    for each in (typing.get_origin(annotation), annotation):
        if isinstance(each, type):
            yield each
    for part in typing.get_args(annotation):
        yield from _types_in(part)


def _signatures(exported: object) -> Iterator[object]:
    """A function, or a class with the public methods and properties that it and our classes behind it have."""
    yield exported
    for base in getattr(exported, "__mro__", ()):
        public = {name: each for name, each in vars(base).items() if name == "__init__" or not name.startswith("_")}
        for each in public.values() if base.__module__.split(".")[0] in OURS else ():
            function = getattr(each, "__func__", getattr(each, "fget", each))
            if inspect.isfunction(function):
                yield function


@for_every(rfhbridge.__all__)
def test_every_type_in_a_signature_is_exported(name: str) -> None:
    """A program that names the type of what it gets or gives needs no import from the packages behind the library."""
    exported = {id(getattr(rfhbridge, each)) for each in rfhbridge.__all__}
    names = vars(rfhbridge) | {"Path": Path, "ConnectionSettings": rfhbridge.ConnectionSettings}
    for signature in _signatures(getattr(rfhbridge, name)):
        if not inspect.isclass(signature) and not inspect.isfunction(signature):
            continue
        for where, annotation in typing.get_type_hints(signature, localns=names).items():
            for each in _types_in(annotation):
                is_ours = each.__module__.split(".")[0] in OURS
                assert where.startswith("_") or not is_ours or id(each) in exported, (signature, where, each)


def test_no_other_name_is_promised() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'gateway'"):
        _ = rfhbridge.gateway  # type: ignore[attr-defined]  # the point of the test


def test_the_library_loads_neither_the_gateway_nor_a_store_nor_ibm_mq() -> None:
    heavy = {"gateway", "apsw", "asyncio", "mq_adapters.ibm_mq", "spark_audit"}
    program = f"import sys, rfhbridge; print(sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


def test_ibm_mq_is_loaded_when_it_is_named() -> None:
    settings = rfhbridge.ConnectionSettings(connections=("mq1.example.com(1414)",))
    assert settings.address == "a queue manager at mq1.example.com(1414)"
    assert rfhbridge.IbmMq.__module__.startswith("mq_adapters.ibm_mq")


def test_byte_order_and_page_of_a_message_without_mqmd_are_found() -> None:
    found = rfhbridge.detect(EBCDIC_MQRFH)
    assert (found.format, found.coded_char_set_id, found.encoding) == (rfhbridge.FORMAT_MQRFH, 500, 273)


def test_headers_of_a_message_without_mqmd_are_read_up_to_the_body() -> None:
    message = EBCDIC_MQRFH + b"body"
    chain = rfhbridge.read_headers(message)
    assert rfhbridge.read_command(chain) == rfhbridge.DeletePublication(topics=("a",))
    assert message[chain.body_offset :] == b"body"
    assert (chain.body_format, chain.body_coded_char_set_id) == (rfhbridge.FORMAT_STRING, 500)


def test_what_the_caller_knows_goes_before_what_is_found() -> None:
    header = rfhbridge.write_command(Publish(topics=("a",)), Dialect.MQRFH, coded_char_set_id=819)
    assert rfhbridge.read_headers(header).places[0].coded_char_set_id == 1208
    assert rfhbridge.read_headers(header, coded_char_set_id=819).places[0].coded_char_set_id == 819


def test_a_message_without_mqmd_is_converted_and_its_body_kept() -> None:
    message = EBCDIC_MQRFH + b"\x00\xff body"
    conversion = rfhbridge.convert(message, to=Dialect.MQRFH2)
    converted = conversion.header + message[conversion.body_offset :]
    assert conversion.format == rfhbridge.FORMAT_MQRFH2
    assert converted.endswith(b"\x00\xff body")
    chain = rfhbridge.read_headers(converted, format=conversion.format, coded_char_set_id=500, encoding=273)
    assert rfhbridge.read_command(chain) == rfhbridge.DeletePublication(topics=("a",))


def test_mode_and_folders_reach_the_conversion() -> None:
    command = rfhbridge.RegisterSubscriber(topics=("a",), queue_name="Q", subscription_name="pump")
    header = rfhbridge.write_command(command, Dialect.MQRFH2, extra_folders=("<usr><a>1</a></usr>",))

    def outcomes(mode: Mode, folders: Folders) -> dict[str, Outcome]:
        report = rfhbridge.convert(header, to=Dialect.MQRFH, mode=mode, folders=folders).report
        return {field.name: field.outcome for field in report.fields}

    assert outcomes(Mode.STRICT, Folders.DROPPED)["SubName"] is Outcome.DROPPED
    assert outcomes(Mode.EXTENDED, Folders.DROPPED)["SubName"] is not Outcome.DROPPED
    assert outcomes(Mode.STRICT, Folders.DROPPED) != outcomes(Mode.STRICT, Folders.KEPT)


def test_bytes_that_are_no_message_are_our_error_and_a_finding() -> None:
    with pytest.raises(rfhbridge.HeaderError, match="StrucId of no header"):
        rfhbridge.convert(b"no header at all", to=Dialect.MQRFH)
    (finding,) = rfhbridge.lint(b"no header at all")
    assert (finding.reason_name, finding.speaker) == ("MQRC_RFH_ERROR", Speaker.BROKER)
