"""What a command must and must not say, whichever format it comes in: the rules behind the reason codes.

Sources: IBM MQ documentation, the pages of the queued publish/subscribe commands and of their reason codes.
"""

import re
from collections.abc import Callable

from mappings.commands.options import RegistrationOption, check_option, options_error
from mappings.commands.parameters import NAME_VERBS, NAMED_VERBS, Parameters
from mappings.errors import CommandError
from mappings.headers.mqrfh2 import unsuitable_character
from mappings.reasons import Reason
from mappings.table import ROWS_BY_KEY, Dialect
from mappings.topics.topics import literal_prefix, topic_error

MAXIMUM_TOPIC_CHARACTERS = 10_240  # MQ_TOPIC_STR_LENGTH
MAXIMUM_FILTER_CHARACTERS = 10_240  # MQ_SELECTOR_LENGTH
MAXIMUM_SUBSCRIPTION_NAME_CHARACTERS = 10_240  # MQ_SUB_NAME_LENGTH
MAXIMUM_SUBSCRIPTION_IDENTITY_CHARACTERS = 128  # MQ_SUB_IDENTITY_LENGTH
MAXIMUM_SUBSCRIPTION_POINT_CHARACTERS = 128  # MQ_SUB_POINT_LENGTH

_MQ_NAME = re.compile(r"[A-Za-z0-9._/%]{1,48}")  # MQ_Q_NAME_LENGTH
_OPTIONAL_MQ_NAME = re.compile(r"[A-Za-z0-9._/%]{0,48}")  # a blank queue manager name: resolve the queue at the broker


def check_parameters(parameters: Parameters, dialect: Dialect) -> None:
    """CommandError with the reason code that a broker would answer with; silent for a valid command."""
    _check_options(parameters, dialect)
    _check_option_pairs(parameters, dialect)
    _check_texts(parameters)
    _check_topics(parameters, dialect)


def _check_options(parameters: Parameters, dialect: Dialect) -> None:
    verb = parameters.verb
    check_option(parameters.registration_options, verb=verb, dialect=dialect)
    check_option(parameters.publication_options, verb=verb, dialect=dialect)
    check_option(parameters.delete_options, verb=verb, dialect=dialect)


def _check_option_pairs(parameters: Parameters, dialect: Dialect) -> None:
    """Options that exclude or need each other, or another parameter."""
    options = parameters.registration_options
    if not options:
        return
    if RegistrationOption.JOIN_SHARED in options and RegistrationOption.JOIN_EXCLUSIVE in options:
        raise options_error(RegistrationOption, "JoinExcl", "cannot stand beside JoinShared")
    if RegistrationOption.ANONYMOUS in options and RegistrationOption.DIRECT_REQUESTS in options:
        raise options_error(RegistrationOption, "DirectReq", "cannot stand beside Anon")
    if RegistrationOption.ADD_NAME in options and "SubName" not in parameters.texts:
        raise options_error(RegistrationOption, "AddName", "needs SubName")
    identified = RegistrationOption.JOIN_SHARED | RegistrationOption.JOIN_EXCLUSIVE | RegistrationOption.LEAVE_ONLY
    if options & identified and "SubIdentity" not in parameters.texts:
        raise _missing("SubIdentity", dialect)
    _check_full_response(parameters)


def _check_full_response(parameters: Parameters) -> None:
    options = parameters.registration_options
    if parameters.verb != "DeregSub" or RegistrationOption.FULL_RESPONSE not in options:
        return
    if RegistrationOption.DEREGISTER_ALL in options or len(parameters.topics) > 1:
        raise options_error(RegistrationOption, "FullResp", "works with one topic, and without DeregAll")


