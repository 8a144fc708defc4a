"""FullResp: an answer with every attribute of a subscription.

Source: IBM MQ, "Register Subscriber message", option FullResp; the names that IBM's JMS client reads.
"""

from mappings.commands.command import DeregisterSubscriber, RegisterSubscriber
from mappings.commands.options import RegistrationOption, tokens_of
from mappings.headers.name_value import NameValues
from mq_adapters.broker.registration import is_locked_for
from mq_adapters.broker.subscription import Subscription


def full_response(subscriptions: list[Subscription], command: RegisterSubscriber | DeregisterSubscriber) -> NameValues:
    """Every attribute of the subscriptions of one command, under psc names; empty without FullResp.

    Locked is among the options if another SubIdentity holds the subscription exclusively.
    """
    if RegistrationOption.FULL_RESPONSE not in command.registration_options:
        return ()
    first = subscriptions[0]
    options = first.options
    if is_locked_for(first, command.subscription_identity):
        options |= RegistrationOption.LOCKED
    fields = [("Topic", subscription.topic) for subscription in subscriptions]
    fields += [("QMgrName", first.identity.queue_manager_name), ("QName", first.identity.queue_name)]
    if first.identity.correl_id is not None:
        fields.append(("CorrelId", first.identity.correl_id.hex()))
    fields.append(("UserId", first.user_identifier))
    fields += [("RegOpt", token) for token in tokens_of(options)]
    fields += [("SubPoint", first.interest.point)] if first.interest.point else []
    fields += [("Filter", first.interest.filter)] if first.interest.filter else []
    fields += [("SubName", first.name)] if first.name else []
    fields += [("SubIdentity", identity) for identity in first.joined]
    fields += [("SubUserData", first.user_data)] if first.user_data else []
    return tuple(fields)
