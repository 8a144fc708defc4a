"""The applications of the configuration, as the gateway's socket knows them: users by number, rights by queue."""

import pwd
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gateway.access.filters import covers
from gateway.config import ConfigurationError, Settings
from mq_adapters.embedded.rights import ContextRight, Rights
from mq_adapters.embedded.socket.applications import ApplicationRole, Applications
from mq_adapters.embedded.socket.server import ApplicationSocket

_WILDCARDS: Final = frozenset("+#")


class ApplicationTopics:
    """The topics of an application: filters of what it may publish to, and of what it may subscribe to."""

    def __init__(self, publish: Iterable[str], subscribe: Iterable[str]) -> None:
        self._publish = tuple(each.split("/") for each in publish)
        self._subscribe = tuple(each.split("/") for each in subscribe)

    def may_publish(self, topic: str) -> bool:
        """See TopicRights. A name with wildcards is no topic name."""
        return not _WILDCARDS & set(topic) and any(covers(allowed, topic.split("/")) for allowed in self._publish)

    def may_subscribe(self, topic_filter: str) -> bool:
        """See TopicRights."""
        return any(covers(allowed, topic_filter.split("/")) for allowed in self._subscribe)


def roles_of(settings: Settings) -> tuple[ApplicationRole, ...]:
    """A role for each [[application]]. ConfigurationError for a user that there is not, or that needs no table."""
    return tuple(
        ApplicationRole(
            name=application.name,
            rights=Rights(
                put=application.put,
                get=application.get,
                browse=application.browse,
                admin=application.admin,
                context=ContextRight[application.set_context.upper()],
            ),
            topics=ApplicationTopics(application.publish, application.subscribe),
            access_users=application.access_users,
            user_ids=frozenset(_user_id(application.name, user) for user in application.users),
        )
        for application in settings.application
    )


def application_socket(settings: Settings) -> ApplicationSocket | None:
    """The second socket, where the configuration names its folder."""
    own = settings.queue_manager
    if not own.socket_folder:
        return None
    return ApplicationSocket(
        folder=Path(own.socket_folder), maximum_connections_per_user=own.maximum_connections_per_user
    )


def _user_id(application: str, user: str) -> int:
    try:
        user_id = int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError:
        problem, hint = f"there is no user {user!r} on this system", "make the user, or name its number"
        raise ConfigurationError(f"application {application}, users", (problem,), hint) from None
    if Applications.is_owner(user_id):
        problem = f"{user!r} may do everything: it is root or the gateway's own user"
        hint = "run the application as another user, or give it a token"
        raise ConfigurationError(f"application {application}, users", (problem,), hint)
    return user_id
