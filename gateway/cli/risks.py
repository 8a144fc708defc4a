"""The table of risks. `rfhbridge check` warns of each, and with --strict it ends with 1 if there is one.

To add a risk, write a function that finds it, and a row. The reference page comes from the rows, and a test plants
each.
"""

import ipaddress
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from gateway.config import Address, Settings
from gateway.config.listeners import ListenerSettings
from mq_adapters.kernel_clock import UNKNOWN, read_clock

#: A certificate that ends within this time is about to expire.
EXPIRY_WARNING: Final = timedelta(days=30)
_EVERYTHING: Final = ("#",)
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of the search: the settings, and the file that they come from, if there is one."""

    settings: Settings
    file: Path | None = None

    @property
    def is_on_a_network(self) -> bool:
        """Whether another machine reaches a port for MQTT."""
        return not all(is_of_this_machine(listener.address) for listener in self.settings.all_listeners)


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """A row. `find` returns a sentence for each place that has the risk.

    `counts_on_networks`: without --strict the risk is named only if another machine reaches a port. `is_logged`: the
    settings alone show the risk, and a gateway logs it at its start.
    """

    name: str
    looks_at: str
    meaning: str
    what_to_do: str
    find: Callable[[Subject], Iterator[str]]
    counts_on_networks: bool = False
    is_logged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRisk:
    """A risk in one place."""

    risk: Risk
    sentence: str


def found_risks(subject: Subject, *, strict: bool) -> list[FoundRisk]:
    """Every risk of the table with its places. The files must have been read without errors before."""
    is_exposed = strict or subject.is_on_a_network
    rows = [row for row in RISKS if is_exposed or not row.counts_on_networks]
    return [FoundRisk(risk=row, sentence=sentence) for row in rows for sentence in row.find(subject)]


# -- what finds them ---------------------------------------------------------------------------------------------------


def is_of_this_machine(address: Address) -> bool:
    """Whether no other machine reaches an address."""
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return address.host == "localhost"


def _anonymous_ports(subject: Subject) -> Iterator[str]:
    settings = subject.settings
    for listener in settings.listeners:
        if is_of_this_machine(listener.address) or not _admits_strangers(listener, settings):
            continue
        where, access = f"listener {listener.name}, {listener.listen}", settings.access
        if not access.access_file and (access.publish, access.subscribe) == (_EVERYTHING, _EVERYTHING):
            yield f"{where}: everybody who reaches it may publish and subscribe anything (set access.password_file)"
        else:
            yield f"{where}: clients without a user name may connect, and only the rules of [access] limit them"


def _admits_strangers(listener: ListenerSettings, settings: Settings) -> bool:
    """Whether a client without a name and without a certificate may connect."""
    from gateway.listener.rules import ListenerRules

    rule = ListenerRules.of(listener, settings).allows_anonymous
    allows = settings.access.allows_anonymous if rule is None else rule
    return allows and listener.tls.client_certificate != "required"


def _passwords_in_clear(subject: Subject) -> Iterator[str]:
    settings = subject.settings
    for listener in settings.listeners:
        is_clear = settings.access.tells_users and not listener.is_secure and not listener.proxy_protocol
        if is_clear and not is_of_this_machine(listener.address):
            where = f"listener {listener.name}, {listener.listen}"
            yield f"{where}: passwords cross the network in clear (name a tls.certificate)"
    for each in settings.mq_listener:
        if each.plain_passwords and not each.is_secure and not is_of_this_machine(each.address):
            where = f"mq_listener {each.name}, {each.listen}"
            yield f"{where}: passwords cross the network in clear (name a tls.certificate)"


def _open_http(subject: Subject) -> Iterator[str]:
    http = subject.settings.http
    if http.enabled and not is_of_this_machine(http.address):
        yield f"http, {http.listen}: everybody who reaches this port may read the metrics and convert messages"


def _proxies_of_anybody(subject: Subject) -> Iterator[str]:
    for listener in subject.settings.listeners:
        if listener.proxy_protocol and not listener.proxy_addresses and not is_of_this_machine(listener.address):
            yield (
                f"listener {listener.name}, {listener.listen}: everybody who reaches it may claim any address (name"
                " proxy_addresses)"
            )


def _files_of(subject: Subject) -> Iterator[tuple[str, Path]]:
    """Files and folders that only the operator may write, with their names for people."""
    settings = subject.settings
    if subject.file is not None and subject.file.is_file():
        yield "configuration", subject.file
    yield "data folder", settings.data
    if settings.access.access_file:
        yield "access list", Path(settings.access.access_file)
    for listener in settings.all_listeners:
        tls = listener.tls
        for name in (tls.certificate, tls.client_authority, *(server.certificate for server in tls.server_name)):
            if name:
                yield f"listener {listener.name}", Path(name)
    for witness in settings.audit.witness:
        if witness.authority_file:
            yield f"witness {witness.name}", Path(witness.authority_file)
    yield from _secrets_of(subject)


def _secrets_of(subject: Subject) -> Iterator[tuple[str, Path]]:
    """Files that only the gateway may read."""
    from gateway.access.token_keys import holds_secret

    settings, access = subject.settings, subject.settings.access
    if access.password_file:
        yield "password file", Path(access.password_file)
    yield from (("secret of tokens", path) for path in map(Path, access.token.key_files) if holds_secret(path))
    if settings.queue_manager.token_file:
        yield "tokens of applications", Path(settings.queue_manager.token_file)
    for listener in settings.all_listeners:
        for name in (listener.tls.key, *(server.key for server in listener.tls.server_name)):
            if name:
                yield f"listener {listener.name}", Path(name)
    for target in settings.target:
        if target.password_file:
            yield f"target {target.name}", Path(target.password_file)
    yield from _secrets_of_the_trail(settings)


def _secrets_of_the_trail(settings: Settings) -> Iterator[tuple[str, Path]]:
    from gateway.audit_trail.plan import TrailPlan

    if settings.audit.enabled:
        plan = TrailPlan.of(settings)
        if plan.signing_token is None:
            yield "signing key", Path(plan.signing_key)
        for token in (plan.signing_token, plan.former_signing_token):
            if token is not None and token.pin_file:
                yield "PIN of the signing token", Path(token.pin_file)
        if plan.personal_key:
            yield "personal key", Path(plan.personal_key)
        for witness in plan.witnesses:
            for file in filter(None, (witness.git_settings_file, witness.credentials_file)):
                yield f"witness {witness.name}", Path(file)


def _mode(path: Path) -> int:
    """The permissions of a file; 0 if it does not exist, or may not be seen."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _writable_files(subject: Subject) -> Iterator[str]:
    told: set[Path] = set()
    for kind, path in _files_of(subject):
        folder = path.resolve().parent
        if (mode := _mode(path)) & _WRITABLE:
            yield f"{kind}: others may write {path} (mode {mode:03o}): chmod go-w it"
        mode = _mode(folder)
        if mode & _WRITABLE and not mode & stat.S_ISVTX and folder not in told:
            told.add(folder)
            yield f"{kind}: others may replace {path} (mode {mode:03o}): chmod go-w {folder}"


