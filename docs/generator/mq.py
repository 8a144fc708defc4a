"""The page of MQ: commands, parameters and options of the publish/subscribe headers, and the reason codes."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

from docs.generator.markdown import code, sentence, table
from mappings.reasons import Reason
from mappings.table import VERBS
from mq_adapters.reasons import QueueManagerError, ReasonCode, what_to_do

INTRODUCTION: Final = """
The commands of publish/subscribe travel in a header in front of the message: MQRFH, with names and values in one text,
or MQRFH2, with an XML folder `psc`. [Publish/subscribe over queues](../../mq_adapters/broker/README.md) says how the
broker inside carries them out.
""".strip()
OPTION_TITLES: Final = ("Token", "Constant", "Number", "Formats", "Commands", "In Message Broker V6")
STANDINGS: Final = {
    "mapped": "copied both ways",
    "extended": "copied in extended mode only",
    "response": "only in the answers of a broker",
    "dropped": "not copied",
    "refused": "the command cannot be converted",
}
SUPPORT: Final = {"yes": "yes", "no": "no", "unlisted": "not in the table of the manual"}


def lines() -> list[str]:
    """The page, without its title."""
    fields = _tables("fields.toml")
    options = _tables("options.toml")
    return [
        *INTRODUCTION.splitlines(),
        "",
        "## Commands",
        "",
        *table(
            ["Command", "Parameters, by their names in `psc`, or else in MQRFH", "Options"],
            _commands(fields["field"], options["option"]),
        ),
        "",
        "## Parameters, and the field-mapping table",
        "",
        "The report of a conversion names every name that is not copied.",
        "",
        *table(["MQRFH", "MQRFH2 `psc`", "Conversion", "More than once", "Reason"], map(_field, fields["field"])),
        "",
        "## Folders of JMS",
        "",
        "With these a publication of MQTT is a message of JMS: for programs that subscribe by MQSUB, and where the",
        "option [`jms_folders`](../how-to/jms-messages.md) asks for them. A subscriber in MQRFH gets them in an MQRFH2",
        "behind it.",
        "",
        *table(["Folder", "Element", "Holds"], map(_jms, fields["jms"])),
        "",
        "## Options",
        "",
        "The number is that of IBM's constant. In an MQRFH options are numbers or tokens, in an MQRFH2 tokens.",
        "",
        *table(OPTION_TITLES, map(_option, options["option"])),
        "",
        "The numbers in the last column are notes of the manual of WebSphere Message Broker V6:",
        "",
        *table(["Note", "Meaning"], ((number, sentence(text)) for number, text in options["notes"].items())),
        "",
        "## Reason codes of headers and commands",
        "",
        "`rfhbridge lint`, conversion and the broker's answers give these codes.",
        "",
        *table(["Code", "Name"], ((str(int(each)), code(each.name)) for each in Reason if each)),
        "",
        "## Reason codes of queue managers",
        "",
        "A call to a queue manager may end with one of these. The third column is what the gateway's channels do at a",
        "target. After a refused commit only 2003 says that nothing took place. After another code the gateway",
        "connects again and looks.",
        "",
        *table(["Code", "Name", "What a channel does", "What to do at the queue manager inside"], _reason_codes()),
    ]


def _tables(name: str) -> dict[str, Any]:
    return tomllib.loads(files("mappings").joinpath(name).read_text())


def _commands(fields: list[dict[str, Any]], options: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for verb in VERBS:
        parameters = [each.get("mqrfh2") or each["mqrfh"] for each in fields if verb in each["commands"]]
        tokens = [each["token"] for each in options if verb in each["commands"]]
        yield code(verb), ", ".join(map(code, parameters)), ", ".join(map(code, tokens))


def _field(field: dict[str, Any]) -> tuple[str, ...]:
    names = (code(field.get("mqrfh", "")), code(field.get("mqrfh2", "")))
    repeats = "yes" if field["repeats"] else "no"
    return (*names, STANDINGS[field["standing"]], repeats, sentence(field["reason"]))


def _jms(row: dict[str, Any]) -> tuple[str, ...]:
    return code(row["folder"]), code(row["element"]), sentence(row["reason"])


def _option(option: dict[str, Any]) -> tuple[str, ...]:
    formats = ", ".join(name.upper() for name in option["formats"])
    notes = ", ".join(map(str, option["notes"]))
    support = SUPPORT[option["support"]] + (f" ({notes})" if notes else "")
    commands = ", ".join(map(code, option["commands"]))
    return code(option["token"]), code(option["constant"]), str(option["number"]), formats, commands, support


def _reason_codes() -> Iterator[tuple[str, ...]]:
    for each in ReasonCode:
        if each:
            yield str(int(each)), code(each.name), what_to_do(each).value, _hint(each)


def _hint(reason_code: ReasonCode) -> str:
    hint = QueueManagerError(reason_code, "").hint
    return sentence(hint) if hint else ""
