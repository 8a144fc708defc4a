"""One MQTT session of a running gateway, as `rfhbridge sessions show` shows it."""

from collections.abc import Iterator
from typing import Final

from gateway.cli.application import CommandFailed
from gateway.cli.terminal import Json
from mq_adapters.mqsc import quoted, read_command
from mq_adapters.queue_manager import QueueAdministration

#: The longest answer: 100,000 characters of subscriptions, a client identifier, a will's topic.
_LONGEST_ANSWER_CHARACTERS: Final = 400_000
_NEVER_EXPIRES_S: Final = 0xFFFF_FFFF

Status = dict[str, Json]


def carry_out(queue_manager: QueueAdministration, verb: str, client: str) -> tuple[str, ...]:
    """The answer to STOP or PURGE of a client, or its status.

    CommandFailed with the answer if the command is refused.
    """
    what = "CHSTATUS(*)" if verb == "DISPLAY" else "CHANNEL(MQTT)"
    answer = queue_manager.mqsc(f"{verb} {what} CHLTYPE(MQTT) CLIENTID({quoted(client)})")
    if not answer.succeeded:
        raise CommandFailed(f"{' '.join(answer.lines)} (see 'rfhbridge sessions list')")
    return answer.lines


def purge_idle(queue_manager: QueueAdministration, client: str, idle_s: int) -> bool:
    """Ends a client's session. False if the client has come back, or has no session any longer."""
    answer = queue_manager.mqsc(f"PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID({quoted(client)}) IDLE({idle_s})")
    return answer.succeeded


def session_status(queue_manager: QueueAdministration, client: str) -> Status:
    """Everything that the gateway says about a client; None for attributes that it does not have."""
    _, *lines = carry_out(queue_manager, "DISPLAY", client)
    shown = read_command("DISPLAY CHSTATUS " + " ".join(lines), maximum_characters=_LONGEST_ANSWER_CHARACTERS)
    items = {parameter.keyword: parameter.items or () for parameter in shown.parameters}
    values = {keyword: found[0] if found else "" for keyword, found in items.items()}
    expiry_s = int(values["EXPIRY"])
    return {
        "client": client,
        "connected": values["STATUS"] == "RUNNING",
        "version": values["PROTOCOL"],
        "user": values["CLIENTUSER"] or None,
        "listener": values["LISTENER"] or None,
        "peer": values["CONNAME"] or None,
        "connected_since": values["SINCE"] or None,
        "token_until": values["AUTHEND"] or None,
        "keep_alive_s": int(values["KAINT"]),
        "expiry_s": None if expiry_s == _NEVER_EXPIRES_S else expiry_s,
        "expires": values["EXPIRES"] or None,
        "in_flight": {"incoming": int(values["INDOUBTIN"]), "outgoing": int(values["INDOUBTOUT"])},
        "queued": {"messages": int(values["PENDING"]), "bytes": int(values["PENDBYTE"])},
        "will": _will(values),
        "subscription_count": int(values["SUBCOUNT"]),
        "subscriptions": [_subscription(item) for item in items["SUBS"]],
    }


def lines_of(status: Status) -> Iterator[str]:
    """A status as lines of a name and its value, and a line for each subscription."""
    rows = {name: _words(value) for name, value in status.items() if name != "subscriptions"}
    width = max(map(len, rows))
    for name, words in rows.items():
        yield f"{name.replace('_', ' '):<{width}}  {words}".rstrip()
    subscriptions = status["subscriptions"]
    assert isinstance(subscriptions, list)
    for subscription in subscriptions:
        assert isinstance(subscription, dict)
        said = [f"QoS {subscription['qos']}"]
        said += [name.replace("_", " ") for name in ("no_local", "retain_as_published") if subscription[name]]
        said += [f"identifier {subscription['identifier']}"] if subscription["identifier"] else []
        yield f"  {subscription['topic_filter']}  {', '.join(said)}"


def _will(values: dict[str, str]) -> Json:
    if values["WILL"] != "YES":
        return None
    return {
        "topic": values["WILLTOPIC"],
        "qos": int(values["WILLQOS"]),
        "retain": values["WILLRETN"] == "YES",
        "payload_bytes": int(values["WILLBYTE"]),
        "delay_s": int(values["WILLDLAY"]),
    }


def _subscription(item: str) -> Json:
    """qos=1,no_local,identifier=7 FILTER, as the gateway writes it."""
    options, _, topic_filter = item.partition(" ")
    said = dict(option.partition("=")[::2] for option in options.split(","))
    return {
        "topic_filter": topic_filter,
        "qos": int(said["qos"]),
        "no_local": "no_local" in said,
        "retain_as_published": "retain_as_published" in said,
        "identifier": int(said["identifier"]) if "identifier" in said else None,
    }


def _words(value: Json) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_words(each)}" for name, each in value.items())
    return str(value)
