"""The effect of a RegSub on a subscription, new or existing: joint identities, SubName, attributes.

Pure: from the existing subscription and the command to the one that follows, or a CommandRefusal.
- JoinExcl: its SubIdentity alone holds the subscription. 3156 if another holds it exclusively, 3155 if others share it.
- JoinShared: its SubIdentity shares the subscription with others. 3156 if another holds it exclusively. 3157, a
  warning, if the SubIdentity shares it already.
- 3154 if a SubIdentity has not joined and does not join. 3154 too if the command has no SubIdentity and others have
  joined, except with NoAlter.
- 3155 if the command alters attributes that others share. NoAlter leaves attributes as they are.
- SubName: 3152 if it belongs to another subscription, or if this subscription has another name. AddName gives a name
  to a subscription without one.
Sources: IBM MQ, "Register Subscriber message" and its reason codes; Message Broker V6, the same page (aq06990_).
"""

from dataclasses import dataclass, replace
from typing import Final

from mappings.commands.command import RegisterSubscriber
from mappings.commands.options import RegistrationOption
from mappings.reasons import Reason
from mq_adapters.broker.responses import CommandRefusal
from mq_adapters.broker.subscription import Subscription

JOIN: Final = RegistrationOption.JOIN_SHARED | RegistrationOption.JOIN_EXCLUSIVE
#: Options of the command alone, which are not attributes of the subscription.
_OF_THE_COMMAND: Final = (
    JOIN | RegistrationOption.ADD_NAME | RegistrationOption.NO_ALTERATION | RegistrationOption.FULL_RESPONSE
)
#: The prefix of reserved SubNames (WebSphere MQ V6 Publish/Subscribe User's Guide).
_RESERVED_NAMES: Final = "MQ"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRegistration:
    """The resulting subscription (the same object if nothing changes); `has_joined_before` is a warning."""

    subscription: Subscription
    has_joined_before: bool


def attributes_of(options: RegistrationOption) -> RegistrationOption:
    """The options of a RegSub that the subscription keeps."""
    return options & ~_OF_THE_COMMAND


def registration(
    existing: Subscription | None, wanted: Subscription, command: RegisterSubscriber
) -> CheckedRegistration:
    """The resulting subscription; `wanted` is the subscription in the command, without name and joint identities."""
    joined, is_exclusive = _joined(existing, command)
    name = _name(existing, command)
    before = existing.joined if existing is not None else ()
    if existing is None:
        made = replace(wanted, name=name, joined=joined, is_exclusive=is_exclusive)
        return CheckedRegistration(subscription=made, has_joined_before=False)
    is_altered = not _is_kept(existing, wanted, command)
    if is_altered and any(identity != command.subscription_identity for identity in before):
        raise CommandRefusal(Reason.MQRCCF_SUBSCRIPTION_IN_USE, *_identity_field(command))
    made = wanted if is_altered else existing
    if is_altered or (made.name, made.joined, made.is_exclusive) != (name, joined, is_exclusive):
        made = replace(made, name=name, joined=joined, is_exclusive=is_exclusive)
    has_joined_before = (
        RegistrationOption.JOIN_SHARED in command.registration_options
        and command.subscription_identity in before
        and not existing.is_exclusive
    )
    return CheckedRegistration(subscription=made, has_joined_before=has_joined_before)


def is_locked_for(subscription: Subscription, identity: str | None) -> bool:
    """Whether somebody else holds a subscription exclusively: the option Locked of a full response."""
    return subscription.is_exclusive and subscription.joined != (identity,)


def _joined(existing: Subscription | None, command: RegisterSubscriber) -> tuple[tuple[str, ...], bool]:
    """The joint identities after the command, and whether the only one of them excludes others."""
    joined = existing.joined if existing is not None else ()
    is_exclusive = existing is not None and existing.is_exclusive
    options, identity = command.registration_options, command.subscription_identity
    others = tuple(held for held in joined if held != identity)
    if options & JOIN:
        assert identity is not None  # the reader refuses a command that joins without SubIdentity
        if is_exclusive and others:
            raise CommandRefusal(Reason.MQRCCF_SUBSCRIPTION_LOCKED, *_identity_field(command))
        if RegistrationOption.JOIN_SHARED in options:
            return (joined if identity in joined else (*joined, identity)), False
        if others:
            raise CommandRefusal(Reason.MQRCCF_SUBSCRIPTION_IN_USE, *_identity_field(command))
        return (identity,), True
    is_stranger = identity not in joined if identity is not None else bool(joined)
    if is_stranger and (identity is not None or RegistrationOption.NO_ALTERATION not in options):
        raise CommandRefusal(Reason.MQRCCF_SUB_IDENTITY_ERROR, *_identity_field(command))
    return joined, is_exclusive


def _name(existing: Subscription | None, command: RegisterSubscriber) -> str:
    """The SubName after the command. The caller has checked that it belongs to no other subscription."""
    wanted, before = command.subscription_name, existing.name if existing is not None else ""
    if wanted is None or existing is None:
        return wanted or before
    is_added = RegistrationOption.ADD_NAME in command.registration_options
    if before == wanted and not is_added:
        return before
    if before or not is_added:
        raise CommandRefusal(Reason.MQRCCF_DUPLICATE_SUBSCRIPTION, ("SubName", wanted))
    return wanted


def check_name(name: str) -> None:
    """3153 for a SubName that an application may not choose."""
    if name.startswith(_RESERVED_NAMES):
        raise CommandRefusal(Reason.MQRCCF_SUB_NAME_ERROR, ("SubName", name))


def _is_kept(existing: Subscription, wanted: Subscription, command: RegisterSubscriber) -> bool:
    """Whether the attributes stay: NoAlter is set, or others share them and the command does not change them."""
    if RegistrationOption.NO_ALTERATION in command.registration_options:
        return True
    return bool(existing.joined) and _attributes(existing) == _attributes(wanted)


def _attributes(subscription: Subscription) -> tuple[object, ...]:
    return subscription.dialect, subscription.options, subscription.user_data, subscription.topic


def _identity_field(command: RegisterSubscriber) -> tuple[tuple[str, str], ...]:
    """The fields that name the cause; empty if the command lacks a SubIdentity that it needs."""
    return (("SubIdentity", command.subscription_identity or ""),)
