"""Commands in both dialects: IBM's examples both ways, and each rule with its reason code."""

from dataclasses import fields, replace
from functools import partial

import pytest

import tests.headers
from mappings.commands.command import (
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    Command,
    DeletePublication,
    DeregisterPublisher,
    DeregisterSubscriber,
    Dialect,
    Publish,
    RegisterPublisher,
    RegisterSubscriber,
    RequestUpdate,
    read_command,
    write_command,
)
from mappings.commands.options import DeleteOption, PublicationOption, RegistrationOption
from mappings.errors import CommandError, ConversionError, MappingError
from mappings.headers.chain import HeaderChain, read_header_chain

mqrfh = partial(tests.headers.mqrfh, format=tests.headers.NO_FORMAT, padded=False)
mqrfh2 = partial(tests.headers.mqrfh2, format=tests.headers.NO_FORMAT)

CORREL_ID = RegistrationOption.CORREL_ID_AS_IDENTITY
SOCCER = "Sport/Soccer/State/LatestScore/Team1 Team2"


def chain_of(data: bytes, format: bytes) -> HeaderChain:
    return read_header_chain(data, format=format, coded_char_set_id=1208, encoding=546)


def from_string(string: str) -> Command:
    return read_command(chain_of(mqrfh(string), FORMAT_MQRFH))


def from_psc(folder: str) -> Command:
    return read_command(chain_of(mqrfh2(folder), FORMAT_MQRFH2))


def string_of(command: Command) -> str:
    data = write_command(command, Dialect.MQRFH)
    assert len(data) % 4 == 0
    return data[32:].decode().rstrip(" ")


def psc_of(command: Command) -> str:
    return write_command(command, Dialect.MQRFH2)[40:].decode().rstrip(" ")


# Command, MQRFH string, psc folder: what IBM's manuals and samples show, and what is written.
EXAMPLES: list[tuple[Command, str, str]] = [
    (
        Publish(topics=(SOCCER,), publication_options=PublicationOption.RETAIN_PUBLICATION),
        f'MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic "{SOCCER}"',
        f"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{SOCCER}</Topic></psc>",
    ),
    (
        DeletePublication(topics=("a/b",), delete_options=DeleteOption.LOCAL),
        "MQPSCommand DeletePub MQPSDelOpts Local MQPSTopic a/b",
        "<psc><Command>DeletePub</Command><DelOpt>Local</DelOpt><Topic>a/b</Topic></psc>",
    ),
    (
        RegisterSubscriber(
            topics=("a/#",),
            registration_options=CORREL_ID | RegistrationOption.INFORM_IF_RETAINED,
            queue_name="GW.SUB",
            queue_manager_name="QM1",
        ),
        "MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSRegOpts InformIfRet "
        "MQPSQName GW.SUB MQPSQMgrName QM1 MQPSTopic a/#",
        "<psc><Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>InformIfRet</RegOpt>"
        "<QName>GW.SUB</QName><QMgrName>QM1</QMgrName><Topic>a/#</Topic></psc>",
    ),
    (
        DeregisterSubscriber(topics=("a/#",), registration_options=CORREL_ID),
        "MQPSCommand DeregSub MQPSRegOpts CorrelAsId MQPSTopic a/#",
        "<psc><Command>DeregSub</Command><RegOpt>CorrelAsId</RegOpt><Topic>a/#</Topic></psc>",
    ),
    (
        DeregisterSubscriber(registration_options=CORREL_ID | RegistrationOption.DEREGISTER_ALL),
        "MQPSCommand DeregSub MQPSRegOpts CorrelAsId MQPSRegOpts DeregAll",
        "<psc><Command>DeregSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>DeregAll</RegOpt></psc>",
    ),
    (
        RequestUpdate(topics=("a/#",), registration_options=CORREL_ID),
        "MQPSCommand ReqUpdate MQPSRegOpts CorrelAsId MQPSTopic a/#",
        "<psc><Command>ReqUpdate</Command><RegOpt>CorrelAsId</RegOpt><Topic>a/#</Topic></psc>",
    ),
]
MQRFH_EXAMPLES: list[tuple[Command, str]] = [
    (
        Publish(
            topics=(SOCCER,),
            publication_options=PublicationOption.RETAIN_PUBLICATION | PublicationOption.NO_REGISTRATION,
        ),
        f'MQPSCommand Publish MQPSPubOpts RetainPub MQPSPubOpts NoReg MQPSTopic "{SOCCER}"',
    ),
    (
        RegisterSubscriber(
            topics=("a/*",),
            registration_options=CORREL_ID | RegistrationOption.INFORM_IF_RETAINED,
            stream_name="SYSTEM.BROKER.DEFAULT.STREAM",
        ),
        "MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSRegOpts InformIfRet "
        "MQPSStreamName SYSTEM.BROKER.DEFAULT.STREAM MQPSTopic a/*",
    ),
    (
        RegisterPublisher(topics=("a/b",), registration_options=RegistrationOption.DIRECT_REQUESTS, queue_name="PUB.Q"),
        "MQPSCommand RegPub MQPSRegOpts DirectReq MQPSQName PUB.Q MQPSTopic a/b",
    ),
    (
        DeregisterPublisher(registration_options=RegistrationOption.DEREGISTER_ALL),
        "MQPSCommand DeregPub MQPSRegOpts DeregAll",
    ),
    (
        Publish(topics=("100%/what?*",), data=(("MQPSStringData", "x y"), ("own", "1"), ("MQPSIntData", "7"))),
        'MQPSCommand Publish MQPSTopic 100%%/what%?%* MQPSStringData "x y" own 1 MQPSIntData 7',
    ),
]