def _check_topics(parameters: Parameters, dialect: Dialect) -> None:
    verb, topics = parameters.verb, parameters.topics
    name = ROWS_BY_KEY["Topic"].name_in(dialect) or "Topic"
    everything = bool(parameters.registration_options & RegistrationOption.DEREGISTER_ALL)
    is_named = verb in NAMED_VERBS and "SubName" in parameters.texts
    if not topics and not everything and not is_named:
        raise _missing("Topic", dialect)
    if topics and everything and dialect is Dialect.MQRFH:
        raise CommandError(
            Reason.MQRC_RFH_PARM_ERROR, f"{name} cannot stand beside DeregAll in MQRFH; leave it out", parameter=name
        )
    if verb == "ReqUpdate" and len(topics) > 1:
        raise CommandError(
            Reason.MQRC_RFH_DUPLICATE_PARM, f"ReqUpdate takes one {name}; send one for each", parameter=name
        )
    for topic in topics:
        _check_topic(topic)
        if dialect is Dialect.MQRFH and verb not in NAME_VERBS:
            literal_prefix(topic)


def check_topic_text(text: str, dialect: Dialect) -> None:
    """TopicError for a topic that a header cannot hold; `text` is as it stands there, in MQRFH with its escapes."""
    _check_topic(text)
    if dialect is Dialect.MQRFH2 and (unsuitable := unsuitable_character(text)):
        raise topic_error(text, f"holds {unsuitable!a}, which a folder of an MQRFH2 cannot hold")


def _check_topic(topic: str) -> None:
    if not topic or "\0" in topic:
        raise topic_error(topic, "is empty or holds NUL")
    if len(topic) > MAXIMUM_TOPIC_CHARACTERS:
        raise topic_error(topic, f"has {len(topic)} characters, and IBM MQ carries {MAXIMUM_TOPIC_CHARACTERS}")


def _check_texts(parameters: Parameters) -> None:
    for key, value in parameters.texts.items():
        if parameters.verb not in ROWS_BY_KEY[key].commands:
            raise CommandError(
                Reason.MQRC_RFH_PARM_ERROR,
                f"{key} is not a parameter of {parameters.verb}; leave it out",
                parameter=key,
            )
        rule = _TEXT_RULES.get(key)
        if rule is not None and not rule[0](value):
            names_parameter = rule[1] is Reason.MQRC_RFH_PARM_ERROR
            raise CommandError(rule[1], f"{key} {value[:200]!a} {rule[2]}", parameter=key if names_parameter else value)


def _missing(key: str, dialect: Dialect) -> CommandError:
    name = ROWS_BY_KEY[key].name_in(dialect) or key
    return CommandError(Reason.MQRC_RFH_PARM_MISSING, f"{name} is missing; this command needs it", parameter=name)


def _is_mq_name(value: str) -> bool:
    return _MQ_NAME.fullmatch(value) is not None


def _is_optional_mq_name(value: str) -> bool:
    return _OPTIONAL_MQ_NAME.fullmatch(value) is not None


def _has_1_to(maximum: int) -> Callable[[str], bool]:
    return lambda value: 1 <= len(value) <= maximum


_MQ_NAME_RULE = "is not an MQ object name: 1 to 48 letters, digits and . _ / %"
_TEXT_RULES: dict[str, tuple[Callable[[str], bool], Reason, str]] = {
    "StreamName": (_is_mq_name, Reason.MQRCCF_STREAM_ERROR, _MQ_NAME_RULE),
    "QMgrName": (_is_optional_mq_name, Reason.MQRCCF_Q_MGR_NAME_ERROR, _MQ_NAME_RULE),
    "QName": (_is_mq_name, Reason.MQRCCF_Q_NAME_ERROR, _MQ_NAME_RULE),
    "Filter": (
        _has_1_to(MAXIMUM_FILTER_CHARACTERS),
        Reason.MQRCCF_FILTER_ERROR,
        "is empty or longer than 10240 characters",
    ),
    "SubName": (
        _has_1_to(MAXIMUM_SUBSCRIPTION_NAME_CHARACTERS),
        Reason.MQRCCF_SUB_NAME_ERROR,
        "is empty or longer than 10240 characters",
    ),
    "SubIdentity": (
        _has_1_to(MAXIMUM_SUBSCRIPTION_IDENTITY_CHARACTERS),
        Reason.MQRCCF_SUB_IDENTITY_ERROR,
        "is empty or longer than 128 characters",
    ),
    "SubPoint": (
        lambda value: len(value) <= MAXIMUM_SUBSCRIPTION_POINT_CHARACTERS,
        Reason.MQRC_RFH_PARM_ERROR,
        "is longer than 128 characters",
    ),
}
