"""The access list: a TOML file of rules, by client, for the topics that it may publish and subscribe.

    [[rule]]
    user = ["anna", "ops-*"]            # of these users; without the key: of everybody
    client = "pump-*"                   # with these client identifiers; a * at the end stands for any rest
    publish = ["plant/%c/#"]            # may publish there
    subscribe = ["commands/%c"]         # may subscribe that
    deny_publish = ["plant/%c/secret"]  # and not there, whatever another rule allows
    deny_subscribe = []

A topic that no rule allows is refused. A topic that one rule denies is refused whatever another allows. The order of
rules does not matter. `anonymous = true` limits a rule to clients without a user. A subscription is refused if it could
bring one denied topic.

%c is worth no more than the client identifier: where any user may take any identifier, it may take the topics too. So a
list with %c needs `[access] bind_client_identifier = true`, or this line above its rules:

    accept_unbound_client_identifiers = true
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from gateway.access.client_identifiers import Binding
from gateway.access.filters import RuleFilter
from gateway.access.text_file import read_text_file
from gateway.config.complaints import sentence
from gateway.config.error import ConfigurationError
from gateway.config.values import Table

#: Rules are looked through for each new topic of a client.
MAXIMUM_RULES: Final = 10_000
_NAMED_PROBLEMS: Final = 5
#: The longest complaint about a wrong value, in characters with its key.
_LONGEST_PROBLEM: Final = 200
_UNBOUND_HINT: Final = (
    "set bind_client_identifier = true in [access], name %u instead, or write"
    " 'accept_unbound_client_identifiers = true' as the first line of the file"
)
_HINT: Final = "docs/how-to/users-and-access.md shows a right one"


def _checked_filter(text: str) -> str:
    RuleFilter.parse(text)
    return text


def _as_tuple(value: object) -> object:
    """One text, or an array of them."""
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, str) else value


def _checked_name(name: str) -> str:
    """Allows a * at the end alone: elsewhere it would be a plain character, and a rule that denies would be void."""
    if "*" in name[:-1]:
        raise ValueError(f"{name!r} has a * before its end, where it has no meaning; write it at the end alone")
    return name


_Names = Annotated[
    tuple[Annotated[str, Field(min_length=1), AfterValidator(_checked_name)], ...], BeforeValidator(_as_tuple)
]
_Filters = Annotated[tuple[Annotated[str, AfterValidator(_checked_filter)], ...], BeforeValidator(_as_tuple)]


class _RuleTable(Table):
    """A rule as it stands in the file."""

    user: Annotated[_Names, Field(min_length=1)] | None = None
    client: Annotated[_Names, Field(min_length=1)] | None = None
    anonymous: bool = False
    publish: _Filters = ()
    subscribe: _Filters = ()
    deny_publish: _Filters = ()
    deny_subscribe: _Filters = ()

    @model_validator(mode="after")
    def _checked(self) -> Self:
        if self.anonymous and self.user is not None:
            raise ValueError("anonymous and user exclude each other")
        if not (self.publish or self.subscribe or self.deny_publish or self.deny_subscribe):
            raise ValueError("says nothing; name publish, subscribe, deny_publish or deny_subscribe")
        return self


class _File(Table):
    accept_unbound_client_identifiers: bool = False
    rule: Annotated[tuple[_RuleTable, ...], BeforeValidator(_as_tuple), Field(max_length=MAXIMUM_RULES)] = ()


_KEYS: Final = ("accept_unbound_client_identifiers", "rule", *(f"rule.{key}" for key in _RuleTable.model_fields))

_SHARE: Final = "$share"
#: The line that a rule begins with.
_TABLE: Final = re.compile(r"\s*\[\[\s*rule\s*\]\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The clients of a rule, and the filters that it allows and denies.

    `users` and `clients`: None is everybody, a `*` at the end of a name stands for any rest.
    """

    users: tuple[str, ...] | None
    clients: tuple[str, ...] | None
    is_for_anonymous_alone: bool
    publish: tuple[RuleFilter, ...]
    subscribe: tuple[RuleFilter, ...]
    deny_publish: tuple[RuleFilter, ...]
    deny_subscribe: tuple[RuleFilter, ...]
    #: Where it stands in the file, for the audit trail.
    place: str

    @property
    def names_a_share(self) -> bool:
        """Whether a filter begins with `$share/`. At MQTT 5 only the filter behind the group's name is compared."""
        return any(each.levels[0].before == _SHARE for each in (*self.subscribe, *self.deny_subscribe))

    @property
    def names_client_identifier(self) -> bool:
        """Whether a filter has %c."""
        filters = (*self.publish, *self.subscribe, *self.deny_publish, *self.deny_subscribe)
        return any(level.name == "c" for each in filters for level in each.levels)

    @property
    def trusts_client_identifier(self) -> bool:
        """Whether the client identifier decides what the rule gives: by %c, or by `client`."""
        return self.names_client_identifier or self.clients not in (None, ("*",))

    def concerns(self, user: str | None, client: str) -> bool:
        """Whether it is for this client."""
        if self.is_for_anonymous_alone and user is not None:
            return False
        if self.users is not None and (user is None or not _is_one_of(user, self.users)):
            return False
        return self.clients is None or _is_one_of(client, self.clients)


