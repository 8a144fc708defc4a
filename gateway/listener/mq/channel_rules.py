"""Who may use a channel of a listener: the tables [[mq_listener.channel]], of which the first that fits decides."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.config.mq_listeners import MqChannelSettings
from gateway.listener.rules import Network
from mq_adapters.embedded.rights import covers


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRule:
    """One table. `key` is its name in the configuration."""

    key: str
    name: str
    users: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()

    def admits_user(self, user: str) -> bool:
        """Whether a user may connect."""
        return not self.users or any(covers(pattern, user) for pattern in self.users)

    def admits_address(self, address: str) -> bool:
        """Whether programs of an address may connect. An IPv4 address that is mapped into IPv6 counts as itself."""
        if not self.networks:
            return True
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return any((mapped or found) in network for network in self.networks)


#: Of a listener without tables.
EVERYBODY = ChannelRule(key="", name="*")


class ChannelRules:
    """The tables of one listener."""

    def __init__(self, tables: Sequence[MqChannelSettings]) -> None:
        self._rules = tuple(
            ChannelRule(
                key=f"channel#{number}",
                name=table.name,
                users=table.users,
                networks=tuple(map(ipaddress.ip_network, table.addresses)),
            )
            for number, table in enumerate(tables, 1)
        )

    def of(self, channel: str) -> ChannelRule | None:
        """The table that decides about a channel; None: no table fits, and nobody may use it."""
        if not self._rules:
            return EVERYBODY
        return next((rule for rule in self._rules if covers(rule.name, channel)), None)
