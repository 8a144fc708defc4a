"""The page of the MQI: calls and options that MQ clients may use, and the reason codes of the others."""

from collections.abc import Iterator
from enum import IntFlag
from typing import Final

from docs.generator.markdown import code, table
from gateway.listener.mq.calls import CALLS
from mq_adapters.attributes import ATTRIBUTES, Number, ObjectType
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.embedded.mqi.inquiry import MAXIMUM_HANDLES, MAXIMUM_SELECTORS
from mq_adapters.embedded.mqi.options import (
    GetOption,
    MatchOption,
    OpenOption,
    PutOption,
    SubOption,
    check_options,
)
from mq_adapters.embedded.mqi.subscribing import MAXIMUM_DURABLE_SUBSCRIPTIONS
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.selection.message_content import HEADERS, MAXIMUM_HEADER_BYTES
from mq_adapters.selection.selectors import MAXIMUM_PATTERN_CHARACTERS, MAXIMUM_SELECTOR_BYTES, MAXIMUM_TOKENS

INTRODUCTION: Final = f"""
IBM MQ classes for Java and JMS connect to an `[[mq_listener]]`, unmodified.
[Let MQ applications connect](../how-to/mq-clients.md) says how to set it up.

What is known here comes from IBM's client 9.4.5 for Java, as a program of the tests. No test has met a real queue
manager of IBM MQ, so nobody has compared the two. The C client, and what is built on it (Python, Go, Node.js), was
never tried. Neither was .NET.

One connection has at most {MAXIMUM_HANDLES} open handles (2017), and one MQINQ at most {MAXIMUM_SELECTORS} selectors.
One application has at most {MAXIMUM_DURABLE_SUBSCRIPTIONS:,} durable subscriptions (2102).
""".strip()

