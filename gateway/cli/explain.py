"""`rfhbridge explain`: the exact messages for a topic at a queue manager, and the set-up that it needs."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.settings_options import ConfigOption, JsonOption
from gateway.cli.terminal import write_json, write_line
from gateway.config import Settings
from mappings.errors import MappingError
from mappings.topics.topics import TopicError

if TYPE_CHECKING:
    from gateway.explain.command import Question
    from gateway.explain.explanation import Explanation


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC", help="Topic name, or topic filter of a subscription. Leave it out with --mqsc."
        ),
    ] = None,
    config: ConfigOption = None,
    client: Annotated[str, typer.Option("--client", metavar="C", help="MQTT client identifier.")] = "sensor",
    user: Annotated[str | None, typer.Option("--user", metavar="U", help="MQTT user of that client.")] = None,
    qos: Annotated[int, typer.Option("--qos", metavar="Q", min=0, max=2, help="QoS of the PUBLISH.")] = 1,
    retain: Annotated[bool, typer.Option("--retain", help="Set the RETAIN flag.")] = False,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME=VALUE",
            help="Property of MQTT 5 by its name in mosquitto_pub: content-type=text/plain or user-property=unit=bar. "
            "Repeat it for several.",
        ),
    ] = None,
    mqsc: Annotated[
        bool, typer.Option("--mqsc", help="Print the set-up of every target as MQSC, for runmqsc, and end.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the way of a topic: route, queues, header bytes, MQSC.

    The command reads only the configuration. It opens no store and connects to nobody. Without a configuration it
    assumes one IBM MQ target with the default names. MsgId and CorrelId are those of the first session of a new store.
    """
    from gateway.cli.explanation_view import explanation_json, explanation_lines, set_up_text
    from gateway.explain.explanation import with_assumed_target

    settings = Settings.load(config)
    is_assumed = config is None
    if is_assumed:
        settings = with_assumed_target(settings)
    if mqsc:
        if as_json or topic is not None:
            raise typer.BadParameter("--mqsc prints the set-up for every topic: leave out TOPIC and --json")
        if not settings.target:
            raise CommandFailed("the configuration names no target, so there is no set-up to print (add [[target]])")
        typer.echo(set_up_text(settings), nl=False)
        return
    if topic is None:
        raise typer.BadParameter("give a topic, for example plant/boiler/temperature, or --mqsc")
    question = _question(topic, client=client, user=user, qos=qos, retain=retain, properties=properties or [])
    explanation = _explanation(settings, question)
    if as_json:
        write_json(explanation_json(explanation, is_assumed=is_assumed))
        return
    for line in explanation_lines(explanation, is_assumed=is_assumed):
        write_line(line)


def _question(
    topic: str, *, client: str, user: str | None, qos: int, retain: bool, properties: list[str]
) -> "Question":
    from gateway.explain.asked_properties import PropertyProblem, asked_properties
    from gateway.explain.command import Question

    try:
        asked = asked_properties(properties)
    except PropertyProblem as error:
        raise typer.BadParameter(str(error), param_hint="--property") from None
    return Question(topic=topic, client=client, user=user, qos=qos, retain=retain, properties=asked)


def _explanation(settings: Settings, question: "Question") -> "Explanation":
    from gateway.explain.explanation import explain as explained

    try:
        return explained(settings, question)
    except TopicError as error:
        raise typer.BadParameter(str(error.hint)) from None
    except MappingError as error:
        raise CommandFailed(str(error)) from None
