"""What the broker keeps in the store: subscriptions of versions 1 to 4, retained publications of version 1."""

from dataclasses import asdict

import ormsgpack
import pytest

from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.reasons import StoreError

DEFAULT = "SYSTEM.BROKER.DEFAULT.STREAM"
SUBSCRIPTION = [1, 7, "QM1", "NEW", None, DEFAULT, "a/#", "mqrfh2", 256, "", "", "", "ann", b"", "", 0]
PACKED_DESCRIPTOR = b"\x01" + ormsgpack.packb({6: b"MQHRF2  ", 8: 1}, option=ormsgpack.OPT_NON_STR_KEYS)
STORED = "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic></psc>"


def keep(station, space, key, value):
    unit = station.engine.begin()
    unit.set_state(space, key, ormsgpack.packb(value))
    station.engine.submit(unit)


def subscriptions(station):
    return list(station.engine.objects.publish_subscribe().subscriptions())


def test_subscription_and_retained_publication_of_version_1_are_read(station):
    key = f"{DEFAULT}\0QM1:NEW\0\0a/#".encode()
    keep(station, StateKind.BROKER_SUBSCRIPTION, key, SUBSCRIPTION)
    body = station.mqrfh2(STORED, body=b"x")
    retained = [1, 5, station.now_us, 0, False, PACKED_DESCRIPTOR, b"", body]
    keep(station, StateKind.BROKER_RETAINED, f"{DEFAULT}\0a/b".encode(), retained)
    station.restart()
    station.control(
        "<psc><Command>ReqUpdate</Command><QName>NEW</QName><Topic>a/#</Topic></psc>", user_identifier="ann"
    )
    marked = STORED.replace("<Topic>", "<PubOpt>IsRetainedPub</PubOpt><Topic>")
    assert station.bodies("NEW") == [station.mqrfh2(marked, body=b"x")]


REG_SUB = (
    "<psc><Command>RegSub</Command><QName>NEW</QName><Topic>a/#</Topic><SubPoint>p</SubPoint><Filter>x=1</Filter>"
    "<RegOpt>JoinExcl</RegOpt><SubIdentity>one</SubIdentity><SubUserData>u</SubUserData><SubName>n</SubName></psc>"
)


def test_subscription_is_written_as_version_3_and_repeats_nothing_of_its_key(station):
    station.control(REG_SUB, user_identifier="ann")
    ((key, value),) = station.engine.states(StateKind.BROKER_SUBSCRIPTION)
    assert key == f"{DEFAULT}\0QM1:NEW\0p\0a/#\0x=1".encode()
    assert ormsgpack.unpackb(value) == [3, 1, "mqrfh2", 0, "n", "u", "ann", b"", "", 0, ["one"], True, False]


def test_subscription_of_version_2_is_the_same_as_one_of_version_3(station):
    station.control(REG_SUB, user_identifier="ann")
    station.restart()
    (of_version_3,) = subscriptions(station)
    key = f"{DEFAULT}\0QM1:NEW\0p\0a/#\0x=1".encode()
    fields = [2, 1, "QM1", "NEW", None, DEFAULT, "a/#", "mqrfh2", 0, "p", "n", "u", "ann", b"", "", 0]
    keep(station, StateKind.BROKER_SUBSCRIPTION, key, [*fields, "x=1", ["one"], True, False])
    station.restart()
    (of_version_2,) = subscriptions(station)
    assert asdict(of_version_2) == asdict(of_version_3)


def test_subscriptions_of_one_subscriber_share_its_identity_in_memory(station):
    for topic in ("a", "b"):
        station.control(f"<psc><Command>RegSub</Command><QName>NEW</QName><Topic>{topic}</Topic></psc>")
    station.restart()
    first, second = subscriptions(station)
    assert first.identity is second.identity


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (StateKind.BROKER_SUBSCRIPTION, [2, *SUBSCRIPTION[1:]]),
        (StateKind.BROKER_SUBSCRIPTION, [4, *SUBSCRIPTION[1:], "", [], False, False]),
        (StateKind.BROKER_SUBSCRIPTION, [3, *SUBSCRIPTION[1:], "", [], False, False]),
        (StateKind.BROKER_SUBSCRIPTION, [1, 2]),
        (StateKind.BROKER_SUBSCRIPTION, "no list"),
        (StateKind.BROKER_RETAINED, [2, 5, 0, 0, False, PACKED_DESCRIPTOR, b"", b""]),
        (StateKind.BROKER_RETAINED, [1, 5, 0, 0, False, b"\x02", b"", b""]),
    ],
)
def test_other_versions_and_damage_are_refused(station, space, value):
    keep(station, space, b"k", value)
    station.engine.close()
    with pytest.raises(StoreError, match="backup"):
        station.open()


def test_subscription_of_mqsub_is_written_as_version_4_with_its_priority(station):
    station.control(REG_SUB, user_identifier="ann", put_appl_type=7, appl_origin_data="MS07")
    ((_, value),) = station.engine.states(StateKind.BROKER_SUBSCRIPTION)
    assert ormsgpack.unpackb(value) == [4, 1, "mqrfh2", 0, "n", "u", "ann", b"", "", 0, ["one"], True, False, 7, True]
    station.restart()
    (read,) = subscriptions(station)
    assert (read.is_of_mqsub, read.priority, read.name) == (True, 7, "n")


def test_a_row_of_version_4_without_its_priority_is_damaged(station):
    keep(station, StateKind.BROKER_SUBSCRIPTION, f"{DEFAULT}\0QM1:NEW\0\0a/#".encode(), [4, 1])
    with pytest.raises(StoreError):
        station.restart()
