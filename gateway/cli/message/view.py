"""Shows an inspected message as lines and as JSON: headers, folders, options, problems and body."""

import base64
from collections.abc import Iterator
from typing import Final

from gateway.cli.message.inspection import Body, InspectedHeader, Inspection, InspectionProblem
from gateway.cli.terminal import Json, counted, printable
from mappings.errors import HeaderError
from mappings.headers.charset import is_big_endian
from mappings.headers.partial import PartialHeader, PlacedElement, PlacedFolder

#: The most bytes that are shown of a body; --raw and --json show all of it.
SHOWN_BODY_BYTES: Final = 1024
_BYTES_IN_A_LINE: Final = 16
_PLAIN_CONTROLS: Final = str.maketrans("", "", "\t\r\n")


def inspection_json(inspection: Inspection, data: bytes) -> dict[str, Json]:
    """An inspection as JSON, the body in base64. If a damaged header hides the body, all data stand in its place."""
    body = inspection.body
    shown: dict[str, Json] = {
        "headers": [_header_json(inspected) for inspected in inspection.headers],
        "command": inspection.command,
        "problems": [_problem_json(problem) for problem in inspection.problems],
        "body_offset": None if body is None else body.offset,
        "body_base64": base64.b64encode(data if body is None else body.data).decode(),
    }
    if body is not None:
        shown["body_format"] = _format(body.format)
        shown["body_coded_char_set_id"] = body.coded_char_set_id
        shown["body_encoding"] = body.encoding
    return shown


def inspection_lines(inspection: Inspection, data: bytes) -> Iterator[str]:
    """An inspection for people. Fields begin with their offset, and problems stand at the end."""
    for inspected in inspection.headers:
        yield from _header_lines(inspected)
    if inspection.command is not None:
        yield f"command {inspection.command}"
    body = inspection.body
    if body is None:
        yield f"all {counted(len(data), 'byte')}:"
        yield from data_lines(data)
    else:
        yield _body_line(body)
        yield from data_lines(body.data)
    yield from (str(problem) for problem in inspection.problems)


def data_lines(data: bytes) -> Iterator[str]:
    """Up to SHOWN_BODY_BYTES of data: printable UTF-8 as text, anything else as a hexadecimal dump."""
    text = _text_of(data)
    if text is not None:
        yield from (f"  {line}" for line in text.splitlines())
    else:
        yield from _hexadecimal(data[:SHOWN_BODY_BYTES])
    if len(data) > SHOWN_BODY_BYTES:
        yield f"  ... {counted(len(data) - SHOWN_BODY_BYTES, 'byte')} more; --raw gives all"


def _text_of(data: bytes) -> str | None:
    """The beginning of a body as text; None if any byte of it is not printable UTF-8."""
    shown = data[:SHOWN_BODY_BYTES]
    for cut in range(4 if len(data) > SHOWN_BODY_BYTES else 1):  # the limit may cut a character of up to 4 bytes
        try:
            text = shown[: len(shown) - cut].decode()
        except UnicodeDecodeError:
            continue
        return text if text.translate(_PLAIN_CONTROLS).isprintable() else None
    return None


def _hexadecimal(data: bytes) -> Iterator[str]:
    for offset in range(0, len(data), _BYTES_IN_A_LINE):
        line = data[offset : offset + _BYTES_IN_A_LINE]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in line)
        yield f"  {offset:04x}  {line.hex(' '):<47}  {letters}"


def _header_lines(inspected: InspectedHeader) -> Iterator[str]:
    header, place = inspected.header, inspected.header.place
    order = _byte_order(place.encoding)
    yield f"{header.name} at byte {place.offset}, CodedCharSetId {place.coded_char_set_id}, {order}"
    for field in (*header.fields, *header.pairs):
        yield f"{field.offset:>6}  {field.name:<15} {field.value}"
    for folder in header.folders:
        yield from _folder_lines(folder)
    for option in inspected.options:
        yield f"{option.offset:>6}  option {option.field} {option.token} = {option.number} ({option.constant})"


def _folder_lines(folder: PlacedFolder) -> Iterator[str]:
    yield f"{folder.offset:>6}  folder {folder.name or '(without a name)'}"
    if not folder.elements:
        yield f"{'':>6}    {folder.text}"
    for element in folder.elements:
        yield from _element_lines(element, depth=2)


def _element_lines(element: PlacedElement, *, depth: int) -> Iterator[str]:
    attributes = "".join(f" {name}={value!r}" for name, value in element.attributes)
    yield f"{element.offset:>6}{'  ' * depth}{element.name}{attributes} {element.text}".rstrip()
    for child in element.children:
        yield from _element_lines(child, depth=depth + 1)


def _body_line(body: Body) -> str:
    format = _format(body.format) or "blank"
    order = _byte_order(body.encoding)
    place = f"body at byte {body.offset}, {counted(len(body.data), 'byte')}"
    return f"{place}, Format {format}, CodedCharSetId {body.coded_char_set_id}, {order}"


def _header_json(inspected: InspectedHeader) -> Json:
    header, place = inspected.header, inspected.header.place
    shown: dict[str, Json] = {
        "structure": header.name,
        "offset": place.offset,
        "coded_char_set_id": place.coded_char_set_id,
        "encoding": place.encoding,
        "fields": {field.name: field.value for field in header.fields},
        "offsets": {field.name: field.offset for field in header.fields},
        **_contents_json(header),
    }
    if inspected.options:
        shown["options"] = [
            {
                "offset": option.offset,
                "field": option.field,
                "token": option.token,
                "number": option.number,
                "constant": option.constant,
            }
            for option in inspected.options
        ]
    return shown


def _contents_json(header: PartialHeader) -> dict[str, Json]:
    shown: dict[str, Json] = {}
    if header.name == "MQRFH":
        shown["pairs"] = [[pair.name, pair.value] for pair in header.pairs]
        shown["pair_offsets"] = [pair.offset for pair in header.pairs]
    if header.name == "MQRFH2":
        shown["folders"] = [
            {
                "name": folder.name,
                "offset": folder.offset,
                "text": folder.text,
                "elements": [_element_json(element) for element in folder.elements],
            }
            for folder in header.folders
        ]
    return shown


def _element_json(element: PlacedElement) -> Json:
    shown: dict[str, Json] = {"name": element.name, "offset": element.offset, "text": element.text}
    if element.attributes:
        shown["attributes"] = dict(element.attributes)
    if element.children:
        shown["children"] = [_element_json(child) for child in element.children]
    return shown


def _problem_json(problem: InspectionProblem) -> Json:
    return {
        "offset": problem.offset,
        "reason_code": problem.reason_code,
        "reason_name": problem.reason_name,
        "text": problem.text,
    }


def _format(format: bytes) -> str:
    return printable(format.decode("latin-1").rstrip(" \0"))


def _byte_order(encoding: int) -> str:
    try:
        return f"Encoding {encoding} ({'big' if is_big_endian(encoding) else 'little'}-endian)"
    except HeaderError:
        return f"Encoding {encoding} (no byte order)"