@pytest.mark.parametrize(("command", "string", "psc"), EXAMPLES)
def test_ibms_examples_are_read_and_written_in_both_dialects(command: Command, string: str, psc: str) -> None:
    assert from_string(string) == from_psc(psc) == command
    assert (string_of(command), psc_of(command)) == (string, psc)


@pytest.mark.parametrize(("command", "string"), MQRFH_EXAMPLES)
def test_examples_that_only_mqrfh_has_are_read_and_written(command: Command, string: str) -> None:
    assert from_string(string) == command
    assert string_of(command) == string


def test_the_worked_bytes_of_both_dialects_are_written() -> None:
    command = Publish(topics=("a/b",), publication_options=PublicationOption.RETAIN_PUBLICATION)
    version_2 = write_command(command, Dialect.MQRFH2, body_format=b"MQSTR   ")
    assert version_2.startswith(bytes.fromhex("524648200200 00007c000000 22020000b8040000 4d51535452202020 00000000"))
    assert version_2.endswith(
        b"\xb8\x04\0\0\x54\0\0\0<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic></psc>   "
    )
    version_1 = write_command(
        replace(command, topics=("a b",)), Dialect.MQRFH, encoding=273, body_format=b"MQSTR   ", body_encoding=273
    )
    assert version_1.startswith(bytes.fromhex("52464820 00000001 0000005c 00000111 000004b8 4d51535452202020 00000000"))
    assert version_1.endswith(b'MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic "a b"   ')


def test_the_fixed_part_follows_the_header_in_front_and_describes_the_body() -> None:
    command = Publish(topics=("a",))
    data = write_command(
        command,
        Dialect.MQRFH,
        coded_char_set_id=500,
        encoding=273,
        body_format=b"X",
        body_coded_char_set_id=850,
        body_encoding=546,
    )
    assert data[:4].hex() == "d9c6c840"
    chain = read_header_chain(data, format=FORMAT_MQRFH, coded_char_set_id=500, encoding=273)
    assert (chain.body_format, chain.body_coded_char_set_id, chain.body_encoding) == (b"X       ", 850, 546)
    assert read_command(chain) == command


def test_all_texts_are_read_and_written_in_both_dialects() -> None:
    registration = RegisterSubscriber(
        topics=("a", "b"),
        queue_name="Q",
        queue_manager_name="",
        subscription_name="my name",
        subscription_identity="me",
        subscription_user_data='"data"',
    )
    publication = Publish(topics=("a",), publication_time="2026112006154200", sequence_number="17", queue_name="Q")
    for command in (registration, publication):
        assert from_psc(psc_of(command)) == from_string(string_of(command)) == command
    filtered = RegisterSubscriber(topics=("a",), filter="Body.x > 1 & y", subscription_point="euro")
    assert from_psc(psc_of(filtered)) == filtered
    delivered = Publish(topics=("a",), subscription_point="euro", subscription_user_data="u")
    assert from_psc(psc_of(delivered)) == delivered


