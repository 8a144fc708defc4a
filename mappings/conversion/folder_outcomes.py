"""Reports what a message carries beside its fields: folders, flags, attributes, and text behind a NUL.

A report accounts for everything in the headers, so it names these too. The other format has no place for them and they
are not copied, unless they stand in a header that stays. Source of the rule: "Message formats" (aq19780_).
"""

from collections.abc import Iterator

from mappings.conversion.report import FieldOutcome, Outcome
from mappings.errors import ConversionError
from mappings.headers.chain import Header, HeaderChain
from mappings.headers.mqrfh import FIXED_LENGTH_BYTES, Mqrfh
from mappings.headers.mqrfh2 import Folder, Mqrfh2
from mappings.reasons import Reason
from mappings.table import FOLDER_OMISSIONS, OTHER_OMISSIONS

_SOURCE = "Message formats (aq19780_)"
_PADDING = b" \0"


def outcomes_of_other_headers(chain: HeaderChain, indexes: range, kept: tuple[int, ...]) -> list[FieldOutcome]:
    """The folders of MQRFH2 headers beside the converted one: left as they are, or dropped with their header."""
    found: list[FieldOutcome] = []
    for index in indexes:
        header = chain.headers[index]
        if isinstance(header, Mqrfh2):
            found += [_copied(folder) if index in kept else _dropped(folder) for folder in header.folders]
    return found


def outcomes_of_other_folders(header: Mqrfh2, converted: Folder, left: tuple[Folder, ...]) -> list[FieldOutcome]:
    """Every folder but the converted one: dropped, or left in an MQRFH2 behind the new header; two psc are refused."""
    others = [folder for folder in header.folders if folder is not converted]
    if converted.name == "psc" and any(folder.name == "psc" for folder in others):
        raise ConversionError(Reason.MQRC_RFH_ERROR, "the message carries more than one psc folder; send one for each")
    return [_copied(folder) if any(folder is each for each in left) else _dropped(folder) for folder in others]


def outcomes_without_name(data: bytes, chain: HeaderChain, index: int) -> list[FieldOutcome]:
    """What the converted header carries beside names and values, each dropped; nothing for most headers."""
    header = chain.headers[index]
    found = list(_flags(header))
    if isinstance(header, Mqrfh):
        start = chain.places[index].offset + FIXED_LENGTH_BYTES
        string = data[start : chain.places[index].offset + header.struc_length]
        ignored = string.partition(b"\0")[2].strip(_PADDING)
        if ignored:
            found.append(_unnamed("text behind NUL", f"{len(ignored)} bytes", "ignored_text"))
        return found
    assert isinstance(header, Mqrfh2)  # only these two carry commands
    return found + list(_attributes(header))


def _flags(header: Header) -> Iterator[FieldOutcome]:
    if isinstance(header, Mqrfh | Mqrfh2) and header.flags:
        yield _unnamed("Flags", str(header.flags), "flags")


def _attributes(header: Mqrfh2) -> Iterator[FieldOutcome]:
    psc = header.folder("psc")
    if psc is None or header.folder("pscr") is not None:
        return
    for element in psc.elements:
        for name, value in element.attributes:
            yield _unnamed(f"{element.name}/@{name}", value, "attribute")


def _unnamed(name: str, value: str, kind: str) -> FieldOutcome:
    omission = OTHER_OMISSIONS[kind]
    return FieldOutcome(
        name=name,
        value=value,
        outcome=Outcome.DROPPED,
        target=None,
        reason=omission.reason,
        source=omission.source,
    )


def _copied(folder: Folder) -> FieldOutcome:
    return FieldOutcome(
        name=folder.name,
        value=f"{len(folder.raw)} bytes",
        outcome=Outcome.COPIED,
        target=folder.name,
        reason="it stands in a header beside the converted one, and is left as it is",
        source=_SOURCE,
    )


def _dropped(folder: Folder) -> FieldOutcome:
    omission = FOLDER_OMISSIONS.get(folder.name, OTHER_OMISSIONS["folder"])
    return FieldOutcome(
        name=folder.name,
        value=f"{len(folder.raw)} bytes",
        outcome=Outcome.DROPPED,
        target=None,
        reason=omission.reason,
        source=omission.source,
    )
