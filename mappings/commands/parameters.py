"""The parameters of a command, between the typed commands and the two wire forms.

`fields.toml` says which command takes which parameter. This module gathers the parameters from the pairs of an MQRFH or
the elements of a psc folder, and lists them for writing, in the order of IBM's examples.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mappings.commands.options import (
    NO_DELETE_OPTIONS,
    NO_PUBLICATION_OPTIONS,
    NO_REGISTRATION_OPTIONS,
    DeleteOption,
    Option,
    PublicationOption,
    RegistrationOption,
    option_number,
    tokens_of,
)
from mappings.errors import CommandError, ConversionError
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Element, Folder
from mappings.headers.name_value import NameValues, name_positions
from mappings.reasons import Reason
from mappings.table import ROWS_BY_KEY, ROWS_BY_NAME, VERBS, Dialect
from mappings.topics.topics import escape_topic, unescape_topic

NAME_VERBS = frozenset({"Publish", "RegPub"})  # their topics are names; those of all other commands are patterns
MQRFH_ONLY_VERBS = frozenset({"RegPub", "DeregPub"})
NAMED_VERBS = frozenset({"DeregSub", "ReqUpdate"})  # a SubName alone says which subscription they mean

_DATA_KEYS = frozenset({"StringData", "IntData"})
_BEFORE_TOPIC = ("StreamName", "QName", "QMgrName")
_AFTER_TOPIC = ("SubPoint", "Filter", "PubTime", "SeqNum", "SubName", "SubIdentity", "SubUserData")
TEXT_KEYS = (*_BEFORE_TOPIC, *_AFTER_TOPIC)
#: The names of parameters in psc, in MQRFH without MQPS, and of either in small letters.
_NAMES_OF_PARAMETERS = frozenset(
    name.removeprefix("MQPS").lower() for names in ROWS_BY_NAME.values() for name in names
) | frozenset(key.lower() for key in ROWS_BY_KEY)
_BLANK_PADDED_KEYS = frozenset(_BEFORE_TOPIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """All that a command can say; `texts` by the key of `fields.toml` (StreamName, QName, ...)."""

    verb: str
    topics: tuple[str, ...]
    registration_options: RegistrationOption = NO_REGISTRATION_OPTIONS
    publication_options: PublicationOption = NO_PUBLICATION_OPTIONS
    delete_options: DeleteOption = NO_DELETE_OPTIONS
    texts: Mapping[str, str] = field(default_factory=dict)
    data: NameValues = ()


def verb_of_pairs(header: Mqrfh, pairs: NameValues) -> str:
    """The command of an MQRFH: the value of its first MQPS name, which must be MQPSCommand (else 2336 and where)."""
    index = next((index for index, (name, _) in enumerate(pairs) if name.startswith("MQPS")), None)
    if index is None:
        last = max(len(header.name_value_string.partition("\0")[0]) - 1, 0)
        raise _command_error("no name that begins with MQPS", "MQPSCommand", error_position=last)
    name, value = pairs[index]
    if name != "MQPSCommand" or value not in VERBS:
        wrong = name if name != "MQPSCommand" else value
        position = name_positions(header.name_value_string)[index]
        raise _command_error(
            f"{wrong[:64]!a} where MQPSCommand and a known command belong", wrong, error_position=position
        )
    return value


def gather_pairs(verb: str, pairs: NameValues) -> Parameters:
    """The parameters of an MQRFH; a publisher's own pairs and MQPSStringData, MQPSIntData become `data`, in order."""
    gathered = _Gathered(verb=verb, dialect=Dialect.MQRFH)
    for name, value in pairs:
        gathered.add(name, value)
    return gathered.parameters()


def verb_of_elements(elements: Iterable[Element]) -> str:
    """The command of a psc folder: the text of Command, wherever it stands (else 2336)."""
    verb = next((element.text for element in elements if element.name == "Command"), None)
    if verb is None or verb not in VERBS or verb in MQRFH_ONLY_VERBS:
        wrong = "Command" if verb is None else verb
        raise _command_error(f"psc has no Command, or an unknown one: {wrong[:64]!a}", wrong)
    return verb


def pairs_of_elements(elements: Iterable[Element]) -> NameValues:
    """The elements of a psc folder as pairs; a group is an error, because psc is flat."""
    for element in elements:
        if element.children:
            raise _parameter_error(element.name, "is a group, and psc has none")
    return tuple((element.name, element.text) for element in elements)


def gather_elements(folder: Folder) -> Parameters:
    """The parameters of a psc folder; its elements may stand in any order."""
    elements = folder.elements
    gathered = _Gathered(verb=verb_of_elements(elements), dialect=Dialect.MQRFH2)
    for name, value in pairs_of_elements(elements):
        gathered.add(name, value)
    return gathered.parameters()


