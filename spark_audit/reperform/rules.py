"""Each conversion held against single rules: the nine fields, option support, the report, RETAIN.

Beside performance.py, which compares the whole, this says which rule of the specification a conversion breaks. What
cannot be read breaks no rule: re-performance says that it cannot be read.
"""

from spark_audit.record import ConversionKind
from spark_audit.reperform.answer import answer_of
from spark_audit.reperform.code_page import UnknownCodePage
from spark_audit.reperform.delivery_report import delivery_report_faults
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.finding import Finding, Rule, findings
from spark_audit.reperform.header import read_chain
from spark_audit.reperform.left_out import unreported
from spark_audit.reperform.meaning import meaning_of, read_meaning
from spark_audit.reperform.nine_fields import field_faults
from spark_audit.reperform.outcome import UnreadableBytes
from spark_audit.reperform.publish_report import publish_report_faults
from spark_audit.reperform.retention import copy_faults, delivery_faults, publish_faults
from spark_audit.reperform.support import answer_faults, support_faults

_OF_PUBLISH = ("Publish", "DeletePub")


def broken_rules(facts: Facts) -> tuple[Finding, ...]:
    """The findings against one conversion."""
    try:
        if facts.conversion == ConversionKind.PACKET_TO_HEADER:
            return tuple(_of_packet(facts))
        if facts.conversion == ConversionKind.HEADER_TO_PACKET:
            source = read_meaning(facts.input, facts.input_described)
            found = findings(Rule.REPORT, delivery_report_faults(facts, source))
            return (*found, *findings(Rule.RETAIN, delivery_faults(facts, source)))
        if facts.conversion in (ConversionKind.HEADER_TO_HEADER, ConversionKind.SERVICE):
            return tuple(_of_header(facts))
    except (UnreadableBytes, UnknownCodePage):
        pass
    return ()


def _of_packet(facts: Facts) -> list[Finding]:
    actual = read_meaning(facts.output, facts.output_described)
    found = findings(Rule.SUPPORT, support_faults(facts, None, actual))
    if facts.command in _OF_PUBLISH:
        found += findings(Rule.REPORT, publish_report_faults(facts, actual) if facts.command == "Publish" else ())
        found += findings(Rule.RETAIN, publish_faults(facts, actual))
    return found


def _of_header(facts: Facts) -> list[Finding]:
    is_copy = facts.conversion == ConversionKind.HEADER_TO_HEADER
    made, body = read_chain(facts.output, facts.output_described)
    answer = None if is_copy else answer_of(made)
    if answer is not None:
        return findings(Rule.SUPPORT, answer_faults(answer))
    if facts.input == facts.output:
        return []  # a message that passes as it is: what is wrong in it is its sender's
    actual, source = meaning_of(made, body), read_meaning(facts.input, facts.input_described)
    reported = frozenset(name for name, _ in facts.dropped_fields)
    is_extended = facts.mode == "extended"
    found = findings(Rule.FIELDS, field_faults(source, actual, is_copy=is_copy, is_extended=is_extended))
    found += findings(Rule.SUPPORT, support_faults(facts, source, actual))
    found += findings(Rule.REPORT, unreported(source, actual, reported))
    return found + (findings(Rule.RETAIN, copy_faults(facts, actual)) if is_copy else [])
