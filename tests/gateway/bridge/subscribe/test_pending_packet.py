"""What a client is told of a SUBSCRIBE of which filters were refused."""

from gateway.bridge.sessions.sessions import ClientSession
from gateway.bridge.subscribe.pending_packet import FAILURE, CodesOfAnswer, FilterRefused, PendingPacket
from gateway.config.limits import Limit
from gateway.limits.refusals import reached
from gateway.mqtt.reason_codes import ReasonCode
from tests.gateway.bridge.conftest import NewWorld
from tests.gateway.bridge.sessions.test_filter_shapes import connected


def test_each_refusal_has_its_code_and_the_first_text_of_a_code_is_told(new_world: NewWorld) -> None:
    world = new_world()
    for level in (4, 5):
        session = connected(world, level=level).session
        assert isinstance(session, ClientSession)
        packet = PendingPacket(session, 7, (("a", 1), ("b", 0), ("c", 2), ("b", 0)), lambda *_: None, 0)
        packet.fail("a", FilterRefused.at_limit(reached(Limit.SHARED_GROUPS)))
        packet.fail("b", FilterRefused.at_limit(reached(Limit.FILTER_SHAPES_PER_USER)))
        packet.fail("c", FilterRefused(ReasonCode.NOT_AUTHORIZED, "line 7"))
        codes = bytes((0x97, 0x97, 0x87, 0x97)) if level == 5 else bytes((FAILURE,)) * 4
        assert packet.answer == CodesOfAnswer(codes, {0x97: Limit.SHARED_GROUPS.value.told})
        rules = (
            ("1", "shared_groups"),
            ("2", "filter_shapes_per_user"),
            ("3", "line 7"),
            ("4", "filter_shapes_per_user"),
        )
        assert packet.note(9)[4:] == (9, 7, ("a", "b", "c", "b"), bytes((1, 0, 2, 0)), codes, rules)
