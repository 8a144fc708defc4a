"""Sources of rules: every control names documents that a reader can look up."""

from spark_audit.controls.archive import HELD_BY_PAIRS, OF_MESSAGES
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.report.citations import CITATIONS, cited_by, cited_in


def test_a_source_is_taken_apart_and_each_part_leads_to_its_document() -> None:
    assert cited_in("QoS levels and flows (ac10850_), QoS level 1; MQTT 3.1.1 section 4.3; a rumour") == [
        ("QoS levels and flows (ac10850_), QoS level 1", "ac10850"),
        ("MQTT 3.1.1 section 4.3", "mqtt-3-1-1"),
        ("a rumour", ""),
    ]


def test_every_control_names_a_document_of_the_list() -> None:
    sources = [control.source for control in (*CONTROLS, *OF_MESSAGES, *HELD_BY_PAIRS)]
    assert [source for source in sources if not any(anchor for _part, anchor in cited_in(source))] == []
    assert [row.mark for row in cited_by(sources)] == [
        row.mark for row in CITATIONS if any(row.mark in source for source in sources)
    ]


def test_documents_are_listed_once_in_the_order_of_the_table() -> None:
    found = cited_by(["RFC 8032; MQTT 3.1.1 section 1", "MQTT 3.1.1 section 2"])
    assert [row.identifier for row in found] == ["mqtt-3-1-1", "rfc-8032"]
