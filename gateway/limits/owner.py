"""Owners of clients, to whose accounts budgets charge them (gateway/limits/budgets.py)."""

from typing import NamedTuple

from mq_adapters.embedded.socket.pace import ApplicationAccount


class Owner(NamedTuple):
    """The owner of a client: its user, or without a user the network that it comes from (addresses.network_of).

    `application`: the MQ application that anybody from the network may be. It has amounts of its own there.
    """

    user: str | None
    network: bytes = b""
    application: str = ""

    @classmethod
    def of_application(cls, account: ApplicationAccount) -> "Owner":
        """An MQ application. It counts as a user, and no MQTT user has a name with U+0000 (MQTT-1.5.4-2)."""
        if account.network:
            return cls(None, account.network, account.name)
        return cls(f"\0{account.name}")