class _Gathered:
    """Collects parameters one by one, and refuses one that the command does not take."""

    def __init__(self, *, verb: str, dialect: Dialect) -> None:
        self.verb = verb
        self._dialect = dialect
        self._seen: set[str] = set()
        self._topics: list[str] = []
        self._registration_options = 0
        self._publication_options = 0
        self._delete_options = 0
        self._texts: dict[str, str] = {}
        self._data: list[tuple[str, str]] = []

    def add(self, name: str, value: str) -> None:
        row = ROWS_BY_NAME[self._dialect].get(name)
        if row is None:
            self._add_own_pair(name, value)
            return
        if self.verb not in row.commands:
            raise _parameter_error(name, f"is not a parameter of {self.verb}")
        if name in self._seen and self.verb not in row.repeats:
            raise CommandError(Reason.MQRC_RFH_DUPLICATE_PARM, f"{name} stands twice; give it once", parameter=name)
        self._seen.add(name)
        self._add_known(row.key, name, value)

    def _add_known(self, key: str, name: str, value: str) -> None:
        if key == "Topic":
            names_topics = self._dialect is Dialect.MQRFH and self.verb in NAME_VERBS
            self._topics.append(unescape_topic(value) if names_topics else value)
        elif key == "RegOpt" or (key == "PubOpt" and value == "Local"):
            self._registration_options |= option_number(RegistrationOption, value)
        elif key == "PubOpt":
            self._publication_options |= option_number(PublicationOption, value)
        elif key == "DelOpt":
            self._delete_options |= option_number(DeleteOption, value)
        elif key in _DATA_KEYS:
            self._data.append((name, value))
        elif key != "Command":
            self._texts[key] = value.rstrip(" ") if key in _BLANK_PADDED_KEYS else value

    def _add_own_pair(self, name: str, value: str) -> None:
        """A publisher's own name. In psc it means nothing to a broker, which leaves it where it stands.

        IBM's JMS client writes UNIQUE_CONNECTION_ID there. A name that some header has for a parameter is a mistake.
        """
        is_mistaken = self._dialect is Dialect.MQRFH2 and name.lower() in _NAMES_OF_PARAMETERS
        if self.verb != "Publish" or name.startswith("MQ") or is_mistaken:
            raise _parameter_error(name, f"is not a parameter of {self.verb}")
        if self._dialect is Dialect.MQRFH:
            self._data.append((name, value))

    def parameters(self) -> Parameters:
        return Parameters(
            verb=self.verb,
            topics=tuple(self._topics),
            registration_options=RegistrationOption(self._registration_options),
            publication_options=PublicationOption(self._publication_options),
            delete_options=DeleteOption(self._delete_options),
            texts=self._texts,
            data=tuple(self._data),
        )


def list_pairs(parameters: Parameters) -> NameValues:
    """The pairs of an MQRFH: command, options, stream and queue, topics, the rest, publication data."""
    escape = parameters.verb in NAME_VERBS
    topics = [escape_topic(topic) if escape else topic for topic in parameters.topics]
    return (*_fields(parameters, Dialect.MQRFH, topics, _mqrfh_options(parameters)), *parameters.data)


def list_elements(parameters: Parameters) -> NameValues:
    """The elements of a psc folder, in the same order."""
    return tuple(_fields(parameters, Dialect.MQRFH2, parameters.topics, _mqrfh2_options(parameters)))


def _fields(
    parameters: Parameters, dialect: Dialect, topics: Iterable[str], options: NameValues
) -> Iterable[tuple[str, str]]:
    keyed = [
        ("Command", parameters.verb),
        *options,
        *((key, parameters.texts[key]) for key in _BEFORE_TOPIC if key in parameters.texts),
        *(("Topic", topic) for topic in topics),
        *((key, parameters.texts[key]) for key in _AFTER_TOPIC if key in parameters.texts),
    ]
    return [(_name(key, dialect), value) for key, value in keyed]


def _name(key: str, dialect: Dialect) -> str:
    name = ROWS_BY_KEY[key].name_in(dialect)
    if name is None:
        raise ConversionError(
            Reason.MQRC_RFH_PARM_ERROR, f"{key} cannot be said in {dialect.value}; leave it out", parameter=key
        )
    return name


def _mqrfh_options(parameters: Parameters) -> NameValues:
    """MQRFH has Local of a Publish among the registration options, and CorrelAsId among the publication options."""
    registration, publication = parameters.registration_options, parameters.publication_options
    correlated = RegistrationOption.CORREL_ID_AS_IDENTITY
    if parameters.verb == "Publish" and registration & correlated:
        registration &= ~correlated
        publication |= PublicationOption.CORREL_ID_AS_IDENTITY
    return (
        *_keyed("RegOpt", registration),
        *_keyed("PubOpt", publication),
        *_keyed("DelOpt", parameters.delete_options),
    )


def _mqrfh2_options(parameters: Parameters) -> NameValues:
    """psc has Local of a Publish in PubOpt; CorrelAsId goes to RegOpt, where IBM's samples write it."""
    registration, publication = parameters.registration_options, parameters.publication_options
    local: NameValues = ()
    if parameters.verb == "Publish":
        if registration & RegistrationOption.LOCAL:
            registration &= ~RegistrationOption.LOCAL
            local = (("PubOpt", "Local"),)
        if publication & PublicationOption.CORREL_ID_AS_IDENTITY:
            publication &= ~PublicationOption.CORREL_ID_AS_IDENTITY
            registration |= RegistrationOption.CORREL_ID_AS_IDENTITY
    return (
        *_keyed("RegOpt", registration),
        *_keyed("PubOpt", publication),
        *local,
        *_keyed("DelOpt", parameters.delete_options),
    )


def _keyed(key: str, option: Option) -> NameValues:
    return tuple((key, token) for token in tokens_of(option))


def _command_error(problem: str, parameter: str, *, error_position: int | None = None) -> CommandError:
    return CommandError(Reason.MQRC_RFH_COMMAND_ERROR, problem, parameter=parameter, error_position=error_position)


def _parameter_error(name: str, problem: str) -> CommandError:
    return CommandError(Reason.MQRC_RFH_PARM_ERROR, f"{name[:64]!a} {problem}; leave it out", parameter=name)
