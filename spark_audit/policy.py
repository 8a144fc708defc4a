"""The audit's policy: its scope, severities and thresholds. One TOML file, every key optional.

    [scope]                         findings outside of it are not reported; the whole trail is read anyway
    from = 2026-11-01T00:00:00Z     of records noted at or after this time
    until = 2026-12-01T00:00:00Z    and before this one
    gateways = ["0102030405060708090a0b0c"]
    topics = ["plant/+/boiler/#"]   topic filters (MQTT 3.1.1 section 4.7)

    [control."timeliness"]          a control by its identifier
    severity = "error"              error, warning or off
    forwarded_within_s = 600        its parameters, by their names

    [trail]                         how long a trail is kept, and how fresh it is (verify/auditors_rule.py)
    keep_at_least_days = 365
    not_older_than_hours = 2

    [[restore]]                     a gap in the trail that the auditor has looked into (verify/restores.py)
    record = "<hash of the record of kind restored, or of the digest of kind renewal>"

An unknown key is an error that names the nearest one. The file's text and SHA-256 go into the result.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Self

from spark_audit.controls import digests, integrity
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.controls.control import Control, Parameter, Rule, Severity
from spark_audit.policy_scope import PolicyScope
from spark_audit.verify.auditors_rule import NO_RULE, AuditorsRule, UnusableRule, rule_of
from spark_audit.verify.restores import LARGEST_POLICY_BYTES, UnusableRestore, accepted_restores

_SECTIONS: Final = ("scope", "control", "trail", "restore")
_SCOPE_KEYS: Final = ("from", "until", "gateways", "topics")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST: Final = 2**63 - 1


class PolicyError(ValueError):
    """The policy file cannot be used. The text names the key, and what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy from a file, or the standard one, which has no name, no text and no hash."""

    scope: PolicyScope = field(default_factory=PolicyScope)
    #: The severity and parameters of each control in the file. The others keep their defaults.
    changed: Mapping[str, Control] = field(default_factory=dict)
    #: Hashes of the records of kind restored, and digests of kind renewal, in the file.
    accepted: frozenset[str] = frozenset()
    #: What the file asks of the trail, without the time of now.
    rule: AuditorsRule = NO_RULE
    #: The name and the text of the file.
    name: str = ""
    text: str = ""
    #: Hex, of the file's bytes.
    sha256: str = ""

    @classmethod
    def load(cls, path: Path) -> Self:
        """The policy in a file. Raises PolicyError for its contents, OSError if it cannot be read."""
        with path.open("rb") as file:
            data = file.read(LARGEST_POLICY_BYTES + 1)
        try:
            return replace(cls.parse(data), name=str(path))
        except PolicyError as error:
            raise PolicyError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The policy in the bytes of a file. Raises PolicyError."""
        if len(data) > LARGEST_POLICY_BYTES:
            raise PolicyError(f"it has more than {LARGEST_POLICY_BYTES} bytes")
        try:
            text = data.decode()
            tables = tomllib.loads(text)
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise PolicyError(f"it is not TOML: {error}") from None
        _check_names(tables, _SECTIONS, "")
        try:
            accepted, rule = accepted_restores(tables), rule_of(tables)
        except (UnusableRestore, UnusableRule) as error:
            raise PolicyError(str(error)) from None
        return cls(
            accepted=accepted,
            rule=rule,
            scope=_scope(_table(tables, "scope")),
            changed={control.identifier: control for control in _controls(_table(tables, "control"))},
            text=text,
            sha256=hashlib.sha256(data).hexdigest(),
        )

    def controls(self) -> tuple[Control, ...]:
        """Every control in order, by this policy. Controls that are off are among them, to be reported so."""
        chosen = tuple(self.changed.get(control.identifier, control) for control in CONTROLS)
        if not self.accepted:
            return chosen
        wanted = (integrity.RESTORED.identifier, digests.CONTROL.identifier)
        return tuple(self._naming(each) if each.identifier in wanted else each for each in chosen)

    def _naming(self, control: Control) -> Control:
        """A control that passes over the records and digests (hashes, hex) that this policy names."""
        named = ", ".join(f"'{record}'" for record in sorted(self.accepted))
        query = f"{control.rule.query} AND coalesce(hash NOT IN ({named}), true)"
        return replace(control, rule=Rule(query=query))


