"""A folder of MQRFH2: one element with elements in it, XML-like text without declaration, comments or namespaces.

Source: IBM MQ, "NameValueData (MQCHARn)": blanks inside a value count, blanks between elements do not.
"""

import re
from dataclasses import dataclass

from spark_audit.reperform.comparison import Reason, UnreadableBytes

_NAME = r"[^\s<>/='\"]+"
_TAG = re.compile(rf"<(/?)({_NAME})((?:\s+{_NAME}\s*=\s*(?:'[^'<]*'|\"[^\"<]*\"))*)\s*(/?)>")
_ATTRIBUTE = re.compile(rf"({_NAME})\s*=\s*('[^'<]*'|\"[^\"<]*\")")
_LEAF = re.compile(rf"<({_NAME})(?:\s[^<>]*)?>([^<]*)</\1\s*>")
_ENTITY = re.compile(r"&(#x[0-9A-Fa-f]{1,6}|#[0-9]{1,7}|[a-z]+);")
_OUTSIDE_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder: its name, and its text without the padding."""

    name: str
    text: str


def read_folder(text: str) -> Folder:
    """Name and text of a folder; blanks and NULs behind its end tag are padding."""
    stripped = text.strip(" \0\r\n\t")
    opening = _TAG.match(stripped)
    if opening is None or opening[1]:
        raise _malformed("a folder does not begin with a tag")
    return Folder(name=opening[2], text=stripped)


def read_elements(folder: Folder) -> tuple[tuple[str, str], ...]:
    """Name and text of each element of a flat folder. UnreadableBytes if it is nested, which psc never is."""
    opening = _TAG.match(folder.text)
    assert opening is not None, "read_folder found it"
    offset = opening.end()
    if opening[4]:
        return ()
    elements: list[tuple[str, str]] = []
    while True:
        while folder.text[offset : offset + 1].isspace():
            offset += 1
        tag = _TAG.match(folder.text, offset)
        if tag is None:
            raise _malformed(f"folder {folder.name} has text outside of its elements", offset)
        if tag[1]:
            break
        value, offset = _element_text(folder, tag)
        elements.append((tag[2], value))
    if tag[2] != folder.name or tag.end() != len(folder.text):
        raise _malformed(f"folder {folder.name} does not end with its end tag", offset)
    return tuple(elements)


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterElement:
    """An element directly in its folder: a property with its text, or a group of properties, whose text is ""."""

    name: str
    text: str = ""
    type: str = ""
    is_null: bool = False
    is_group: bool = False


def read_outer_elements(folder: Folder) -> tuple[OuterElement, ...]:
    """Each element of a folder that may have groups. Anybody may have written it.

    UnreadableBytes if it is not XML 1.0.
    """
    text = folder.text
    opening = _TAG.match(text)
    assert opening is not None, "read_folder found it"
    if _OUTSIDE_XML.search(text):
        raise _malformed(f"folder {folder.name} has a character that XML 1.0 has not")
    elements: list[OuterElement] = []
    outer = opening
    open_names, is_group, offset = ([] if opening[4] else [folder.name]), False, opening.end()
    while open_names:
        at = text.find("<", offset)
        tag = _TAG.match(text, at) if at >= 0 else None
        if tag is None or (tag[1] and (tag[4] or tag[2] != open_names[-1])):
            raise _malformed(f"folder {folder.name} does not end with its end tag", offset)
        inside = text[offset:at]
        if inside.strip() and not (tag[1] and not is_group and len(open_names) > 1):
            raise _malformed(f"folder {folder.name} has text outside of its elements", offset)
        if tag[1]:
            open_names.pop()
        else:
            outer = tag if len(open_names) == 1 else outer
            if not tag[4]:
                open_names.append(tag[2])
        if len(open_names) == 1 and (tag[1] or tag[4]):
            has_text = not (is_group or tag[4])
            value = _ENTITY.sub(_entity, inside) if has_text else ""
            elements.append(_outer_element(outer, value, is_group=is_group and not tag[4]))
        is_group = bool(tag[1] or tag[4])
        offset = tag.end()
    if offset != len(text):
        raise _malformed(f"folder {folder.name} does not end with its end tag", offset)
    return tuple(elements)


def _outer_element(opening: re.Match[str], text: str, *, is_group: bool) -> OuterElement:
    attributes = {name: value[1:-1] for name, value in _ATTRIBUTE.findall(opening[3])}
    is_null = attributes.get("xsi:nil") in ("true", "1")
    return OuterElement(name=opening[2], text=text, type=attributes.get("dt", ""), is_null=is_null, is_group=is_group)


def read_leaves(folder: Folder) -> tuple[tuple[str, str], ...]:
    """Name and text of every element without elements in it, at any depth, for a folder such as pscr."""
    return tuple((found[1], _ENTITY.sub(_entity, found[2])) for found in _LEAF.finditer(folder.text))


def written_folder(name: str, elements: tuple[tuple[str, str], ...]) -> str:
    """The folder's text, without blanks between elements. A name may have attributes behind it."""
    inside = "".join(f"<{element}>{_escaped(value)}</{element.partition(' ')[0]}>" for element, value in elements)
    return f"<{name}>{inside}</{name}>"


def _element_text(folder: Folder, tag: re.Match[str]) -> tuple[str, int]:
    if tag[4]:
        return "", tag.end()
    end = folder.text.find("<", tag.end())
    closing = _TAG.match(folder.text, end) if end >= 0 else None
    if closing is None or not closing[1] or closing[2] != tag[2]:
        raise _malformed(f"element {tag[2]} is not closed where its text ends", tag.end())
    return _ENTITY.sub(_entity, folder.text[tag.end() : end]), closing.end()


def _entity(reference: re.Match[str]) -> str:
    name = reference[1]
    if not name.startswith("#"):
        if name not in _ENTITIES:
            raise _malformed(f"entity &{name}; is not known", reference.start())
        return _ENTITIES[name]
    number = int(name[2:], 16) if name[1] == "x" else int(name[1:])
    if number > 0x10FFFF or 0xD800 <= number < 0xE000 or _OUTSIDE_XML.match(chr(number)):
        raise _malformed(f"character reference &{name}; names no character", reference.start())
    return chr(number)


def _malformed(what: str, offset: int = 0) -> UnreadableBytes:
    return UnreadableBytes(what, offset, Reason.MQRC_RFH_FORMAT_ERROR)


def _escaped(text: str) -> str:
    """Text as it stands in a folder: CR and characters of more than 16 bits are hexadecimal references."""
    named = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"&#x{ord(each):x};" if each == "\r" or each > "\uffff" else each for each in named)