def _readable_secrets(subject: Subject) -> Iterator[str]:
    for kind, path in _secrets_of(subject):
        if (mode := _mode(path)) & stat.S_IRWXO:
            yield f"{kind}: {path} is open to everybody (mode {mode:03o}): chmod 600 it"


def _unbound_identifiers(subject: Subject) -> Iterator[str]:
    from gateway.access.access_list import AccessList

    access = subject.settings.access
    if not access.access_file or access.bind_client_identifier is True:
        return
    rules = AccessList.read(Path(access.access_file)).rules
    numbers = [number for number, rule in enumerate(rules, 1) if rule.trusts_client_identifier]
    if numbers:
        which = ", ".join(f"rule#{number}" for number in numbers)
        yield f"access list: {which} depends on the client identifier, and any user may take another's"


def _tokens_of_anybody(subject: Subject) -> Iterator[str]:
    token = subject.settings.access.token
    for key, holder in (("issuer", "another issuer"), ("audience", "another service")):
        if token.key_files and not getattr(token, key):
            yield f"access.token.{key}: it is not set, so the gateway also accepts tokens of the same key for {holder}"


def _expiring_certificates(subject: Subject) -> Iterator[str]:
    from gateway.listener.certificate_files import today
    from gateway.listener.tls import load_tls

    soon = today() + EXPIRY_WARNING
    for listener in subject.settings.all_listeners:
        for pair in load_tls(listener.tls, "").pairs if listener.is_secure else ():
            if pair.expires < soon:
                yield f"listener {listener.name}: certificate {pair.certificate} expires on {pair.expires:%Y-%m-%d}"


def _no_trail(subject: Subject) -> Iterator[str]:
    if not subject.settings.audit.enabled:
        yield "audit.enabled: it is false, so nothing can be proved later"


def _weak_signing(subject: Subject) -> Iterator[str]:
    from gateway.audit_trail.plan import TrailPlan

    settings = subject.settings
    if not settings.audit.enabled or settings.audit.signing_token.type:
        return
    key = Path(TrailPlan.of(settings).signing_key)
    if key.resolve().is_relative_to(settings.data.resolve()):
        yield f"audit.signing_key: {key} is beside the trail, so anybody with the folder can countersign another trail"


def _no_copy(subject: Subject) -> Iterator[str]:
    audit = subject.settings.audit
    if audit.enabled and not (audit.copy_folder or audit.digest_target or audit.witness):
        yield "audit: no digest is kept elsewhere, so anybody with the data folder can replace the trail"


def _short_locks(subject: Subject) -> Iterator[str]:
    audit = subject.settings.audit
    for witness in audit.witness:
        if witness.type == "s3" and witness.keep_days < audit.keep_days:
            yield (
                f"witness {witness.name}: a digest is locked for {witness.keep_days:g} days, and the trail is kept for"
                f" {audit.keep_days:g}"
            )


