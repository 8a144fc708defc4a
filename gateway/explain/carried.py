"""What the publication of a question carries, as the bridge decides it.

A question has no time and no payload: folder jms shows the time 0, and the publisher is believed about text.
"""

from gateway.bridge.messages.jms_form import with_jms, writes_jms
from gateway.bridge.messages.usr_folder import CarriedPairs, carried_pairs_of
from gateway.config import Settings
from gateway.config.routes import Route
from gateway.explain.command import Question

_NO_TIME = 0
_NO_PAYLOAD = b""


def carried_of(settings: Settings, route: Route, question: Question) -> CarriedPairs:
    """The properties, and the folders of JMS if its route has them."""
    carried = carried_pairs_of(question.properties, settings.mqtt.user_properties)
    if not writes_jms(route, here=settings.publish.jms_folders):
        return carried
    topic = route.destination.prefix + question.topic
    return with_jms(carried, question.properties, topic, _NO_PAYLOAD, question.qos, _NO_TIME)
