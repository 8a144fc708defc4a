"""TLS of one listener: a context for each host name that clients ask for, made anew when its files change.

TLS 1.2 and 1.3, without renegotiation and compression. With TLS 1.2 the gateway allows only suites with forward secrecy
and authenticated encryption, unless the configuration names others. All suites of TLS 1.3 are of that kind.
"""

import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509

from gateway.access.reloading import WatchedFile
from gateway.access.text_file import UnreadableFile
from gateway.config.error import ConfigurationError
from gateway.config.listeners import TlsSettings
from gateway.listener.certificate_files import Pair, read_certificates, read_pair, today, validity_problem
from gateway.listener.client_certificates import Authorities

_log = logging.getLogger(__name__)

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
#: ALPN, by transport: IANA's names for MQTT and for HTTP. A WebSocket begins with HTTP.
ALPN: Final = {"tcp": "mqtt", "websocket": "http/1.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTls:
    """The contents of a listener's files: its contexts, certificates, and authorities of clients."""

    context: ssl.SSLContext
    pairs: tuple[Pair, ...]
    authorities: Authorities


def load_tls(tls: TlsSettings, alpn: str) -> LoadedTls:
    """Reads all files. Raises ConfigurationError if a file is wrong. An expired certificate is no error here.

    `alpn`: the protocol that the listener chooses if a client offers several; "": it looks at none.
    """
    pair = read_pair(Path(tls.certificate), Path(tls.key))
    named = {each.name: read_pair(Path(each.certificate), Path(each.key)) for each in tls.server_name}
    authorities = Authorities(_read_authorities(Path(tls.client_authority)) if tls.client_authority else ())
    context = _context(pair, tls, alpn)
    if named:
        by_name = {name: _context(each, tls, alpn) for name, each in named.items()}
        context.sni_callback = lambda tls_object, name, _context: _choose(by_name, tls_object, name)
    return LoadedTls(context=context, pairs=(pair, *named.values()), authorities=authorities)


def _read_authorities(path: Path) -> tuple[x509.Certificate, ...]:
    """Reads the certificates that are valid now, at least one."""
    problems = {certificate: validity_problem(certificate, today()) for certificate in read_certificates(path)}
    usable = tuple(certificate for certificate, problem in problems.items() if not problem)
    if not usable:
        raise ConfigurationError(
            str(path), (next(iter(problems.values())),), "no client's certificate could be accepted"
        )
    return usable


def _context(pair: Pair, tls: TlsSettings, alpn: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[tls.minimum_version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    if alpn:
        context.set_alpn_protocols([alpn])
    try:
        context.set_ciphers(tls.ciphers or _CIPHERS)
    except ssl.SSLError:
        raise ConfigurationError(
            "ciphers", (f"{tls.ciphers!r} names no cipher suite",), "'openssl ciphers LIST' says what a list means"
        ) from None
    try:
        context.load_cert_chain(pair.certificate, pair.key, password="")  # so OpenSSL never asks for a password
    except (ssl.SSLError, OSError) as error:
        raise _refused(str(pair.certificate), error) from None
    context.verify_mode = _VERIFY[tls.client_certificate]
    if tls.client_authority:
        try:
            context.load_verify_locations(tls.client_authority)
        except (ssl.SSLError, OSError) as error:
            raise _refused(tls.client_authority, error) from None
    return context


def _refused(source: str, error: OSError) -> ConfigurationError:
    """The ConfigurationError for an error of OpenSSL, or of the system, about a file."""
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    problem = f"is refused: {(reason or str(error)).lower().replace('_', ' ')}"
    kind = ConfigurationError if isinstance(error, ssl.SSLError) else UnreadableFile
    return kind(source, (problem,), "OpenSSL does not take it")


def _choose(by_name: Mapping[str, ssl.SSLContext], tls_object: ssl.SSLObject, name: str | None) -> None:
    """Chooses the context for a host name, or the context for `*.` and its domain, if there is one (SNI, RFC 6066)."""
    asked = (name or "").lower().rstrip(".")
    context = by_name.get(asked) or by_name.get(f"*.{asked.partition('.')[2]}")
    if context is not None:
        tls_object.context = context


class Certificates:
    """The certificates of one listener. The constructor raises ConfigurationError if a file is wrong."""

    def __init__(self, listener_name: str, tls: TlsSettings, alpn: str) -> None:
        """`alpn` as in `load_tls`."""
        self._listener_name = listener_name
        self._tls, self._alpn = tls, alpn
        named = [path for each in tls.server_name for path in (each.certificate, each.key)]
        paths = [Path(path) for path in (tls.certificate, tls.key, tls.client_authority, *named) if path]
        #: Made before the first reading, so that it notices every change.
        self.watched = WatchedFile(paths[0], self._read_again, also=tuple(paths[1:]))
        self._loaded = load_tls(tls, alpn)
        #: Called with the remaining authorities of clients when one authority has gone.
        self.on_lost_authority: Callable[[Authorities], None] = lambda _authorities: None
        self._tell(self._loaded)

    def context(self) -> ssl.SSLContext:
        """The context of a handshake that begins now."""
        return self._loaded.context

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The listener's own certificates with their keys."""
        return self._loaded.pairs

    def _read_again(self) -> Callable[[], None]:
        """Runs in a thread. An expired certificate does not replace a valid one."""
        loaded = load_tls(self._tls, self._alpn)
        for pair in loaded.pairs:
            pair.check_time(today())

        def take_up() -> None:
            before, self._loaded = self._loaded.authorities, loaded
            self._tell(loaded)
            if loaded.authorities.lacks_one_of(before):
                self.on_lost_authority(loaded.authorities)

        return take_up

    def _tell(self, loaded: LoadedTls) -> None:
        for pair in loaded.pairs:
            problem = validity_problem(pair.chain[0], today())
            level = logging.WARNING if problem else logging.INFO
            _log.log(
                level,
                "certificate read listener=%s file=%s expires=%s problem=%s",
                self._listener_name,
                str(pair.certificate),
                f"{pair.expires:%Y-%m-%dT%H:%M:%SZ}",
                problem or "none",
            )
