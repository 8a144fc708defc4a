"""Report messages: what MQMD.Report asks for, as messages to ReplyToQ.

Confirmation of arrival and of delivery, expiration and exception are the queue manager's, exceptions where a message
is put aside that its putter is told nothing of otherwise; PAN and NAN are sent by applications, which make them here
too. A report has the original's Priority, Persistence and identity context; its MsgId is new unless MQRO_PASS_MSG_ID
asks for the original's, its CorrelId is the original's MsgId unless MQRO_PASS_CORREL_ID asks for the CorrelId. It
carries none of the data, the headers and the first 100 bytes of the body, or all, as asked. Format, CodedCharSetId and
Encoding say what it carries. It never expires, unless MQRO_PASS_DISCARD_AND_EXPIRY hands on what is left.
Source: IBM MQ, "Report options and message flags", "MQMD - Message descriptor" (Report, Feedback).
"""

from dataclasses import replace
from enum import IntFlag
from typing import TYPE_CHECKING, Final

from mq_adapters.message import (
    MQAT_QMGR,
    MQEI_UNLIMITED,
    MQFMT_NONE,
    MQMI_NONE,
    MQMT_REPORT,
    MQRO_PASS_CORREL_ID,
    MQRO_PASS_MSG_ID,
    Message,
    MessageDescriptor,
)

if TYPE_CHECKING:
    from mappings.headers.chain import HeaderPlace

MQRO_PASS_DISCARD_AND_EXPIRY: Final = 0x4000
MQRO_DISCARD_MSG: Final = 0x0800_0000

MQFB_EXPIRATION: Final = 258
MQFB_COA: Final = 259
MQFB_COD: Final = 260

#: A report "with data" carries this much of the body.
REPORTED_BYTES: Final = 100
_PUT_APPL_NAME_CHARACTERS: Final = 28
_US_OF_A_TENTH: Final = 100_000
#: "With data" is the option's bit and the next one, "with full data" these and one more.
_WITH_DATA: Final = 0b011
_WITH_FULL_DATA: Final = 0b111


class ReportOption(IntFlag):
    """The lowest bit of each report option."""

    PAN = 1
    NAN = 2
    CONFIRM_ON_ARRIVAL = 0x100
    CONFIRM_ON_DELIVERY = 0x800
    EXPIRATION = 0x20_0000
    EXCEPTION = 0x100_0000


#: A message with one of these must name its ReplyToQ.
ANY_REPORT: Final = int(
    ReportOption.PAN
    | ReportOption.NAN
    | ReportOption.CONFIRM_ON_ARRIVAL
    | ReportOption.CONFIRM_ON_DELIVERY
    | ReportOption.EXPIRATION
    | ReportOption.EXCEPTION
)


#: A bit of this that no queue manager knows is refused at once; one of the other is refused unless the message goes on
#: by a transmission queue; every other bit is let through unknown. MQRO_REJECT_UNSUP_MASK, and of
#: MQRO_ACCEPT_UNSUP_IF_XMIT_MASK what no option has.
_REJECTED: Final = 0x101C_0000
_UNKNOWN_UNLESS_TRANSMITTED: Final = 0x0003_8000


def has_unknown_options(report: int, *, is_transmitted: bool) -> bool:
    """Whether a Report field asks for what must be refused with 2061 MQRC_REPORT_OPTIONS_ERROR."""
    return bool(report & _REJECTED or (report & _UNKNOWN_UNLESS_TRANSMITTED and not is_transmitted))


def report_on(
    message: Message, option: ReportOption, *, feedback: int, queue_manager_name: str, now_us: int = 0
) -> Message:
    """The report that `option` asks for about a message, for its ReplyToQ; `now_us` is microseconds since 1970."""
    asked = message.descriptor
    data, described = _reported(message, option)
    passes_expiry = asked.report & MQRO_PASS_DISCARD_AND_EXPIRY and message.expires_us
    descriptor = MessageDescriptor(
        report=asked.report & MQRO_DISCARD_MSG if asked.report & MQRO_PASS_DISCARD_AND_EXPIRY else 0,
        msg_type=MQMT_REPORT,
        expiry=max(1, -((now_us - message.expires_us) // _US_OF_A_TENTH)) if passes_expiry else MQEI_UNLIMITED,
        feedback=feedback,
        encoding=described.encoding,
        coded_char_set_id=described.coded_char_set_id,
        format=described.format,
        priority=asked.priority,
        persistence=asked.persistence,
        msg_id=message.msg_id if asked.report & MQRO_PASS_MSG_ID else MQMI_NONE,
        correl_id=asked.correl_id if asked.report & MQRO_PASS_CORREL_ID else message.msg_id,
        reply_to_q_mgr=queue_manager_name,
        user_identifier=asked.user_identifier,
        accounting_token=asked.accounting_token,
        appl_identity_data=asked.appl_identity_data,
        put_appl_type=MQAT_QMGR,
        put_appl_name=queue_manager_name[:_PUT_APPL_NAME_CHARACTERS],
    )
    return Message(descriptor, data, message.origin)


def _reported(message: Message, option: ReportOption) -> "tuple[bytes, HeaderPlace]":
    """The data of a report, and what they are. Headers come beside the first bytes of the body.

    Without data nothing announces a header: the report is described as the body behind the headers is.
    """
    from mappings.headers.chain import HeaderPlace, announces_header, skip_headers  # a channel makes no reports

    descriptor, asked = message.descriptor, message.descriptor.report
    whole = HeaderPlace(
        offset=0,
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id,
        encoding=descriptor.encoding,
    )
    body = skip_headers(
        message.body, format=whole.format, coded_char_set_id=whole.coded_char_set_id, encoding=whole.encoding
    )
    if option not in (ReportOption.PAN, ReportOption.NAN):
        if asked & option * _WITH_FULL_DATA == option * _WITH_FULL_DATA:
            return message.body, whole
        if asked & option * _WITH_DATA == option * _WITH_DATA:
            return message.body[: body.offset + REPORTED_BYTES], whole
    return b"", replace(body, format=MQFMT_NONE) if announces_header(body.format) else body
