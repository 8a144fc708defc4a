"""Where in a message the offending parameter of a command stands: the byte offset that an error does not know."""

from mappings.charset import encode_text
from mappings.errors import HeaderError, MappingError
from mappings.header_chain import HeaderChain, HeaderPlace
from mappings.mqrfh import FIXED_LENGTH_BYTES, Mqrfh
from mappings.mqrfh2 import Folder, Mqrfh2


def place_of(error: MappingError, data: bytes, chain: HeaderChain) -> int | None:
    """The offset of what an error is about; that of its header where the text is not found; None without a header."""
    for header, place in zip(chain.headers, chain.places, strict=True):
        if isinstance(header, Mqrfh):
            return _in_string(error, header, place)
        if isinstance(header, Mqrfh2) and (folder := header.folder("psc") or header.folder("pscr")) is not None:
            return data.find(folder.raw, place.offset) + _in_folder(error.parameter or "", folder)
    return None


def _in_folder(text: str, folder: Folder) -> int:
    try:
        return max(folder.raw.find(encode_text(text, folder.coded_char_set_id, encoding=folder.encoding)), 0)
    except HeaderError:  # it is not in the folder's page, so it does not stand there in this form
        return 0


def _in_string(error: MappingError, header: Mqrfh, place: HeaderPlace) -> int:
    string = header.name_value_string
    position = error.error_position
    if position is None:
        position = max(string.find(error.parameter) if error.parameter else 0, 0)
    before = encode_text(string[:position], place.coded_char_set_id)
    return place.offset + FIXED_LENGTH_BYTES + len(before)
