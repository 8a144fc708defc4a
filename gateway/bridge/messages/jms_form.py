"""What a publication carries beside its command: properties of MQTT 5, and the folders of a message of JMS.

A part of step 3 on the way of a PUBLISH. Folders of JMS are written where `[publish] jms_folders` asks for them, or
`jms_folders` of the target. The payload counts as text if its publisher says so (Payload Format Indicator 1) and it is
UTF-8. A payload that is none is bytes, and the audit is told.
Source: MQTT 5.0 section 3.3.2.3.2; JMS 1.1 section 3.11; IBM MQ, "The MQRFH2 header and JMS".
"""

from typing import Final

from gateway.bridge.messages.usr_folder import NOTHING_CARRIED, CarriedPairs, UserPropertyStyle, carried_pairs_of
from gateway.config.routes import Route, Routes
from gateway.mqtt.properties import PublishProperties, WillProperties
from mappings.conversion.jms_folders import is_utf_8, jms_folders
from mappings.headers.mqrfh2 import unsuitable_character

_US_OF_A_MS: Final = 1_000
#: The gateway's messages have no other priority: with another one a message could overtake earlier ones.
_PRIORITY: Final = 0
#: Left out of a header that was asked for: the kind of the message, and why it is another one.
NO_TEXT: Final = ("jms_text", "the payload is no UTF-8: it is bytes")


class CarriedForms:
    """What each publication carries, by its route."""

    def __init__(self, style: UserPropertyStyle, routes: Routes, *, writes_jms: bool) -> None:
        """`writes_jms`: whether publications to the embedded broker have the folders of JMS."""
        self._style: UserPropertyStyle = style
        self._routes = routes
        self.writes_jms = writes_jms
        #: Whether a publication without properties carries nothing, whatever its route.
        self.is_plain = not writes_jms and not routes.writes_jms

    def of(
        self, properties: PublishProperties | WillProperties | None, topic: str, payload: bytes, qos: int, now_us: int
    ) -> CarriedPairs:
        """What the publication of a PUBLISH or will carries, published at `now_us` (microseconds since 1970)."""
        carried = NOTHING_CARRIED if properties is None else carried_pairs_of(properties, self._style)
        if self.is_plain:
            return carried
        route = self._routes.of(topic)
        if not writes_jms(route, here=self.writes_jms):
            return carried
        return with_jms(carried, properties, route.destination.prefix + topic, payload, qos, now_us)


def writes_jms(route: Route, *, here: bool) -> bool:
    """Whether the publications of a route have the folders of JMS; `here`: whether those of the embedded broker do."""
    return here if route.target is None else route.target.jms_folders


def with_jms(
    carried: CarriedPairs,
    properties: PublishProperties | WillProperties | None,
    topic: str,
    payload: bytes,
    qos: int,
    now_us: int,
) -> CarriedPairs:
    """The same with the folders of JMS. A topic that no folder can hold has none: its command is refused."""
    if unsuitable_character(topic):
        return carried
    says_text = properties is not None and properties.payload_format_indicator == 1
    is_text = says_text and is_utf_8(payload)
    folders = jms_folders(
        topic, is_text=is_text, time_ms=now_us // _US_OF_A_MS, priority=_PRIORITY, is_persistent=qos > 0
    )
    left_out = carried.left_out if is_text or not says_text else (*carried.left_out, NO_TEXT)
    return CarriedPairs(carried.pairs, left_out, folders)
