"""Listeners: the addresses that MQTT clients connect to, each with its transport, rules and certificates."""

import ipaddress
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gateway.config.limits import Limit
from gateway.config.tables import MqttSettings
from gateway.config.values import MAXIMUM_WAIT_S, Address, ListenText, Table, listed

if TYPE_CHECKING:
    from gateway.config.settings import Settings

#: The name of the listener that `listen` describes.
DEFAULT_LISTENER: Final = "default"
DEFAULT_PATH: Final = "/mqtt"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,32}")
#: Letters, digits and hyphens, at most 63 a label (RFC 1123); a * may stand for the first label (RFC 6125).
_HOST_NAME: Final = re.compile(r"(\*\.)?[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*\.?")
_PATH: Final = re.compile(r"/[!-~]*")
#: The header Origin of a browser: a scheme, a host, and its port unless it is the scheme's own (RFC 6454).
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s]+/?|null")


def checked_listener_name(name: str) -> str:
    """The name of a listener; ValueError for one that it cannot have."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of a listener: 1 to 32 characters, letters, digits, . _ and -")
    return name


def _checked_host_name(name: str) -> str:
    if len(name) > 253 or not _HOST_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a host name such as mqtt.example.com or *.example.com")
    return name.lower().rstrip(".")


def _checked_path(path: str) -> str:
    if not _PATH.fullmatch(path) or "?" in path or "#" in path:
        raise ValueError(f"{path!r} is not a path of a URL: it must begin with / and have no blank, ? or #")
    return path


def _checked_origin(origin: str) -> str:
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(f"{origin!r} is not an origin of a web page: https://HOST or https://HOST:PORT")
    return origin


def _checked_listen(text: str) -> str:
    return str(Address.parse(text)) if text else ""


#: An address, or "" for none.
OptionalListenText = Annotated[str, AfterValidator(_checked_listen)]


def _checked_network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as problem:
        raise ValueError(f"{text!r} must be an address or a network: {problem}{_meant(text)}") from None


def _meant(text: str) -> str:
    """The network that an address with its length lies in, for people."""
    try:
        return f"; write '{ipaddress.ip_network(text, strict=False)}'"
    except ValueError:
        return ""


Networks = Annotated[tuple[Annotated[str, AfterValidator(_checked_network)], ...], BeforeValidator(listed)]


class ServerNameSettings(Table):
    """Another certificate for clients that ask for a host by name (SNI)."""

    name: Annotated[str, AfterValidator(_checked_host_name)] = Field(
        description="host that clients ask for, mqtt.example.com or *.example.com", examples=["mqtt.example.com"]
    )
    certificate: Annotated[str, Field(min_length=1)] = Field(
        description="PEM file of its certificate", examples=["mqtt.example.com.pem"]
    )
    key: Annotated[str, Field(min_length=1)] = Field(
        description="PEM file of that certificate's private key", examples=["mqtt.example.com.key"]
    )


ServerNames = Annotated[tuple[ServerNameSettings, ...], BeforeValidator(listed)]


class TlsSettings(Table):
    """TLS of one listener. A listener without a certificate has no TLS."""

    certificate: str = Field(
        default="", description='PEM file of the certificate, followed by those that signed it; "": no TLS'
    )
    key: str = Field(default="", description="PEM file of its private key, without a password")
    client_authority: str = Field(
        default="", description="PEM file of the authorities that sign certificates of clients"
    )
    client_certificate: Literal["none", "optional", "required"] = Field(
        default="none",
        description='whether clients show a certificate: "none": not asked; "optional": asked; "required": refused'
        " without",
    )
    user_from_certificate: Literal["", "common_name", "subject"] = Field(
        default="",
        description='the part of a client\'s certificate that names its user: "common_name", or "subject" as'
        ' "CN=pump-7,O=Plant"; "": none',
    )
    minimum_version: Literal["1.2", "1.3"] = Field(default="1.2", description='oldest version of TLS: "1.2" or "1.3"')
    ciphers: str = Field(
        default="", description='cipher suites of TLS 1.2 as OpenSSL lists them; "": ECDHE with AES-GCM or ChaCha20'
    )
    server_name: ServerNames = Field(default=(), description="other certificates by the host that a client asks for")

    @model_validator(mode="after")
    def _checked_together(self) -> Self:
        if not self.certificate:
            given = [
                key for key in type(self).model_fields if getattr(self, key) != type(self).model_fields[key].default
            ]
            if given:
                raise ValueError(f"certificate: is missing; {given[0]} needs TLS, and TLS needs a certificate")
            return self
        if not self.key:
            raise ValueError("key: is missing; name the file of the certificate's private key")
        if self.client_certificate == "none" and (self.client_authority or self.user_from_certificate):
            raise ValueError("client_certificate: must be 'optional' or 'required' for clients to show one")
        if self.client_certificate != "none" and not self.client_authority:
            raise ValueError(
                "client_authority: is missing; name the file of the authorities of the clients' certificates"
            )
        names = [server.name for server in self.server_name]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ValueError(f"server_name#{index + 1}.name: there is a certificate for {name} already")
        return self


class ListenerSettings(Table):
    """An address that MQTT clients connect to; one [[listener]] for each."""

    name: Annotated[str, AfterValidator(checked_listener_name)] = Field(
        description="name of the listener in the log", examples=["secure"]
    )
    listen: ListenText = Field(
        description="address, HOST:PORT or [IPV6]:PORT; port 0: any free one", examples=["0.0.0.0:8883"]
    )
    transport: Literal["tcp", "websocket"] = Field(
        default="tcp", description='what carries MQTT: "tcp" or "websocket", with TLS where a certificate is named'
    )
    path: Annotated[str, AfterValidator(_checked_path)] = Field(
        default=DEFAULT_PATH, description="path of the URL of a websocket"
    )
    origins: Annotated[tuple[Annotated[str, AfterValidator(_checked_origin)], ...], BeforeValidator(listed)] = Field(
        default=(),
        description="origins of web pages that may open a websocket, https://HOST each; none: every page may",
    )
    maximum_message_bytes: int = Field(
        default=4_194_304, ge=128, description="bytes of the largest message of a websocket"
    )
    versions: Annotated[tuple[Literal["3.1", "3.1.1", "5"], ...], BeforeValidator(listed)] = Field(
        default=(), description="versions of MQTT that may connect here; none: those of [mqtt]"
    )
    anonymous: Literal[True, False, "access"] = Field(
        default="access", description='whether clients without a user name may connect here; "access": as [access] says'
    )
    maximum_connections: int = Limit.CONNECTIONS_OF_LISTENER.field
    repeat_after_s: float = Field(
        default=0.0,
        ge=0,
        le=MAXIMUM_WAIT_S,
        allow_inf_nan=False,
        description="seconds after which the gateway repeats an unanswered packet to a client of MQTT 3.1; 0: never",
    )
    proxy_protocol: bool = Field(
        default=False,
        description="whether load balancers in front send the PROXY protocol, version 2; no other host may reach the"
        " port",
    )
    proxy_addresses: Networks = Field(
        default=(), description="addresses and networks (10.0.0.0/8) of load balancers; none: any may be one"
    )
    tls: TlsSettings = TlsSettings()

    @property
    def address(self) -> Address:
        """`listen` as host and port."""
        return Address.parse(self.listen)

    def served_versions(self, mqtt: MqttSettings) -> tuple[str, ...]:
        """The versions of MQTT that may connect here."""
        return self.versions or mqtt.versions

    @property
    def is_secure(self) -> bool:
        """Whether its connections are encrypted."""
        return bool(self.tls.certificate)

    @model_validator(mode="after")
    def _checked_transport(self) -> Self:
        if self.transport == "tcp" and (self.path != DEFAULT_PATH or self.origins):
            raise ValueError("path, origins: belong to transport 'websocket'")
        if self.proxy_addresses and not self.proxy_protocol:
            raise ValueError("proxy_addresses: belong to proxy_protocol = true")
        return self


def listener_problems(settings: "Settings") -> Iterator[str]:
    """Problems of listeners: a name or address twice, no listener at all, repeats without clients of MQTT 3.1."""
    if not settings.listeners:
        yield "listen: must be an address, because there is no [[listener]]"
    names = {DEFAULT_LISTENER} if settings.listen else set()
    taken = [(Address.parse(settings.listen), DEFAULT_LISTENER)] if settings.listen else []
    for index, listener in enumerate(settings.listener):
        if listener.name in names:
            yield f"listener#{index + 1}.name: there is a listener {listener.name!r} already"
        for address, other in taken:
            if listener.address.takes_port_of(address):
                yield f"listener#{index + 1}.listen: {listener.listen} {why_taken(listener.address, address, other)}"
        if listener.repeat_after_s and "3.1" not in listener.served_versions(settings.mqtt):
            yield (
                f"listener#{index + 1}.repeat_after_s: is for clients of MQTT 3.1, which may not connect here;"
                ' leave it out, or name "3.1" among the versions'
            )
        names.add(listener.name)
        taken.append((listener.address, listener.name))


def why_taken(wanted: Address, taken: Address, listener: str) -> str:
    """Why a listener cannot have an address that another listener has."""
    if wanted == taken:
        return f"is the address of listener {listener!r} already"
    return f"cannot be opened beside {taken} of listener {listener!r}: one stands for every address, also the other"
