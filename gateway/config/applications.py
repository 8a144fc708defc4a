"""The tables [[application]] of the configuration file: programs that use the queues, and what each may do."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gateway.config.values import Table, TopicFilters, listed
from mq_adapters.embedded.rights import covers

if TYPE_CHECKING:
    from gateway.config.settings import Settings

#: It becomes MQMD.UserIdentifier, which has 12 characters.
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,12}")
_PATTERN: Final = re.compile(r"[A-Za-z0-9./_%]{1,48}|[A-Za-z0-9./_%]{0,47}\*")
#: That of a user of the password file (gateway/access/users.py).
_LONGEST_USER: Final = 256
#: User names of Linux (useradd(8)), or a number.
_SYSTEM_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}\$?")


def _checked_application_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of an application: 1 to 12 characters, letters, digits, . _ and -")
    return name


def _checked_queue_pattern(pattern: str) -> str:
    if not _PATTERN.fullmatch(pattern):
        raise ValueError(f"{pattern!r} must be the name of a queue, or its beginning and *")
    return pattern


def _checked_system_user(name: str) -> str:
    if not _SYSTEM_USER.fullmatch(name):
        raise ValueError(f"{name!r} is not a user of the operating system: a name or a number")
    return name


def checked_user_pattern(pattern: str) -> str:
    """The name of a user or of an application, or its beginning and `*`. ValueError says what is wrong."""
    name = pattern.removesuffix("*")
    if "*" in name or ":" in name or not pattern or len(pattern) > _LONGEST_USER or not pattern.isprintable():
        raise ValueError(f"{pattern!r} must be the name of a user, or its beginning and *")
    return pattern


#: Names of users, or their beginnings and `*`.
UserPatterns = Annotated[tuple[Annotated[str, AfterValidator(checked_user_pattern)], ...], BeforeValidator(listed)]
QueuePatterns = Annotated[tuple[Annotated[str, AfterValidator(_checked_queue_pattern)], ...], BeforeValidator(listed)]
SystemUsers = Annotated[tuple[Annotated[str, AfterValidator(_checked_system_user)], ...], BeforeValidator(listed)]


class ApplicationSettings(Table):
    """A program that uses the gateway's queues through its socket, and its rights; one [[application]] for each."""

    name: Annotated[str, AfterValidator(_checked_application_name)] = Field(
        description="name of the application, that of its token too", examples=["billing"]
    )
    users: SystemUsers = Field(
        default=(), description="users of the operating system that it runs as, names or numbers; none: only its token"
    )
    access_users: UserPatterns = Field(
        default=(),
        description="users of [access], of the password file or of tokens, who may be it as MQ clients (mq_listener):"
        " names, or their beginning and *",
    )
    put: QueuePatterns = Field(default=(), description="queues that it may put on: a name, or its beginning and *")
    get: QueuePatterns = Field(default=(), description="queues that it may get from")
    browse: QueuePatterns = Field(default=(), description="queues that it may browse")
    admin: QueuePatterns = Field(
        default=(),
        description="queues that it may define, alter, clear and delete; with * also every other object, channels and"
        " clients",
    )
    publish: TopicFilters = Field(
        default=(), description="topic filters that it may publish to as an MQ client (mq_listener)"
    )
    subscribe: TopicFilters = Field(
        default=(), description="topic filters that it may subscribe to as an MQ client (mq_listener)"
    )
    set_context: Literal["none", "identity", "all"] = Field(
        default="none",
        description='context that it may set in its messages as an MQ client: "identity", UserIdentifier,'
        ' AccountingToken and ApplIdentityData; "all", also who put them; for gateways and other programs that put'
        " others' messages",
    )


def application_problems(settings: "Settings") -> Iterator[str]:
    """Problems of applications: two of the same name or user, or one that nobody can be."""
    names: set[str] = set()
    taken: dict[str, str] = {}
    for number, application in enumerate(settings.application, 1):
        if application.name in names:
            yield f"application#{number}.name: there is an application {application.name!r} already"
        names.add(application.name)
        for user in application.users:
            if taken.setdefault(user, application.name) != application.name:
                yield f"application#{number}.users: {user!r} is a user of application {taken[user]!r} already"
        if not (application.users or application.access_users or settings.queue_manager.token_file):
            yield (
                f"application#{number}: nobody can be it; name its users, its access_users, or"
                " queue_manager.token_file with its token"
            )
        yield from _problems_of_access_users(settings, number - 1)
    if settings.queue_manager.token_file and not settings.application:
        yield "queue_manager.token_file: has no effect without an [[application]]"


def _problems_of_access_users(settings: "Settings", index: int) -> Iterator[str]:
    """Users of [access] who are two applications, or who have no way to prove who they are."""
    application, key = settings.application[index], f"application#{index + 1}.access_users"
    if application.access_users and not (settings.access.password_file or settings.access.token.key_files):
        yield f"{key}: nothing proves users; name access.password_file or access.token.key_files"
    if application.access_users and not settings.mq_listener:
        yield f"{key}: has no effect without an [[mq_listener]]"
    for pattern in application.access_users:
        for other in settings.application[:index]:
            if found := next((each for each in other.access_users if _meet(each, pattern)), None):
                yield f"{key}: {pattern!r} meets {found!r} of application {other.name!r}; a user is one application"


def _meet(one: str, other: str) -> bool:
    """Whether one user may be meant by both patterns."""
    return covers(one, other.removesuffix("*")) or covers(other, one.removesuffix("*"))