class AccessList:
    """The rules of a file, found by their names: a rule for one device takes no time of the other devices."""

    def __init__(self, rules: tuple[Rule, ...], *, accepts_unbound: bool = False) -> None:
        self.rules = rules
        #: Whether its author accepts that anybody may take any client identifier.
        self.accepts_unbound = accepts_unbound
        self._of_user: dict[str, list[Rule]] = {}
        self._of_client: dict[str, list[Rule]] = {}
        #: Rules for everybody, and for names that end in `*`.
        self._others: list[Rule] = []
        for rule in rules:
            for place in self._places(rule):
                place.append(rule)

    def rules_for(self, user: str | None, client: str) -> list[Rule]:
        """The rules that concern a client."""
        candidates = [*self._of_client.get(client, ()), *self._others]
        if user is not None:
            candidates += self._of_user.get(user, ())
        return [rule for rule in candidates if rule.concerns(user, client)]

    def _places(self, rule: Rule) -> list[list[Rule]]:
        """The lists that a rule belongs to; once each, also where it names a user twice."""
        for names, place in ((rule.users, self._of_user), (rule.clients, self._of_client)):
            if names is not None and not any(name.endswith("*") for name in names):
                return [place.setdefault(name, []) for name in dict.fromkeys(names)]
        return [self._others]

    @classmethod
    def parse(cls, text: str, source: str) -> Self:
        """The rules of the file's text. Raises ConfigurationError."""
        try:
            file = _File.model_validate(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(source, (f"is not TOML: {error}",), "correct the file at that place") from None
        except RecursionError:
            raise ConfigurationError(source, ("is nested too deeply",), _HINT) from None
        except ValidationError as error:
            problems = [sentence(problem, _KEYS)[:_LONGEST_PROBLEM] for problem in error.errors()]
            if len(problems) > _NAMED_PROBLEMS:
                problems[_NAMED_PROBLEMS:] = [f"and {len(problems) - _NAMED_PROBLEMS} more"]
            raise ConfigurationError(source, tuple(problems), _HINT) from None
        rules = tuple(map(_rule, file.rule, _places(text, len(file.rule))))
        return cls(rules, accepts_unbound=file.accept_unbound_client_identifiers)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The rules of a file. Raises ConfigurationError."""
        return cls.parse(read_text_file(path), str(path))

    @classmethod
    def read_for(cls, path: Path, binding: Binding) -> Self:
        """The same for a gateway with this binding; ConfigurationError also where it leaves a %c to everybody."""
        access_list = cls.read(path)
        unbound = [number for number, rule in enumerate(access_list.rules, 1) if rule.names_client_identifier]
        if unbound and binding is not True and not access_list.accepts_unbound:
            problem = f"rule#{unbound[0]} names %c, and users may take each other's client identifiers"
            raise ConfigurationError(str(path), (problem,), _UNBOUND_HINT)
        return access_list


def _places(text: str, count: int) -> Iterable[str]:
    """`line 12` for each rule; `rule#3` where the rules are not written one below the other as tables."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _TABLE.match(line)]
    if len(lines) == count:
        return (f"line {number}" for number in lines)
    return (f"rule#{number}" for number in range(1, count + 1))


def _rule(table: _RuleTable, place: str) -> Rule:
    return Rule(
        place=place,
        users=table.user,
        clients=table.client,
        is_for_anonymous_alone=table.anonymous,
        publish=tuple(map(RuleFilter.parse, table.publish)),
        subscribe=tuple(map(RuleFilter.parse, table.subscribe)),
        deny_publish=tuple(map(RuleFilter.parse, table.deny_publish)),
        deny_subscribe=tuple(map(RuleFilter.parse, table.deny_subscribe)),
    )


def _is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)
