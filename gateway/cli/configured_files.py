"""The files that a configuration names: keys, passwords, users and rules, read as the gateway would read them.

Each reader returns lines for people, and raises ConfigurationError for a fault that would stop the gateway or a target.
Nothing is made or changed. If the first start makes a key, the line says so.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.cli.application import CommandFailed
from gateway.cli.terminal import counted
from gateway.config import ConfigurationError, Settings
from gateway.config.listeners import ListenerSettings
from gateway.config.mq_listeners import MqListenerSettings
from gateway.config.tables import AccessSettings, AuditSettings
from gateway.config.targets import TargetSettings
from gateway.config.witnesses import WitnessSettings
from mq_adapters.reasons import StoreError

if TYPE_CHECKING:
    from gateway.audit_trail.keys.remote_key import KeyPlace

#: IBM MQ's kinds of key repository: CMS, and PKCS #12 since 9.3, which may also be named with its ending.
_REPOSITORY_ENDINGS: Final = (".kdb", ".p12", "")
#: That of binding "native" (mq_adapters/native/tls.py).
_NATIVE_ENDINGS: Final = (".pem",)


def configured_files(settings: Settings) -> list[str]:
    """A line for each file that is in order. Raises CommandFailed with all faults of the others."""
    lines: list[str] = []
    problems: list[str] = []
    for place, read in _readers(settings):
        try:
            lines += read()
        except (ConfigurationError, StoreError) as error:
            problems.append(f"{place}{error}")
        except OSError as error:  # such as a data folder that only the gateway's user may read
            problems.append(f"{place}{error.filename}: {error.strerror} (run this as the gateway's user)")
    if problems:
        raise CommandFailed("; ".join(problems))
    return lines


def warnings_about_files(settings: Settings) -> list[str]:
    """Warnings of settings that work but should be changed."""
    of_targets = [warning for target in settings.target for warning in _warnings_about(target)]
    return [
        *of_targets,
        *_warnings_about_rules(settings.access),
        *_warnings_about_copies(settings.audit),
    ]


def _readers(settings: Settings) -> Iterator[tuple[str, Callable[[], Iterable[str]]]]:
    """The reader of each file, and the words that stand in front of its faults."""
    access = settings.access
    yield "data: ", lambda: _data_folder(settings.data)
    if access.password_file:
        yield "access.password_file: ", lambda: _users(access)
    if access.token.key_files:
        yield "access.token.key_files: ", lambda: _token_keys(access)
    if access.access_file:
        yield "access.access_file: ", lambda: _access_list(access)
    if settings.application:
        yield "", lambda: _applications(settings)
    for listener in settings.all_listeners:
        if listener.is_secure:
            yield f"listener {listener.name}: ", partial(_certificates, listener)
    yield "", lambda: _keys(settings)  # their errors name the keys themselves
    yield "", lambda: _passwords(settings)
    for witness in settings.audit.witness:
        yield f"audit.witness.{witness.name}.git_settings_file: ", partial(_settings_of_git, witness)
        yield f"audit.witness.{witness.name}.credentials_file: ", partial(_credentials, witness)
        if witness.authority_file:
            yield f"audit.witness.{witness.name}.authority_file: ", partial(_authority, witness)


def _data_folder(folder: Path) -> Iterator[str]:
    """No line; the first start makes the folder."""
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(str(folder), ("is not a folder",), "name another one, or remove it")
    yield from ()


def _applications(settings: Settings) -> Iterator[str]:
    from gateway.access.application_roles import roles_of
    from gateway.access.application_tokens import read_application_tokens

    roles = roles_of(settings)
    file = settings.queue_manager.token_file
    tokens = read_application_tokens(Path(file)) if file else {}
    named = {role.name for role in roles if role.user_ids} | (tokens.keys() & {role.name for role in roles})
    named |= {each.name for each in settings.application if each.access_users}
    yield f"applications: {counted(len(roles), 'table')}, {len(named)} of them with a user or a token, valid"


def _users(access: AccessSettings) -> Iterator[str]:
    from gateway.access.users import Users

    users = Users.read(Path(access.password_file))
    yield f"password file: {access.password_file}, {counted(len(users.hashes), 'user')}, valid"


def _token_keys(access: AccessSettings) -> Iterator[str]:
    from gateway.access.tokens import Tokens

    keys = Tokens.read(access.token).keys
    yield f"keys of tokens: {', '.join(access.token.key_files)}, {counted(len(keys), 'key')}, valid"


def _access_list(access: AccessSettings) -> Iterator[str]:
    from gateway.access.access_list import AccessList

    rules = AccessList.read_for(Path(access.access_file), access.bind_client_identifier)
    yield f"access list: {access.access_file}, {counted(len(rules.rules), 'rule')}, valid"


def _certificates(listener: ListenerSettings | MqListenerSettings) -> Iterator[str]:
    """Checks the certificates of a listener, which must fit their keys and be valid today."""
    from gateway.listener.certificate_files import today
    from gateway.listener.tls import load_tls

    for pair in load_tls(listener.tls, "").pairs:
        pair.check_time(today())
        hosts = ", ".join(pair.names)
        until = f"valid until {pair.expires:%Y-%m-%d}"
        yield f"listener {listener.name}: certificate {pair.certificate} for {hosts}, its key fits, {until}"


def _warnings_about_rules(access: AccessSettings) -> Iterator[str]:
    from gateway.access.access_list import AccessList

    for number, rule in enumerate(AccessList.read(Path(access.access_file)).rules if access.access_file else (), 1):
        if rule.names_a_share:
            yield (
                f"access list: rule#{number} names $share; for MQTT 5 rules check the filter behind the group's name"
            )


def _warnings_about_copies(audit: AuditSettings) -> Iterator[str]:
    if not (audit.enabled and audit.copy_folder):
        return
    with suppress(PermissionError):  # perhaps only the gateway's user may look there
        if not Path(audit.copy_folder).is_dir():
            yield f"audit.copy_folder: there is no folder {audit.copy_folder}; copying begins once it exists"


def _keys(settings: Settings) -> Iterator[str]:
    """The key that signs digests, and the key of personal data, if there is a trail that needs them."""
    from gateway.audit_trail.digests import key_in_force
    from gateway.audit_trail.exporter import TRAIL_FOLDER
    from gateway.audit_trail.keys.personal_key import check_personal_key
    from gateway.audit_trail.keys.signing_key import check_key, check_token
    from gateway.audit_trail.plan import TrailPlan
    from spark_audit.trail.signature import algorithm_of

    if not settings.audit.enabled:
        return
    plan = TrailPlan.of(settings)
    in_force = key_in_force(settings.data / TRAIL_FOLDER)
    if plan.signing_token is None:
        public_key = check_key(Path(plan.signing_key), in_force)
        told = f"{algorithm_of(public_key)}, public key {public_key}" if public_key else "made at the first start"
        yield f"signing key: {plan.signing_key}, {told}"
    else:
        former = plan.former_signing_token
        check_token(
            Path(plan.signing_key), plan.signing_token.public_key, in_force, former.public_key if former else ""
        )
        yield _token(plan.signing_token)
        if former is not None:
            is_due = in_force == former.public_key
            yield f"former {_token(former)}; {'it hands over at the next start' if is_due else 'it is not in force'}"
    if plan.personal_key:
        is_there = check_personal_key(Path(plan.personal_key), in_force)
        yield f"personal key: {plan.personal_key}, {'valid' if is_there else 'made at the first start'}"


def _token(place: "KeyPlace") -> str:
    """What a token or an agent says, which may be away. Raises ConfigurationError where it has another key."""
    from gateway.audit_trail.keys.remote_key import KeyAway, remote_key
    from spark_audit.trail.signature import algorithm_of

    try:
        there = remote_key(place).public_keys()
    except KeyAway as error:
        return f"signing key: {place.type}, away, so digests are countersigned later: {error}"
    if place.public_key not in there:
        has = f"it has {', '.join(there) or 'none'}, and not {place.public_key}"
        raise ConfigurationError("audit.signing_token.public_key", (has,), "name the public key that is there")
    return f"signing key: {place.type}, {algorithm_of(place.public_key)}, public key {place.public_key}"


def _passwords(settings: Settings) -> Iterator[str]:
    from gateway.channels.connections import password_of
    from mq_adapters.reasons import QueueManagerError

    for target in settings.target:
        if not target.password_file:
            continue
        source = f"target.{target.name}.password_file"
        try:
            password = password_of(target)
        except QueueManagerError as error:
            raise ConfigurationError(source, (error.operation,), "let the gateway's user read it") from None
        if not password:
            hint = "write the password into its first line"
            raise ConfigurationError(source, (f"{target.password_file}: its first line is empty",), hint)
        yield f"password of target {target.name}: {target.password_file}, valid"


def _settings_of_git(witness: WitnessSettings) -> Iterator[str]:
    if witness.git_settings_file:
        with Path(witness.git_settings_file).open("rb"):
            yield f"witness {witness.name}: settings of git {witness.git_settings_file}, readable"


def _credentials(witness: WitnessSettings) -> Iterator[str]:
    if witness.credentials_file:
        with Path(witness.credentials_file).open("rb"):
            yield f"witness {witness.name}: credentials {witness.credentials_file}, readable"


def _authority(witness: WitnessSettings) -> Iterator[str]:
    from spark_audit.verify.time_stamp import UnusableAuthority, read_authority

    try:
        count = counted(len(read_authority(Path(witness.authority_file))), "certificate")
    except UnusableAuthority as error:
        raise ConfigurationError("", (str(error),), "name the file that the authority publishes") from None
    yield f"witness {witness.name}: time-stamping authority {witness.authority_file}, {count}"


def _warnings_about(target: TargetSettings) -> Iterator[str]:
    from gateway.channels.connections import password_of
    from mq_adapters.reasons import QueueManagerError

    if target.password_environment:
        try:
            password_of(target)
        except QueueManagerError:
            yield (
                f"target {target.name}: environment variable {target.password_environment} is not set here; the gateway"
                f" needs it in its own environment"
            )
    yield from _missing_repository(target)


def _missing_repository(target: TargetSettings) -> Iterator[str]:
    repository = target.key_repository
    is_native = target.binding == "native"
    endings = _NATIVE_ENDINGS if is_native else _REPOSITORY_ENDINGS
    if repository and not any(Path(repository + ending).is_file() for ending in endings):
        names = f"{repository}.pem" if is_native else f"{repository}.kdb or {repository}.p12"
        yield f"target {target.name}: there is no key repository {names}"