SELECTORS: Final = f"""
A selector is that of JMS, in MQOPEN of a queue and in MQSUB: comparisons, arithmetic, BETWEEN, IN, LIKE with ESCAPE,
IS NULL, AND, OR and NOT, with texts, numbers as Java writes them, TRUE, FALSE, and bytes as `"0x414D"`. It asks for

- a property of folder `usr` (`colour`), of a group in it (`plant.site`), or of another folder (`mqps.Top`),
- a header of JMS: {", ".join(code(name) for name in HEADERS)}, or `JMS_IBM_MQMD_` with a field of MQMD,
- a field of MQMD: `Root.MQMD.Priority`.

Values of unlike types are never equal: a text property `5` is not the number 5. What cannot be evaluated is refused:

| Reason | When |
| --- | --- |
| 2459 | the selector is malformed |
| 2551 | only another language has its syntax (functions, `Root.XMLNSC`, `a LIKE b`), or JMS has no such header |
| 2551 | it is too long: {MAXIMUM_TOKENS:,} words and signs, or {MAXIMUM_PATTERN_CHARACTERS:,} characters for LIKE |
| 2519 | it has more than {MAXIMUM_SELECTOR_BYTES:,} bytes |
| 2516 | the queue is not opened for input or browsing, or it is a topic |

A message whose MQRFH2 cannot be read, or is longer than {MAXIMUM_HEADER_BYTES:,} bytes, is not selected where the
selector asks for a property. Nor is one with a text that is too long for LIKE: up to 8,192 characters, and fewer where
patterns are long. A long queue is looked through in shares of time, so that nobody else waits.
""".strip()
#: What a program should know of a call; "" where there is nothing to say.
_CALL_NOTES: Final = {
    "MQCONN": "2035 for a wrong name, token or password, and where no table lets the program in; 2058 for"
    " another queue manager. A name that begins with `*` is any",
    "MQDISC": "commits the open unit of work, as in IBM MQ. A program that dies is backed out",
    "MQOPEN": "queues, the queue manager, and topics to publish to; 2043 for every other type of object",
    "MQCLOSE": "a temporary queue goes with its last handle. MQCO_KEEP_SUB and MQCO_REMOVE_SUB as in IBM MQ",
    "MQGET": "in units of work or not, with waits, by MsgId, CorrelId and MsgToken, browsing with a cursor",
    "MQPUT": "the answer comes when the message is on the disk. Groups, segments: 2026. Longer than MAXMSGL: 2218."
    " A command to the broker needs the rights on its topics and queues, else 2035",
    "MQPUT1": "the same. Distribution lists end the connection: 2009",
    "MQSET": "attributes are set by `rfhbridge mqsc`",
    "MQINQ": "attributes of queues and of the queue manager; an unknown one gives the warning 2068",
    "MQCMIT": "the answer comes after the fsync",
    "MQBACK": "messages come back with their count of back-outs",
    "MQSTAT": "says that nothing failed, because each put has had its answer",
    "MQSUB": "durable or not, on a queue that the queue manager makes (MQSO_MANAGED) or on the program's own. SubLevel"
    " must be 1 (2512)",
    "MQSUBRQ": "2437 if nothing is retained",
}
_XA: Final = "XA"
_LISTENERS: Final = (
    "MQCB, MQCTL",
    "yes",
    "message listeners of JMS. IBM's client for Java has no such calls of its own",
)
_GROUPS: Final = (
    ("MQOPEN", "MQOO", OpenOption),
    ("MQPUT and MQPUT1", "MQPMO", PutOption),
    ("MQGET", "MQGMO", GetOption),
    ("MQGET, MatchOptions", "MQMO", MatchOption),
    ("MQSUB", "MQSO", SubOption),
)
#: Options that their call refuses with a reason code of its own.
_REFUSED_ELSEWHERE: Final[dict[str, ReasonCode]] = {}
_OPTION_NOTES: Final = {
    "MQGMO_LOCK": "needs a browse option, and a handle for input too. `MQGMO_UNLOCK` is not there: the lock ends with"
    " the next browse, a get under the cursor, and the handle",
    "MQPMO_RETAIN": "is carried out in a put to a topic",
    "MQOO_READ_AHEAD": "is taken, and has no effect: the client is told that there is no read ahead",
    "MQSO_ALTER": "may change SubUserData, SubExpiry, PubPriority, `MQSO_ANY_USERID` and"
    " `MQSO_PUBLICATIONS_ON_REQUEST`. Anything else gets IBM's reason code, and another queue 2435",
    "MQSO_RESUME": "finds only what MQSUB has made (else 2523), and brings nothing retained again",
    "MQSO_ANY_USERID": "lets another application resume the subscription if it has `subscribe` for its topic and `get`"
    " for its queue (else 2035). Only the owner may alter it (2434) and remove it (2035)",
    "MQSO_GROUP_SUB": "needs the program's own queue and `MQSO_SET_CORREL_ID`; else 2562",
    "MQSO_SET_CORREL_ID": "with a CorrelId of zeros gets 2207",
    "MQSO_WILDCARD_CHAR": "takes `*` at the end, alone or behind a `/`. Every other wildcard gets 2425, because the"
    " broker keeps these subscriptions by levels",
    "MQGMO_CONVERT": "converts MQSTR, MQRFH, MQRFH2, MQDLH, MQXQH, MQIIH and MQCIH. What cannot be converted is"
    " left as it is, with 2110, 2111, 2115 or 2119",
    "MQGMO_NO_PROPERTIES": "leaves out the folders of properties, and an MQRFH2 that has no others. So does"
    " `PROPCTL(NONE)` of the queue where a get says nothing of properties. IBM's client for Java always says something:"
    " it makes properties of the MQRFH2 by itself, and hands on the MQRFH2 where the queue has `PROPCTL(FORCE)`",
    "MQGMO_PROPERTIES_IN_HANDLE": "never arrives from IBM's client for Java, which makes handles by itself",
}
_JMS: Final = (
    ("Text, bytes, map, stream and object messages, properties, headers", "yes", ""),
    ("Transacted sessions, rollback, redelivery, JMSXDeliveryCount", "yes", ""),
    ("Message listeners", "yes", ""),
    ("Queue browsers", "yes", ""),
    ("Temporary queues", "yes", "with rights for them: [temporary queues](../how-to/mq-clients.md#give-rights)"),
    ("Priority, time to live", "yes", ""),
    ("Topics: publish, subscribe, retained publications", "yes", "the `publish` and `subscribe` of the application"),
    ("Durable subscriptions, `unsubscribe`", "yes", "2429 (JMSWMQ0025, JMSWMQ0026) while another consumer has it"),
    ("Shared subscriptions, durable or not", "yes", "each message reaches one of the consumers"),
    ("Subscriptions with `noLocal`", "yes", "the client leaves out what its own connection publishes"),
    ("Temporary topics", "yes", "with `TEMP/#` among `publish` and `subscribe`"),
    (
        "Selectors: receive, browse, listen, subscribe",
        "yes",
        "on properties, JMS headers and `Root.MQMD` fields: [selectors](#selectors)",
    ),
    ("Delivery delay", "no", "2298"),
    ("Asynchronous put (PUTASYNCALLOWED) of non-persistent messages", "no", "2298; leave it to the destination"),
    ("`send` with a CompletionListener", "yes", "it is called when the answer has come"),
    ("Read ahead (READAHEADALLOWED) on queues", "yes", "messages come one by one all the same"),
    ("Read ahead on topics", "no", "2046"),
    ("Automatic reconnection, lists of connection names", "yes", "tried with a `kill -9` of the gateway"),
    ("Reports without data, with the first 100 bytes, or with all", "yes", "with the headers, where there are data"),
    ("JMSXGroupID, JMSXGroupSeq", "no", "2026"),
    (
        "Context of another user (MDWRITE with MDCTX)",
        "untried",
        "it needs `set_context` of its application, else 2035 at the open",
    ),
    ("XA connections", "no", "the XA resource cannot be had (JMSWMQ1068)"),
    (
        "Provider version 6: queues, listeners, selectors",
        "yes",
        "through a channel with MCAUSER: it sends no password that is long enough for a token",
    ),
    (
        "Provider version 6: topics, durable subscriptions, BROKERVER V1 and V2",
        "yes",
        "with [queues and rights for them](../how-to/mq-clients.md#serve-queued-publishsubscribe-of-jms)",
    ),
    ("Compression of headers and messages", "no", "the client goes on without it"),
    ("Client channel definition tables (CCDT)", "untried", "they are files of the client alone"),
)
_TOOLS: Final = (
    ("PCF commands, and with them MQ Explorer", "2085: there is no command queue. Use `rfhbridge mqsc`"),
    ("`runmqsc -c`", "untried; it needs the command queue too"),
    ("`amqsputc`, `amqsgetc` and other programs of the C client", "untried"),
    ("Client exits, AMS policies (SYSTEM.PROTECTION.POLICY.QUEUE), multicast", "not there"),
    ("MQ channels between queue managers (SDR, RCVR, CLUSRCVR)", "not there: a `[[target]]` connects as a client"),
)
_CHANNEL_NOTES: Final = {
    "CHLTYPE": "must be there",
    "DESCR": "free text",
    "DISCINT": "seconds without a call after which a connection ends; 0: never",
    "HBINT": "seconds between heartbeats. A client may be silent for that time and as long again, at most a minute"
    " more. 0: there are none",
    "MAXINST": "connections at one time",
    "MAXINSTC": "connections of one client address at one time",
    "MAXMSGL": "bytes of the longest message",
    "MCAUSER": "the application that a client without a password is. Write a name with small letters in quotes",
    "SHARECNV": "conversations of one socket; above 10 counts as 10. 0: none are shared, and listeners poll",
    "SSLCAUTH": "whether a client must show a certificate, where SSLCIPH is set",
    "SSLCIPH": "ANY_TLS12_OR_HIGHER or ANY_TLS13_OR_HIGHER; blank: TLS as the listener has it",
    "SSLPEER": "what the certificate's subject must have, `CN=orders-*,O=Plant`",
}


