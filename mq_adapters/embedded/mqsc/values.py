"""The values of an MQSC command's parameters. All faults of a command are named at once."""

from collections.abc import Collection, Mapping
from typing import Final

from mq_adapters.attributes import SYNONYMS, Attribute, AttributeValueError, Choice, NameList, Value
from mq_adapters.mqsc import MqscCommand, Parameter

_SYNTAX_ERROR: Final = "AMQ8405E"


class MqscRefused(Exception):
    """A command that is not carried out; each argument is a line of the answer."""

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(str(line) for line in self.args)


def syntax_error(*complaints: str) -> MqscRefused:
    """The refusal of a command that is not understood or not supported."""
    return MqscRefused(*(f"{_SYNTAX_ERROR}: {complaint}" for complaint in complaints))


def not_found(noun: str, name: str) -> MqscRefused:
    """The refusal of a command about an object that does not exist."""
    return MqscRefused(f"AMQ8147E: {noun} {name} not found.")


def values_of(
    noun: str, attributes: Mapping[str, Attribute], parameters: Collection[Parameter], *, fixed: Collection[str] = ()
) -> dict[str, Value]:
    """The values that parameters give to attributes. MqscRefused names every unknown attribute and every wrong value.

    `fixed`: attributes that the object has and this command may not change.
    """
    values: dict[str, Value] = {}
    unknown: list[str] = []
    complaints: list[str] = []
    for parameter in parameters:
        keyword = SYNONYMS.get(parameter.keyword, parameter.keyword)
        attribute = attributes.get(keyword)
        if attribute is None:
            unknown.append(parameter.keyword)
            continue
        try:
            value = _value(parameter, attribute)
        except AttributeValueError as error:
            complaints.append(str(error))
            continue
        if keyword in values:
            complaints.append(f"{parameter.keyword} is given more than once.")
        elif keyword in fixed:
            complaints.append(f"{parameter.keyword} cannot be altered; delete the {noun} and define it anew.")
        values[keyword] = value
    if unknown:
        noted = "attribute" if len(unknown) == 1 else "attributes"
        complaints.insert(0, f"{noun} has no {noted} {', '.join(dict.fromkeys(unknown))} here.")
    if complaints:
        raise syntax_error(*complaints)
    return values


def refuse_others(parameters: Collection[Parameter], allowed: Collection[str] = ()) -> set[str]:
    """The words of a command that takes only these words. MqscRefused names every other word."""
    words = {parameter.keyword for parameter in parameters}
    others = sorted(words.difference(allowed))
    if others:
        raise syntax_error(f"{', '.join(others)} {'is' if len(others) == 1 else 'are'} not supported here.")
    return words


def name_of(command: MqscCommand) -> str:
    """The one name in the parentheses behind the object's keyword."""
    items = command.target.items
    if items is None or len(items) != 1:
        raise syntax_error(f"{command.target.keyword} needs one name in parentheses.")
    return items[0].strip()


def _value(parameter: Parameter, attribute: Attribute) -> Value:
    """The value of a parameter. AttributeValueError has the whole sentence if the attribute cannot have this value."""
    is_flag = isinstance(attribute, Choice) and attribute.is_flag
    if (parameter.items is None) is not is_flag:
        raise AttributeValueError(f"{parameter.keyword} needs {'no value' if is_flag else 'a value'}.")
    if len(parameter.items or ()) > 1 and not isinstance(attribute, NameList):
        raise AttributeValueError(
            f"{parameter.keyword}({parameter.text}): give one value, in quotes if it has blanks or commas."
        )
    text = parameter.keyword if is_flag else parameter.text
    try:
        return attribute.read(text)
    except AttributeValueError as error:
        raise AttributeValueError(f"{parameter.keyword}({text}): the value must be {error}.") from None
