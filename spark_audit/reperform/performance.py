"""Re-performs any conversion in a record."""

from typing import Final

from spark_audit.record import ConversionKind
from spark_audit.reperform.code_page import UnknownCodePage
from spark_audit.reperform.comparison import Comparison, Status, UnreadableBytes
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.header_to_header import reperform_copy
from spark_audit.reperform.header_to_packet import reperform_delivery
from spark_audit.reperform.packet_to_header import reperform_packet
from spark_audit.reperform.service import reperform_service

_PERFORMERS: Final = {
    ConversionKind.PACKET_TO_HEADER.value: reperform_packet,
    ConversionKind.HEADER_TO_HEADER.value: reperform_copy,
    ConversionKind.HEADER_TO_PACKET.value: reperform_delivery,
    ConversionKind.SERVICE.value: reperform_service,
}


def reperform(facts: Facts) -> Comparison:
    """The comparison for one conversion. Unreadable input is not re-performable, and never an error."""
    performer = _PERFORMERS.get(facts.conversion)
    if performer is None:
        return _not_reperformable(f"conversion {facts.conversion!r} is not known")
    try:
        return performer(facts)
    except UnreadableBytes as error:
        return _not_reperformable(f"the input cannot be read: {error}")
    except UnknownCodePage as error:
        return _not_reperformable(str(error))


def _not_reperformable(detail: str) -> Comparison:
    return Comparison(status=Status.NOT_REPERFORMABLE, detail=detail, same_bytes=False)