def test_topic_names_lose_their_escapes_and_patterns_keep_them() -> None:
    assert from_string("MQPSCommand Publish MQPSTopic ABC%*D").topics == ("ABC*D",)
    assert from_string("MQPSCommand RegSub MQPSTopic ABC%*D*").topics == ("ABC%*D*",)
    assert from_psc("<psc><Command>Publish</Command><Topic>ABC%*D</Topic></psc>").topics == ("ABC%*D",)


@pytest.mark.parametrize(
    "value",
    ["CorrelAsId MQPSRegOpts InformIfRet", "257", "1 MQPSRegOpts 256", "InformIfRet MQPSRegOpts 1 MQPSRegOpts None"],
)
def test_options_are_tokens_or_sums_and_repeats_are_ored(value: str) -> None:
    command = from_string(f"MQPSCommand RegSub MQPSRegOpts {value} MQPSTopic a")
    assert isinstance(command, RegisterSubscriber)
    assert command.registration_options == 257
    psc_options = "".join(f"<RegOpt>{option}</RegOpt>" for option in value.split(" MQPSRegOpts "))
    assert from_psc(f"<psc><Topic>a</Topic>{psc_options}<Command>RegSub</Command></psc>") == command


def test_local_and_correl_as_id_of_a_publish_are_read_from_either_field() -> None:
    local, correlated = RegistrationOption.LOCAL, PublicationOption.CORREL_ID_AS_IDENTITY
    first = from_string("MQPSCommand Publish MQPSRegOpts Local MQPSPubOpts CorrelAsId MQPSTopic a")
    second = from_psc(
        "<psc><Command>Publish</Command><PubOpt>Local</PubOpt><PubOpt>CorrelAsId</PubOpt><Topic>a</Topic></psc>"
    )
    assert first == second == Publish(topics=("a",), registration_options=local, publication_options=correlated)
    assert from_psc("<psc><Command>Publish</Command><RegOpt>CorrelAsId</RegOpt><Topic>a</Topic></psc>") == Publish(
        topics=("a",), registration_options=CORREL_ID
    )


def test_local_and_correl_as_id_of_a_publish_are_written_where_each_dialect_has_them() -> None:
    for command in (
        Publish(topics=("a",), registration_options=RegistrationOption.LOCAL | CORREL_ID),
        Publish(
            topics=("a",),
            registration_options=RegistrationOption.LOCAL,
            publication_options=PublicationOption.CORREL_ID_AS_IDENTITY,
        ),
    ):
        assert string_of(command) == "MQPSCommand Publish MQPSRegOpts Local MQPSPubOpts CorrelAsId MQPSTopic a"
        assert psc_of(command) == (
            "<psc><Command>Publish</Command><RegOpt>CorrelAsId</RegOpt><PubOpt>Local</PubOpt><Topic>a</Topic></psc>"
        )


def test_blank_padding_of_names_is_not_part_of_them() -> None:
    command = from_string('MQPSCommand RegSub MQPSQName "GW.SUB   " MQPSQMgrName "   " MQPSTopic a')
    assert command == RegisterSubscriber(topics=("a",), queue_name="GW.SUB", queue_manager_name="")


def test_pairs_of_the_publisher_may_stand_before_the_command() -> None:
    assert from_string("own 1 MQPSCommand Publish MQPSTopic a") == Publish(topics=("a",), data=(("own", "1"),))


