"""What a subscription of a session grants. Source: MQTT 5.0 sections 3.8.3.1 and 3.3.4."""

from typing import Final, NamedTuple


class GrantedOptions(NamedTuple):
    """The options of a level 5 subscription beside its QoS; `identifier` 0: none."""

    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0


class Entitlement(NamedTuple):
    """The rights of all matching subscriptions together; identifiers may repeat (MQTT 5.0 section 3.3.4)."""

    qos: int
    retain_as_published: bool
    identifiers: tuple[int, ...]


class SharedSubscription(NamedTuple):
    """A session's membership in a shared subscription; `topic_filter` is the whole `$share/GROUP/FILTER`."""

    topic_filter: str
    qos: int
    options: GrantedOptions


NO_OPTIONS: Final = GrantedOptions()
