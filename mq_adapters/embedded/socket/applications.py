"""Who may use the gateway's socket: its own user with every right, and applications with rights of their own.

The kernel tells the user that an application runs as (SO_PEERCRED). An application may show a token in HELLO instead.
Then the token alone decides, and the rights of the user do not count.
"""

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mq_adapters.embedded.rights import EVERYTHING, NO_TOPICS, Rights, TopicRights, covers
from mq_adapters.embedded.socket.pace import ApplicationAccount
from mq_adapters.embedded.socket.peer import user_identifier, user_name
from mq_adapters.reasons import QueueManagerError, ReasonCode

_ROOT: Final = 0
_CONNECT: Final = "connect to the gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRole:
    """An application of the configuration: its rights on queues and topics, and the numbers of its users.

    `access_users`: patterns of users of [access] who may be it, as MQ clients.
    """

    name: str
    rights: Rights
    topics: TopicRights = NO_TOPICS
    user_ids: frozenset[int] = frozenset()
    access_users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedApplication:
    """An application that may connect: its user in MQMD.UserIdentifier, its operator in the trail, and its rights.

    `role` is "" for the gateway's own user. `account` is charged for the work of all its connections.
    """

    user: str
    operator: str
    rights: Rights
    account: ApplicationAccount
    role: str = ""
    topics: TopicRights = NO_TOPICS


class Applications:
    """The applications of a gateway. `token_digests` gives the SHA-256 of each role's present token."""

    def __init__(
        self,
        roles: tuple[ApplicationRole, ...] = (),
        token_digests: Callable[[], Mapping[str, bytes]] = dict,
    ) -> None:
        self._roles = {role.name: role for role in roles}
        self._token_digests = token_digests

    @staticmethod
    def is_owner(user_id: int) -> bool:
        """Whether a user may do everything: root, or the gateway's own user, who can open the store anyway."""
        return user_id in (os.geteuid(), _ROOT)

    def admitted(self, user_id: int, token: str) -> AdmittedApplication:
        """The application with this user number and this token ("" for none). Raises 2035 for a stranger."""
        if token:
            role, where = self._role_of(token), user_name(user_id)
            return _admitted(role, where, ApplicationAccount(f"{role.name} ({where})"))
        if self.is_owner(user_id):
            return _of_user(user_identifier(user_id), user_name(user_id))
        for role in self._roles.values():
            if user_id in role.user_ids:
                return _of_user(user_identifier(user_id), user_name(user_id), role)
        raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, f"{_CONNECT} as user {user_name(user_id)}")

    @property
    def has_access_users(self) -> bool:
        """Whether a user of [access] may be an application."""
        return any(role.access_users for role in self._roles.values())

    def has(self, name: str) -> bool:
        """Whether there is an application of that name."""
        return name in self._roles

    def with_token(self, token: str, where: str) -> AdmittedApplication | None:
        """The application that has this token; None if none has it. `where` is the program's address."""
        role = self._find_role(token)
        return None if role is None else _admitted(role, where, ApplicationAccount(role.name))

    def of_access_user(self, user: str, where: str) -> AdmittedApplication:
        """The application that a user of [access] is. 2035 if it is none."""
        for role in self._roles.values():
            if any(covers(pattern, user) for pattern in role.access_users):
                return _admitted(role, f"{user}, {where}", ApplicationAccount(f"{role.name} ({user})"))
        raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, f"{_CONNECT} as a user that no application is")

    def without_password(self, name: str, where: str, network: bytes) -> AdmittedApplication:
        """The application of that name, which a channel's MCAUSER gives to all its clients. 2035 if there is none.

        Each `network` has an account of its own.
        """
        role = self._roles.get(name)
        if role is None:
            raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, f"{_CONNECT} as {name!r}, which is no application")
        return _admitted(role, where, ApplicationAccount(role.name, network))

    def _role_of(self, token: str) -> ApplicationRole:
        role = self._find_role(token)
        if role is None:
            raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, f"{_CONNECT} with a token that no application has")
        return role

    def _find_role(self, token: str) -> ApplicationRole | None:
        """The role that has this token. All digests are compared, so that the time reveals nothing."""
        digest = hashlib.sha256(token.encode()).digest()
        found = [name for name, known in self._token_digests().items() if hmac.compare_digest(known, digest)]
        return self._roles.get(found[0]) if found else None


def _admitted(role: ApplicationRole, where: str, account: ApplicationAccount) -> AdmittedApplication:
    """An application that is known by its token or its channel. `where` is its address, or the user that it runs as."""
    operator = f"{role.name} ({where})"
    return AdmittedApplication(
        user=role.name, operator=operator, rights=role.rights, account=account, role=role.name, topics=role.topics
    )


def _of_user(user: str, operator: str, role: ApplicationRole | None = None) -> AdmittedApplication:
    """An application that is known by the user that it runs as. Without a role it is the gateway's own user."""
    account = ApplicationAccount(operator)
    if role is None:
        return AdmittedApplication(user=user, operator=operator, rights=EVERYTHING, account=account)
    return AdmittedApplication(
        user=user, operator=operator, rights=role.rights, account=account, role=role.name, topics=role.topics
    )
