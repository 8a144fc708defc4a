"""What the trail and the metrics say of programs that connect, of those that go, and of those that are refused."""

import json
from pathlib import Path

from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.reasons import ReasonCode
from tests.end_to_end.metrics_page import scrape_until
from tests.end_to_end.mq_clients.house import PASSWORD, TOKEN, House
from tests.end_to_end.mq_clients.raw_client import RawClient, getting
from tests.processes.forked import rfhbridge
from tests.spark_audit.forger.true_trails import records_of

OUTPUT, INPUT_SHARED = 0x10, 0x2
APP = "APP.SVRCONN"


def refused(port: str, channel: str, user: str, password: str) -> None:
    with RawClient(port) as client:
        client.negotiate(channel)
        assert client.log_in(user, password) == ReasonCode.MQRC_NOT_AUTHORIZED


def test_sessions_and_refusals_of_programs_are_told_and_the_audit_finds_no_fault(house: House, tmp_path: Path) -> None:
    with RawClient(house.port) as anna:
        anna.connect(user="anna", password=PASSWORD, appl_name="Panel")
        anna.put(anna.open("ORDERS", OUTPUT))
        anna.ask(SegmentType.MQGET, getting(), anna.open("ORDERS", INPUT_SHARED))
        page = scrape_until(house.gateway, lambda page: page.value("mq_programs", listener="mq") == 1)
        assert page.value("mq_connections", listener="mq") == 1
        assert page.value("mq_conversations", listener="mq") == 1
        assert page.value("mq_calls_total", listener="mq") >= 5
        assert page.value("mq_received_bytes_total", listener="mq") > 500
        assert anna.ask(SegmentType.MQDISC)[0].completion_code == 0
    with RawClient(house.port) as billing:
        billing.connect()
    with RawClient(house.port) as queued:
        queued.negotiate("QUEUED")
        assert queued.log_in() == 0
        for password in ("wrong", "hunter2", "hunter2"):
            refused(house.port, APP, "anna", password)
        refused(house.port, APP, "hunter2", "")
        refused(house.guarded_port, APP, "billing", TOKEN)
        with RawClient(house.port) as lost:
            lost.send(b"no client of IBM MQ")
            lost.end()
        with RawClient(house.port) as other:
            other.send_offer("NO.SUCH.CHANNEL")
            other.end()
        page = scrape_until(house.gateway, lambda page: page.value("mq_connections", listener="mq") == 1)
        refusals = {each: page.value("mq_programs_refused_total", reason=each) for each in ("channel", "limit", "busy")}
        assert refusals == {"channel": 1, "limit": 0, "busy": 0}
        assert page.value("mq_programs_refused_total", reason="wrong_credentials") == 4
        assert page.value("mq_programs_refused_total", reason="not_allowed") == 1
        assert page.value("mq_connections_made_total", listener="guarded") == 1
        assert house.gateway.stop() == 0, house.gateway.log
    records = records_of(house.gateway.data)
    told = [each for each in records if each["kind"] == "program"]
    assert [(each["program"], each["event"], each["user"], each["proof"]) for each in told] == [
        (1, "connected", "anna", "password"),
        (1, "disconnected", "anna", "password"),
        (2, "connected", "billing", "application_token"),
        (2, "lost", "billing", "application_token"),
        (3, "connected", "queued", "channel"),
        (3, "ended", "queued", "channel"),
    ]
    first, last = told[0], told[-1]
    assert (first["user_identifier"], first["application"], first["address"]) == ("panels", "Panel", "127.0.0.1")
    assert (first["listener"], first["channel"], last["reason"]) == ("mq", APP, "the gateway stops")
    work = [each for each in records if each["kind"] in ("mqput", "mqget")]
    assert [(each["kind"], each["program"], each["operator"]) for each in work] == [
        ("mqput", 1, first["operator"]),
        ("mqget", 1, first["operator"]),
    ]
    assert_refusals([each for each in records if each["kind"] == "programs_refused"])
    assert "hunter2" not in json.dumps(records)
    report = tmp_path / "report"
    ended = rfhbridge("audit", "run", "--engine", "duckdb", "--data", house.gateway.data, "--out", report, timeout=None)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (control,) = [
        each
        for each in json.loads((report / "result.json").read_text())["controls"]
        if each["identifier"] == "custody.programs"
    ]
    assert (control["status"], control["tested"]) == ("held", 11)


def assert_refusals(records: list[dict[str, object]]) -> None:
    """The first one of a network by a rule whole, and how many came after it."""
    found = [
        (each["event"], each["user_class"], each.get("user"), each.get("rule"), each["logins"]) for each in records
    ]
    assert sorted(found, key=str) == sorted(
        [
            ("wrong_credentials", "known", "anna", None, 1),
            ("wrong_credentials", "known", None, None, 2),
            ("wrong_credentials", "unknown", None, None, 1),
            ("not_allowed", "known", "billing", "channel#1.users", 1),
            ("channel", "none", None, "no_channel", 1),
        ],
        key=str,
    )