def test_a_command_is_found_behind_other_headers_and_among_other_folders() -> None:
    usr = mqrfh2("<usr><a>1</a></usr>").replace(b"        ", b"MQHRF2  ", 1)
    psc = mqrfh2("<mcd><Msd>none</Msd></mcd>", "<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    assert read_command(chain_of(usr + psc, FORMAT_MQRFH2)) == Publish(topics=("a",))
    classic = mqrfh("MQPSCommand Publish MQPSTopic a ").replace(b"        ", b"MQHRF2  ", 1) + mqrfh2("<usr></usr>")
    assert read_command(chain_of(classic, FORMAT_MQRFH)) == Publish(topics=("a",))


def test_extra_folders_follow_psc() -> None:
    data = write_command(
        Publish(topics=("a",)), Dialect.MQRFH2, extra_folders=("<usr><rfhbQos dt='i4'>1</rfhbQos></usr>",)
    )
    chain = chain_of(data, FORMAT_MQRFH2)
    (header,) = chain.headers
    assert [folder.name for folder in getattr(header, "folders")] == ["psc", "usr"]  # noqa: B009 - a union
    assert read_command(chain) == Publish(topics=("a",))


# String, reason code, parameter, ErrorPos where IBM defines it.
WRONG_STRINGS = [
    ("MQPSTopic a MQPSCommand Publish", 2336, "MQPSTopic", 0),
    ("own 1 MQPSTopic a MQPSCommand Publish", 2336, "MQPSTopic", 6),
    ("MQPSCommand Subscribe MQPSTopic a", 2336, "Subscribe", 0),
    ("own value", 2336, "MQPSCommand", 8),
    ("", 2336, "MQPSCommand", 0),
    ("MQPSCommand Publish MQPSTopic", 2335, None, 29),
    ('MQPSCommand Publish MQPSTopic "a', 2335, None, 30),
    ("MQPSCommand Publish MQPSFuture 1 MQPSTopic a", 2337, "MQPSFuture", None),
    ("MQPSCommand Publish MQXX 1 MQPSTopic a", 2337, "MQXX", None),
    ("MQPSCommand RegSub own 1 MQPSTopic a", 2337, "own", None),
    ("MQPSCommand RegSub MQPSPubOpts RetainPub MQPSTopic a", 2337, "MQPSPubOpts", None),
    ("MQPSCommand DeletePub MQPSQName Q MQPSTopic a", 2337, "MQPSQName", None),
    ("MQPSCommand Publish MQPSUserId u MQPSTopic a", 2337, "MQPSUserId", None),
    ("MQPSCommand DeregSub MQPSRegOpts DeregAll MQPSTopic a", 2337, "MQPSTopic", None),
    ("MQPSCommand Publish MQPSCommand Publish MQPSTopic a", 2338, "MQPSCommand", None),
    ("MQPSCommand RegSub MQPSQName A MQPSQName A MQPSTopic a", 2338, "MQPSQName", None),
    ("MQPSCommand ReqUpdate MQPSTopic a MQPSTopic b", 2338, "MQPSTopic", None),
    ("MQPSCommand Publish", 2339, "MQPSTopic", None),
    ("MQPSCommand DeregSub", 2339, "MQPSTopic", None),
    ("MQPSCommand RegSub MQPSRegOpts JoinExcl MQPSTopic a", 2339, "MQPSSubIdentity", None),
    ("MQPSCommand DeregSub MQPSRegOpts LeaveOnly MQPSTopic a", 2339, "MQPSSubIdentity", None),
    ('MQPSCommand Publish MQPSStreamName "A B" MQPSTopic a', 3071, "A B", None),
    ('MQPSCommand Publish MQPSStreamName "" MQPSTopic a', 3071, "", None),
    (f"MQPSCommand Publish MQPSStreamName {'S' * 49} MQPSTopic a", 3071, "S" * 49, None),
    ("MQPSCommand Publish MQPSTopic ABC*D", 3072, "ABC*D", None),
    ("MQPSCommand Publish MQPSTopic a%", 3072, "a%", None),
    ("MQPSCommand RegPub MQPSTopic a/*", 3072, "a/*", None),
    ("MQPSCommand RegSub MQPSTopic a%", 3072, "a%", None),
    ('MQPSCommand Publish MQPSTopic ""', 3072, "", None),
    (f"MQPSCommand Publish MQPSTopic {'x' * 10_241}", 3072, "x" * 10_241, None),
    ("MQPSCommand RegSub MQPSQMgrName Q! MQPSTopic a", 3074, "Q!", None),
    ('MQPSCommand RegSub MQPSQName "" MQPSTopic a', 3076, "", None),
    ("MQPSCommand RegSub MQPSQName é MQPSTopic a", 3076, "é", None),
    ("MQPSCommand RegSub MQPSRegOpts 0x1 MQPSTopic a", 3083, "0x1", None),
    ("MQPSCommand RegSub MQPSRegOpts 4194304 MQPSTopic a", 3083, "4194304", None),
    ("MQPSCommand RegSub MQPSRegOpts DeregAll MQPSTopic a", 3083, "DeregAll", None),
    ("MQPSCommand RegSub MQPSRegOpts AddName MQPSTopic a", 3083, "AddName", None),
    (
        "MQPSCommand RegSub MQPSSubIdentity i MQPSRegOpts JoinExcl MQPSRegOpts JoinShared MQPSTopic a",
        3083,
        "JoinExcl",
        None,
    ),
    ("MQPSCommand RegPub MQPSRegOpts 10 MQPSTopic a", 3083, "DirectReq", None),
    ("MQPSCommand DeregSub MQPSRegOpts FullResp MQPSTopic a MQPSTopic b", 3083, "FullResp", None),
    ("MQPSCommand DeregSub MQPSRegOpts FullResp MQPSRegOpts DeregAll", 3083, "FullResp", None),
    ("MQPSCommand Publish MQPSPubOpts Retain MQPSTopic a", 3084, "Retain", None),
    ("MQPSCommand Publish MQPSPubOpts 32 MQPSTopic a", 3084, "32", None),
    ("MQPSCommand DeletePub MQPSDelOpts RetainPub MQPSTopic a", 3087, "RetainPub", None),
    ("MQPSCommand DeletePub MQPSDelOpts 1 MQPSTopic a", 3087, "1", None),
    ('MQPSCommand RegSub MQPSSubName "" MQPSTopic a', 3153, "", None),
    (f"MQPSCommand RegSub MQPSSubIdentity {'i' * 129} MQPSTopic a", 3154, "i" * 129, None),
]


@pytest.mark.parametrize(("string", "reason_code", "parameter", "error_position"), WRONG_STRINGS)
def test_a_wrong_mqrfh_command_has_its_reason_code(
    string: str, reason_code: int, parameter: str | None, error_position: int | None
) -> None:
    with pytest.raises(MappingError) as caught:
        from_string(string)
    problem = caught.value
    assert (problem.reason_code, problem.parameter, problem.error_position) == (reason_code, parameter, error_position)


WRONG_FOLDERS = [
    ("<psc><Topic>a</Topic></psc>", 2336, "Command"),
    ("<psc></psc>", 2336, "Command"),
    ("<psc><Command>publish</Command><Topic>a</Topic></psc>", 2336, "publish"),
    ("<psc><Command>RegPub</Command><Topic>a</Topic></psc>", 2336, "RegPub"),
    ("<psc><Command>Publish</Command><Topic>a</Topic><StreamName>S</StreamName></psc>", 2337, "StreamName"),
    ("<psc><Command>Publish</Command><Topic>a</Topic><MQPSTopic>a</MQPSTopic></psc>", 2337, "MQPSTopic"),
    ("<psc><Command>Publish</Command><Topic>a</Topic><topic>b</topic></psc>", 2337, "topic"),
    ("<psc><Command>Publish</Command><Topic>a</Topic><PubOpts>RetainPub</PubOpts></psc>", 2337, "PubOpts"),
    ("<psc><Command>DeletePub</Command><Topic>a</Topic><own>1</own></psc>", 2337, "own"),
    (
        "<psc><Command>RegSub</Command><Topic>a</Topic><UNIQUE_CONNECTION_ID>1</UNIQUE_CONNECTION_ID></psc>",
        2337,
        "UNIQUE_CONNECTION_ID",
    ),
    ("<psc><Command>Publish</Command><Topic><a>b</a></Topic></psc>", 2337, "Topic"),
    ("<psc><Command>Publish</Command><Topic>a</Topic><Filter>x</Filter></psc>", 2337, "Filter"),
    ("<psc><Command>Publish</Command><Command>Publish</Command><Topic>a</Topic></psc>", 2338, "Command"),
    ("<psc><Command>Publish</Command></psc>", 2339, "Topic"),
    ("<psc><Command>Publish</Command><Topic></Topic></psc>", 3072, ""),
    ("<psc><Command>RegSub</Command><Topic>a</Topic><RegOpt>Anon</RegOpt></psc>", 3083, "Anon"),
    ("<psc><Command>RegSub</Command><Topic>a</Topic><RegOpt>Local </RegOpt></psc>", 3083, "Local "),
    ("<psc><Command>Publish</Command><Topic>a</Topic><PubOpt>NoReg</PubOpt></psc>", 3084, "NoReg"),
    ("<psc><Command>DeletePub</Command><Topic>a</Topic><DelOpt>2</DelOpt></psc>", 3087, "2"),
    ("<psc><Command>RegSub</Command><Topic>a</Topic><Filter></Filter></psc>", 3150, ""),
    (f"<psc><Command>RegSub</Command><Topic>a</Topic><SubPoint>{'p' * 129}</SubPoint></psc>", 2337, "SubPoint"),
    ("<psc><Command>Publish</Command", 2421, None),
]


@pytest.mark.parametrize(("folder", "reason_code", "parameter"), WRONG_FOLDERS)
def test_a_wrong_psc_folder_has_its_reason_code(folder: str, reason_code: int, parameter: str | None) -> None:
    with pytest.raises(MappingError) as caught:
        from_psc(folder)
    assert (caught.value.reason_code, caught.value.parameter) == (reason_code, parameter)


def test_one_deregistration_may_ask_for_a_full_response() -> None:
    command = from_string("MQPSCommand DeregSub MQPSRegOpts FullResp MQPSTopic a")
    assert command == DeregisterSubscriber(topics=("a",), registration_options=RegistrationOption.FULL_RESPONSE)


def test_psc_may_name_topics_beside_dereg_all() -> None:
    command = from_psc("<psc><Command>DeregSub</Command><RegOpt>DeregAll</RegOpt><Topic>a</Topic></psc>")
    assert command == DeregisterSubscriber(topics=("a",), registration_options=RegistrationOption.DEREGISTER_ALL)


@pytest.mark.parametrize(
    ("data", "format"),
    [
        (b"body", b"MQSTR   "),
        (mqrfh2("<usr></usr>"), FORMAT_MQRFH2),
        (mqrfh2("<psc><Command>Publish</Command></psc>", "<psc><Command>Publish</Command></psc>"), FORMAT_MQRFH2),
        (mqrfh("a b ").replace(b"        ", b"MQHRF   ", 1) + mqrfh("c d "), FORMAT_MQRFH),
        (mqrfh("a b ").replace(b"        ", b"MQHRF2  ", 1) + mqrfh2("<psc></psc>"), FORMAT_MQRFH),
    ],
)
def test_a_message_with_no_command_or_two_is_refused(data: bytes, format: bytes) -> None:
    with pytest.raises(CommandError) as caught:
        read_command(chain_of(data, format))
    assert caught.value.reason_code == 2334


UNSAYABLE: list[tuple[Command, Dialect, int]] = [
    (RegisterPublisher(topics=("a",)), Dialect.MQRFH2, 2336),
    (Publish(topics=("a",), stream_name="S"), Dialect.MQRFH2, 2337),
    (Publish(topics=("a",), data=(("own", "1"),)), Dialect.MQRFH2, 2337),
    (RegisterSubscriber(topics=("a",), filter="x"), Dialect.MQRFH, 2337),
    (RegisterSubscriber(topics=("a",), subscription_point="x"), Dialect.MQRFH, 2337),
    (Publish(topics=("a\x02",)), Dialect.MQRFH2, 3072),
]


@pytest.mark.parametrize(("command", "dialect", "reason_code"), UNSAYABLE)
def test_what_a_dialect_cannot_say_is_not_written(command: Command, dialect: Dialect, reason_code: int) -> None:
    with pytest.raises(ConversionError) as caught:
        write_command(command, dialect)
    assert caught.value.reason_code == reason_code


def test_folders_are_not_written_into_mqrfh() -> None:
    with pytest.raises(ConversionError, match="has no folders"):
        write_command(Publish(topics=("a",)), Dialect.MQRFH, extra_folders=("<usr></usr>",))


INVALID: list[tuple[Command, int]] = [
    (Publish(topics=()), 2339),
    (Publish(topics=("a\0b",)), 3072),
    (DeregisterSubscriber(topics=("a",), subscription_user_data="x"), 2337),
    (RequestUpdate(topics=("a", "b")), 2338),
    (RegisterSubscriber(topics=("a",), queue_name="not a name"), 3076),
]


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize(("command", "reason_code"), INVALID)
def test_an_invalid_command_is_not_written(command: Command, reason_code: int, dialect: Dialect) -> None:
    with pytest.raises(CommandError) as caught:
        write_command(command, dialect)
    assert caught.value.reason_code == reason_code


def test_every_command_names_its_verb_and_cannot_be_changed() -> None:
    verbs = [command.verb for command in Command.__args__]
    assert verbs == ["Publish", "DeletePub", "RegSub", "DeregSub", "ReqUpdate", "RegPub", "DeregPub"]
    assert all("verb" not in {each.name for each in fields(command)} for command in Command.__args__)


@pytest.mark.timeout(30)
def test_half_a_million_repeated_topics_take_linear_time() -> None:
    string = "MQPSCommand Publish" + " MQPSTopic a" * 500_000
    assert len(from_string(string).topics) == 500_000