def _controls(tables: dict[str, Any]) -> Iterable[Control]:
    known = {control.identifier: control for control in CONTROLS}
    _check_names(tables, known, "control")
    for identifier in tables:
        yield _control(known[identifier], _table(tables, identifier, "control"))


def _control(control: Control, table: dict[str, Any]) -> Control:
    parameters = {parameter.name: parameter for parameter in control.parameters}
    _check_names(table, ("severity", *parameters), f'control."{control.identifier}"')
    place = f'control."{control.identifier}"'
    values = {name: _value(parameters[name], value, place) for name, value in table.items() if name in parameters}
    severity = control.severity
    if "severity" in table:
        severity = _severity(table["severity"], f"{place}.severity")
    return replace(control.with_values(values), severity=severity)


def _severity(value: object, place: str) -> Severity:
    allowed = tuple(each.value for each in Severity)
    if not isinstance(value, str) or value not in allowed:
        raise PolicyError(f"{place} is {_shown(value)}: write {', '.join(allowed[:-1])} or {allowed[-1]}")
    return Severity(value)


def _value(parameter: Parameter, value: object, place: str) -> int | bool:
    """A value of the parameter's own type. true is not a number."""
    name = f"{place}.{parameter.name}"
    if type(value) is not type(parameter.value) or not isinstance(value, int):
        wanted = "true or false" if isinstance(parameter.value, bool) else f"a whole number of {parameter.unit}"
        raise PolicyError(f"{name} is {_shown(value)}: write {wanted}")
    if not isinstance(value, bool) and not parameter.minimum <= value <= _LARGEST:
        raise PolicyError(f"{name} is {value}: write a number from {parameter.minimum} to {_LARGEST}")
    return value


def _scope(table: dict[str, Any]) -> PolicyScope:
    _check_names(table, _SCOPE_KEYS, "scope")
    from_us, until_us = (_microseconds(table.get(name), f"scope.{name}") for name in ("from", "until"))
    if from_us and until_us and from_us >= until_us:
        raise PolicyError("scope.until must be later than scope.from")
    scope = PolicyScope(
        from_us=from_us,
        until_us=until_us,
        gateways=_texts(table.get("gateways", []), "scope.gateways"),
        topics=_texts(table.get("topics", []), "scope.topics"),
    )
    if problem := scope.problem():
        raise PolicyError(f"scope.{problem}")
    return scope


def _microseconds(value: object, place: str) -> int:
    """A time as in records; 0 if there is none."""
    if value is None:
        return 0
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date) and not isinstance(value, datetime):
        return (datetime(value.year, value.month, value.day, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
    raise PolicyError(
        f"{place} is {_shown(value)}: write a date (from midnight UTC), or a time with its zone, without quotes"
    )


def _texts(value: object, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise PolicyError(f'{place} is {_shown(value)}: write a list of texts, ["..."]')
    return tuple(value)


def _table(tables: dict[str, Any], name: str, place: str = "") -> dict[str, Any]:
    value = tables.get(name, {})
    if not isinstance(value, dict):
        raise PolicyError(f"{_path(place, name)} is {_shown(value)}: write a table, [{_path(place, name)}]")
    return value


def _check_names(found: Iterable[str], known: Iterable[str], place: str) -> None:
    """Raises PolicyError for the first unknown name."""
    known = tuple(known)
    for name in found:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0)
            hint = f", did you mean {_path(place, near[0])}?" if near else ""
            quotes = ' (identifiers with a dot stand in quotes: [control."qos.1"])' if place == "control" else ""
            raise PolicyError(f"there is no key {_path(place, name)}{hint}{quotes}")


def _path(place: str, name: str) -> str:
    written = f'"{name}"' if place == "control" else name
    return f"{place}.{written}" if place else written


def _shown(value: object) -> str:
    return repr(value)[:60]
