"""MQSD of MQ clients: what a program asks for, and what it is told of its subscription."""

from dataclasses import replace
from typing import Any

from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.structures import Mqsd
from mq_adapters.embedded.mqi.subscribing import Subscription
from mq_adapters.embedded.mqi.subscription_request import SubscriptionRequest


def subscription_request(descriptor: Mqsd, *, destination: int = 0, is_shared: bool = False) -> SubscriptionRequest:
    """What MQSD asks for. `destination` is the handle of the program's own queue, 0 or -1 for none."""
    return SubscriptionRequest(
        options=descriptor.options,
        object_name=descriptor.object_name,
        topic=descriptor.object_string.text,
        selector=descriptor.selection_string.text,
        name=descriptor.sub_name.text,
        user_data=descriptor.sub_user_data.text,
        correl_id=descriptor.sub_correl_id,
        expiry=descriptor.sub_expiry,
        priority=descriptor.pub_priority,
        level=descriptor.sub_level,
        destination=max(0, destination),
        is_shared=is_shared,
    )


def described(descriptor: Mqsd, subscription: Subscription) -> Mqsd:
    """MQSD with what the subscription is. A string is returned as far as the program has room for it."""
    changes: dict[str, Any] = {
        "sub_correl_id": subscription.correl_id,
        "sub_expiry": subscription.expiry,
        "sub_user_data": _returned(descriptor.sub_user_data, subscription.user_data),
        "res_object_string": _returned(descriptor.res_object_string, subscription.topic),
    }
    if not descriptor.object_string.value:
        changes["object_string"] = _returned(descriptor.object_string, subscription.topic)
    return replace(descriptor, **changes)


def _returned(place: Charv, text: str) -> Charv:
    """A string that the queue manager returns; nothing where the program has no room at all."""
    return replace(place, value=text.encode()[: place.buffer_size]) if place.buffer_size > 0 else place
