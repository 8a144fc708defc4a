"""What to do about each reason code that a header can provoke, in plain words, and who gives it.

Sources: IBM MQ documentation, the pages of the reason codes ("2334 (091E) (RC2334): MQRC_RFH_ERROR" and so on).
"""

from enum import StrEnum

from mappings.reasons import Reason


class Speaker(StrEnum):
    """Who says that something is wrong."""

    BROKER = "broker"  # in its response, after the message was put
    MQPUT = "queue manager, MQPUT"  # before anything is put
    MQGET = "queue manager, MQGET with conversion"  # when somebody reads the message


_SPEAKERS = {
    Reason.MQRC_DLH_ERROR: Speaker.MQPUT,
    Reason.MQRC_RFH_FORMAT_ERROR: Speaker.MQPUT,
    Reason.MQRC_RFH_RESTRICTED_FORMAT_ERR: Speaker.MQPUT,
    Reason.MQRC_SOURCE_CCSID_ERROR: Speaker.MQGET,
    Reason.MQRC_SOURCE_INTEGER_ENC_ERROR: Speaker.MQGET,
    Reason.MQRC_TARGET_CCSID_ERROR: Speaker.MQGET,
    Reason.MQRC_NOT_CONVERTED: Speaker.MQGET,
}

_ADVICE = {
    Reason.MQRC_DLH_ERROR: "Write all 172 bytes of the dead-letter header, StrucId 'DLH ' and Version 1.",
    Reason.MQRC_NOT_CONVERTED: "Change the text, or use a code page that has all its characters.",
    Reason.MQRC_RFH_COMMAND_ERROR: (
        "Make MQPSCommand the first MQPS name (in psc: have one Command), with a command that the format has."
    ),
    Reason.MQRC_RFH_DUPLICATE_PARM: "Give this parameter once; only topics, options and publication data may repeat.",
    Reason.MQRC_RFH_ERROR: (
        "Check StrucId, Version, StrucLength and the lengths behind it, and that Format, CodedCharSetId and Encoding "
        "of the structure in front say what follows; one message carries one command."
    ),
    Reason.MQRC_RFH_FORMAT_ERROR: (
        "Write each folder as one well-formed element, escape & and <, and use no declarations, comments or CDATA."
    ),
    Reason.MQRC_RFH_PARM_ERROR: "Leave the parameter out, or spell it as the command's page does: case matters.",
    Reason.MQRC_RFH_PARM_MISSING: "Add the parameter; this command cannot do without it.",
    Reason.MQRC_RFH_RESTRICTED_FORMAT_ERR: (
        "Keep folder mq flat: no groups, no escaped characters, no null values, ASCII names, blanks as the only space."
    ),
    Reason.MQRC_RFH_STRING_ERROR: (
        "Give every name a value; quote an item that holds blanks or quotes, double the quotes inside, close it."
    ),
    Reason.MQRC_SOURCE_CCSID_ERROR: "Set the CodedCharSetId, or NameValueCCSID (1208, 1200, 13488, 17584), to a page.",
    Reason.MQRC_SOURCE_INTEGER_ENC_ERROR: "Set Encoding to 273 (big-endian) or 546 (little-endian).",
    Reason.MQRC_TARGET_CCSID_ERROR: "Ask for a code page that is known; 1208 is UTF-8, 819 ISO 8859-1.",
    Reason.MQRCCF_CORREL_ID_ERROR: "Set MQMD.CorrelId to 24 bytes that are not all zero, or leave CorrelAsId out.",
    Reason.MQRCCF_DEL_OPTIONS_ERROR: "Use Local or nothing; a number may only be a sum of MQDELO values.",
    Reason.MQRCCF_DUPLICATE_IDENTITY: "Use another queue or CorrelId, or the user that registered it.",
    Reason.MQRCCF_FILTER_ERROR: "Correct the filter expression, or leave it out.",
    Reason.MQRCCF_INCORRECT_Q: (
        "Put Publish and DeletePub on the queue of their stream, and all other commands on SYSTEM.BROKER.CONTROL.QUEUE."
    ),
    Reason.MQRCCF_INCORRECT_STREAM: "Put the message on the queue that has the stream's name, or name no stream.",
    Reason.MQRCCF_NO_RETAINED_MSG: "Nothing to do: there is no retained publication for the topic yet.",
    Reason.MQRCCF_NOT_AUTHORIZED: "Let an administrator give the user access to stream, topic and queue.",
    Reason.MQRCCF_NOT_REGISTERED: "Name topic, queue and CorrelId exactly as at registration, or register first.",
    Reason.MQRCCF_PUB_OPTIONS_ERROR: "Use tokens as IBM spells them, or a sum of MQPUBO values; only MQRFH has NoReg.",
    Reason.MQRCCF_Q_MGR_NAME_ERROR: "Use up to 48 letters, digits and . _ / %, or leave it out for MQMD.ReplyToQMgr.",
    Reason.MQRCCF_Q_NAME_ERROR: "Use 1 to 48 letters, digits and . _ / %, or set MQMD.ReplyToQ and leave it out.",
    Reason.MQRCCF_REG_OPTIONS_ERROR: (
        "Use tokens as IBM spells them, or a sum of MQREGO values, and only options that this command and format have."
    ),
    Reason.MQRCCF_STREAM_ERROR: "Name the stream as a queue is named: 1 to 48 letters, digits and . _ / %.",
    Reason.MQRCCF_SUB_IDENTITY_ERROR: "Give SubIdentity 1 to 128 characters.",
    Reason.MQRCCF_SUB_NAME_ERROR: "Give SubName 1 to 10240 characters.",
    Reason.MQRCCF_TOPIC_ERROR: (
        "Give 1 to 10240 characters without NUL; in MQRFH write %*, %? and %% for *, ? and % in a topic name."
    ),
    Reason.MQRCCF_UNKNOWN_STREAM: "Have the stream defined, or use one that is.",
}


def speaker_of(reason_code: int) -> Speaker:
    """Who gives a reason code about a header."""
    return _SPEAKERS.get(Reason(reason_code), Speaker.BROKER)


def advice_on(reason_code: int) -> str:
    """What to do about it."""
    return _ADVICE.get(Reason(reason_code), "Look the reason code up in IBM's documentation.")
