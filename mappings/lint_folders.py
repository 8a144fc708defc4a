"""The rules that a queue manager's MQPUT has for folders of message properties.

Every folder is one well-formed element (else MQRC_RFH_FORMAT_ERROR). Folder mq has a restricted format: no groups, no
characters that would have to be escaped, no null values, names in ASCII, U+0020 as the only space, and no attribute
`content` on its tag (else MQRC_RFH_RESTRICTED_FORMAT_ERR).
Sources: IBM MQ documentation, "2421 (0975)", "2527 (09DF)" and "NameValueData (MQCHARn)".
"""

import re

from mappings.errors import HeaderError
from mappings.mqrfh2 import Folder
from mappings.reasons import Reason

_RESTRICTED = "mq"
_OTHER_SPACE = re.compile(r"[^\S ]")
_NIL = ("xsi:nil", "true")
_CONTENT = re.compile(r"<mq\s[^>]*\bcontent\s*=")


def check_property_folder(folder: Folder) -> None:
    """HeaderError for a folder that MQPUT would not take."""
    elements = folder.elements
    if folder.name != _RESTRICTED:
        return
    text = folder.text
    for element in elements:
        if element.children:
            raise _restricted(f"{element.name[:64]!a} is a group")
        if _NIL in element.attributes:
            raise _restricted(f"{element.name[:64]!a} is null")
        if not element.name.isascii():
            raise _restricted(f"{element.name[:64]!a} is not in ASCII")
    if "&" in text:
        raise _restricted("a value holds an escaped character")
    if _OTHER_SPACE.search(text):
        raise _restricted("it holds white space other than blanks")
    if _CONTENT.match(text):
        raise _restricted("its tag has the attribute content")


def _restricted(problem: str) -> HeaderError:
    return HeaderError(
        Reason.MQRC_RFH_RESTRICTED_FORMAT_ERR,
        f"folder mq has a restricted format, and {problem}",
        parameter=_RESTRICTED,
    )
