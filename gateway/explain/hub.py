"""What another rfhbridge needs as a target: MQSC for its channel and queues, and the rights of this gateway there.

Streams beside the default one are queues of `publish.stream` and `streams` there, and no command makes them.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from gateway.config import RouteSettings, TargetSettings
from gateway.explain.set_up import Section, authorities, queue_definitions, set_up
from mq_adapters.system_queues import DEAD_LETTER_QUEUE

#: Attributes of queues that only IBM MQ has.
_ONLY_IBM: Final = " DEFSOPT(EXCL) NOSHARE"
#: Rights of an [[application]], by the words of AUTHADD.
_RIGHTS: Final[Mapping[str, str]] = {"PUT": "put", "GET": "get", "BROWSE": "browse"}
_HEARTBEAT_S: Final = 30
#: The application of a target that names no user.
_NOBODY: Final = "rfhbridge"


def set_up_of_hub(
    target: TargetSettings, routes: Iterable[RouteSettings], *, digest_queue: str = ""
) -> tuple[Section, ...]:
    """The sections for one target whose binding is "native"; as set_up.set_up otherwise."""
    own = tuple(routes)
    queues = queue_definitions(target, own, digest_queue)
    return (
        Section(
            title="For `rfhbridge mqsc` at the other gateway: the channel of this one.",
            commands=(_channel(target),),
        ),
        Section(
            title="This gateway's own queues there: one message on each state queue says what was delivered.\n"
            "Never clear a state queue while this gateway has messages to deliver.",
            commands=tuple(each.replace(_ONLY_IBM, "") for each in queues),
        ),
        Section(
            title="\n".join(
                (
                    "Its configuration also needs a [[mq_listener]], and this gateway as an application:",
                    "",
                    *_application(target, own, digest_queue),
                )
            ),
        ),
    )


def set_up_of(
    target: TargetSettings, routes: Iterable[RouteSettings], *, digest_queue: str = ""
) -> tuple[Section, ...]:
    """The sections for one target, IBM MQ or another rfhbridge."""
    made = set_up_of_hub if target.binding == "native" else set_up
    return made(target, routes, digest_queue=digest_queue)


def _channel(target: TargetSettings) -> str:
    security = f" SSLCIPH({_version(target.cipher)}) SSLCAUTH(OPTIONAL)" if target.cipher else ""
    name = f"DEFINE CHANNEL({target.channel}) CHLTYPE(SVRCONN) DESCR('rfhbridge')"
    user = "" if target.user else f" MCAUSER('{_NOBODY}')"
    return f"{name} SHARECNV(1) HBINT({_HEARTBEAT_S}){security}{user} REPLACE"


def _version(cipher: str) -> str:
    """The lowest version of TLS as an mq_listener says it."""
    is_13 = cipher.startswith(("ANY_TLS13", "TLS_"))
    return "ANY_TLS13_OR_HIGHER" if is_13 else "ANY_TLS12_OR_HIGHER"


def _application(target: TargetSettings, routes: tuple[RouteSettings, ...], digest_queue: str) -> Iterable[str]:
    queues = {**authorities(target, routes, digest_queue), DEAD_LETTER_QUEUE: "PUT"}
    yield "[[application]]"
    if not target.user:
        yield "# the target names no user, so the channel lets in everybody who reaches it, as this application"
    yield f"name = {json.dumps(target.user or _NOBODY, ensure_ascii=False)}"
    for word, right in _RIGHTS.items():
        names = [name for name, granted in queues.items() if word in granted.split(",")]
        yield _list(right, names)
    topics = dict.fromkeys(topic for route in routes for topic in route.topics)
    yield _list("publish", topics)
    yield _list("subscribe", topics)
    if target.set_identity:
        yield 'set_context = "identity"'


def _list(key: str, texts: Iterable[str]) -> str:
    """A list of texts in TOML, which writes them as JSON does."""
    return f"{key} = {json.dumps(list(texts), ensure_ascii=False)}"
