"""What the service's converter makes is what the audit's own reading of the table makes: two programs, one answer."""

import pytest

from gateway.conversion.converter import Converter
from mappings.conversion.convert import Mode
from mappings.table import Dialect
from mq_adapters.message import Message, MessageDescriptor
from spark_audit.reperform.comparison import Status
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.performance import reperform
from tests.headers import mqrfh, mqrfh2

STRINGS = (
    "MQPSCommand Publish MQPSTopic a/b",
    'MQPSCommand Publish MQPSPubOpts RetainPub MQPSStreamName S MQPSTopic "50%% %*" own 1 MQPSSeqNum 7',
    "MQPSCommand Publish MQPSPubOpts 10 MQPSRegOpts Local MQPSTopic a MQPSTopic b MQPSStringData x MQPSIntData 4",
    "MQPSCommand RegSub MQPSRegOpts 257 MQPSTopic a/* MQPSTopic b?c MQPSQName Q MQPSQMgrName M MQPSSubName s",
    "MQPSCommand DeregSub MQPSRegOpts DeregAll",
    "MQPSCommand DeregSub MQPSTopic a MQPSTopic b/* MQPSTopic a",
    "MQPSCommand RegSub MQPSRegOpts 147457 MQPSTopic a MQPSSubName s MQPSSubIdentity i",
    "MQPSCommand RegSub MQPSRegOpts JoinExcl MQPSTopic a MQPSSubIdentity i",
    "MQPSCommand DeletePub MQPSDelOpts Local MQPSTopic *",
    "MQPSCommand ReqUpdate MQPSTopic a/b MQPSRegOpts CorrelAsId",
    "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE MQPSCommand Publish\0",
    "MQPSCompCode 2 MQPSReason 3072 MQPSReasonText MQRCCF_TOPIC_ERROR MQPSCommand Publish MQPSTopic a\0",
)
FOLDERS = (
    ("<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>50% * &lt;</Topic></psc>",),
    ("<psc><Command>Publish</Command><PubOpt>Local</PubOpt><Topic>a</Topic></psc>", "<usr><a>1</a></usr>"),
    ("<mcd><Msd>jms_text</Msd></mcd>", "<psc><Command>RegSub</Command><RegOpt>1</RegOpt><Topic>a/#</Topic></psc>"),
    ("<psc><Command>RegSub</Command><Topic>+/b</Topic><Topic>#</Topic><SubName>s</SubName></psc>",),
    ("<psc><Command>DeregSub</Command><Topic>a/+</Topic><Topic>a/#</Topic><Topic>a/+</Topic></psc>",),
    ("<psc><Command>DeletePub</Command><DelOpt>Local</DelOpt><Topic>a/#</Topic></psc>",),
    ("<psc><Command>RegSub</Command><RegOpt>JoinExcl</RegOpt><SubIdentity>i</SubIdentity><Topic>a</Topic></psc>",),
    ("<pscr><Completion>ok</Completion></pscr>",),
    ("<pscr><Completion>error</Completion><Response><Reason>3072</Reason><Topic>a</Topic></Response></pscr>",),
)
MESSAGES = [(Dialect.MQRFH2, b"MQHRF   ", mqrfh(string)) for string in STRINGS]
MESSAGES += [(Dialect.MQRFH, b"MQHRF2  ", mqrfh2(*folders)) for folders in FOLDERS]
MESSAGES += [(Dialect.MQRFH2, b"MQHRF2  ", mqrfh2(*folders)) for folders in FOLDERS]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("to", "format", "message"), MESSAGES)
def test_conversion_matches_when_it_is_performed_again(to: Dialect, format: bytes, message: bytes, mode: Mode) -> None:
    converter = Converter(queue_name="OUT", to=to, mode=mode)
    service = converter.converted(Message(MessageDescriptor(format=format), message + b"body")).service
    outcome = reperform(
        Facts(
            conversion="service",
            command="",
            topic="",
            queue="OUT",
            packet_type=-1,
            granted_qos=-1,
            published_qos=-1,
            is_retained=False,
            payload_bytes=4,
            dropped_fields=service.dropped,
            input=service.input_header,
            input_format=service.input_format.decode().rstrip(),
            input_ccsid=service.coded_char_set_id,
            input_encoding=service.encoding,
            output=service.output_header,
            output_format=service.output_format.decode().rstrip(),
            output_ccsid=service.coded_char_set_id,
            output_encoding=service.encoding,
            target=service.target,
            mode=service.mode,
        )
    )
    assert outcome.status is Status.MATCH, outcome.detail