def _unsynchronised_clock(subject: Subject) -> Iterator[str]:
    clock = read_clock()
    if subject.settings.audit.enabled and clock.state != UNKNOWN and not clock.is_synchronised:
        yield "audit: nothing synchronises this machine's clock, and every digest of the trail says so"


RISKS: Final = (
    Risk(
        name="anonymous",
        looks_at="ports that other machines reach, and who may connect without a user name",
        meaning="A stranger may connect, and may publish and subscribe any topic that [access] does not forbid.",
        what_to_do="Set `access.password_file` or `[access.token]`, or `anonymous = false` for the listener.",
        find=_anonymous_ports,
        is_logged=True,
    ),
    Risk(
        name="passwords-in-clear",
        looks_at="ports without TLS that other machines reach, where passwords or tokens tell users apart",
        meaning="Anybody who listens on the network learns passwords.",
        what_to_do="Name `tls.certificate` and `tls.key` of the listener.",
        find=_passwords_in_clear,
        is_logged=True,
    ),
    Risk(
        name="open-http",
        looks_at="the address of `[http]`",
        meaning="HTTP has no passwords: everybody who reaches the port reads the metrics and converts messages.",
        what_to_do="Listen on 127.0.0.1, or put a proxy with passwords in front.",
        find=_open_http,
        is_logged=True,
    ),
    Risk(
        name="proxies",
        looks_at="ports with `proxy_protocol` that other machines reach",
        meaning="Everybody who reaches the port may claim any address, in the log, the trail and the limits.",
        what_to_do="Name the load balancers in `proxy_addresses`.",
        find=_proxies_of_anybody,
        is_logged=True,
    ),
    Risk(
        name="writable-files",
        looks_at="configuration, data folder, access list, users, keys, certificates, and the folders that hold them",
        meaning="Anybody who may write one of them controls the gateway, or signs for it.",
        what_to_do="`chmod go-w` the file and its folder.",
        find=_writable_files,
    ),
    Risk(
        name="readable-secrets",
        looks_at="password file, secrets and tokens, keys of listeners and of the trail, passwords of targets",
        meaning="Every user of the machine may read the secret.",
        what_to_do="`chmod 600` the file.",
        find=_readable_secrets,
    ),
    Risk(
        name="unbound-identifiers",
        looks_at="rules of the access list with `%c` or `client`, and `access.bind_client_identifier`",
        meaning="A user takes another's client identifier, and with it the topics that a rule gives it.",
        what_to_do="Set `bind_client_identifier = true`, or write the rules with `%u` and `user`.",
        find=_unbound_identifiers,
    ),
    Risk(
        name="tokens",
        looks_at="`access.token.issuer` and `access.token.audience`",
        meaning="A token that the same key signed for something else lets its holder in.",
        what_to_do="Set both to the values that your issuer writes into tokens for this gateway.",
        find=_tokens_of_anybody,
        counts_on_networks=True,
    ),
    Risk(
        name="expiring-certificates",
        looks_at=f"the certificates of listeners, {EXPIRY_WARNING.days} days ahead",
        meaning="From that day on no client connects.",
        what_to_do="Replace the certificate. A running gateway takes the new one up.",
        find=_expiring_certificates,
    ),
    Risk(
        name="no-trail",
        looks_at="`audit.enabled`",
        meaning="The gateway writes no audit trail.",
        what_to_do="Remove `enabled = false`.",
        find=_no_trail,
        counts_on_networks=True,
    ),
    Risk(
        name="weak-signing",
        looks_at="the place of `audit.signing_key`, unless there is an `[audit.signing_token]`",
        meaning="Anybody who gets the data folder, or a backup of it, gets the key that countersigns its digests.",
        what_to_do="Set `audit.signing_key` to a file outside the data folder, or use a token.",
        find=_weak_signing,
        counts_on_networks=True,
    ),
    Risk(
        name="no-copy-of-digests",
        looks_at="`audit.copy_folder`, `audit.digest_target` and `[[audit.witness]]`",
        meaning="Nothing outside this machine shows that the trail was replaced as a whole.",
        what_to_do="Name a witness or `audit.digest_target`, or an `audit.copy_folder` of another machine.",
        find=_no_copy,
        counts_on_networks=True,
    ),
    Risk(
        name="short-lock",
        looks_at="`keep_days` of witnesses of type s3, and `audit.keep_days`",
        meaning="Digests can be removed from the bucket while the trail still needs them.",
        what_to_do="Set `keep_days` of the witness to `audit.keep_days` or more.",
        find=_short_locks,
        is_logged=True,
    ),
    Risk(
        name="unsynchronised-clock",
        looks_at="the kernel's word on its clock, where there is a trail",
        meaning="Nobody can say how far the times of the trail are off.",
        what_to_do="Run an NTP client that tells the kernel; chrony does with its setting `rtcsync`.",
        find=_unsynchronised_clock,
        counts_on_networks=True,
    ),
)