def lines() -> list[str]:
    """The page, without its title."""
    return [
        *INTRODUCTION.splitlines(),
        "",
        "## Calls",
        "",
        *table(["Call", "Here", "Note, or what the program gets"], _calls()),
        "",
        "## JMS",
        "",
        "Each row was tried with IBM's client, unless it says otherwise.",
        "",
        *table(["What", "Here", "Note, or what the program gets"], _JMS),
        "",
        "## Selectors",
        "",
        *SELECTORS.splitlines(),
        "",
        "## Tools",
        "",
        *table(["What", "What it gets"], _TOOLS),
        "",
        "## Options",
        "",
        "An option that is in no row gets 2046 (MatchOptions: 2247). 2035 is for the context of another user.",
        "With `set_context` of its `[[application]]` a program may set it on queues.",
        "",
        *table(["Call", "Here", "Options"], _options()),
        "",
        *(f"- {code(name)} {note}." for name, note in _OPTION_NOTES.items()),
        "",
        "## Attributes of a server-connection channel",
        "",
        "`DEFINE CHANNEL(NAME) CHLTYPE(SVRCONN)` and `ALTER CHANNEL` take them. A change counts for connections that",
        "are made later.",
        "",
        *table(["Attribute", "Default", "Meaning"], _attributes()),
    ]


def _calls() -> Iterator[tuple[str, str, str]]:
    for call in SegmentType:
        if call < SegmentType.MQCONN or call == SegmentType.SPI or call.name.startswith(_XA):
            continue
        if call in CALLS or call == SegmentType.MQCONN:
            yield call.name, "yes", _CALL_NOTES[call.name]
        else:
            note = _CALL_NOTES[call.name]
            yield call.name, "no", f"{ReasonCode.MQRC_FUNCTION_NOT_SUPPORTED:d}" + (f"; {note}" if note else "")
    yield _LISTENERS
    if SegmentType.XA_OPEN not in CALLS:
        yield "XA, MQBEGIN", "no", "the client gives an error before or at the first call"


def _options() -> Iterator[tuple[str, str, str]]:
    for call, prefix, kind in _GROUPS:
        by_standing: dict[str, list[str]] = {}
        for option in kind:
            name = f"{prefix}_{option.name}"
            by_standing.setdefault(_standing(name, option), []).append(code(name))
        for standing in sorted(by_standing, reverse=True):
            yield call, standing, ", ".join(by_standing[standing])


def _standing(name: str, option: IntFlag) -> str:
    """Whether an option is taken, or the reason code of its refusal."""
    if name in _REFUSED_ELSEWHERE:
        return str(int(_REFUSED_ELSEWHERE[name]))
    try:
        check_options(type(option), option, "")
    except QueueManagerError as error:
        return str(int(error.reason_code))
    return "yes"


def _attributes() -> Iterator[tuple[str, str, str]]:
    for keyword, attribute in sorted(ATTRIBUTES[ObjectType.CHANNEL].items()):
        default = f"{attribute.default:,}" if isinstance(attribute, Number) else str(attribute.default) or "blank"
        yield code(keyword), default, _CHANNEL_NOTES[keyword]
