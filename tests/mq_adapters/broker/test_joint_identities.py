"""Joint identities and SubName: what each RegSub and DeregSub answers, and what is left, as scripts of steps."""

import re
from dataclasses import dataclass

import pytest

OK, WARNING, ERROR = "ok", "warning", "error"


@dataclass(frozen=True)
class Step:
    """A command with these parameters (psc element=value, options by token; `alone`: no topic), and its answer."""

    verb: str
    parameters: str
    completion: str = OK
    reason: int = 0
    user: str = "ann"


SCRIPTS = {
    "shared identities join one after another": (
        Step("RegSub", "JoinShared SubIdentity=one"),
        Step("RegSub", "JoinShared SubIdentity=two"),
        Step("RegSub", "JoinShared SubIdentity=two", WARNING, 3157),
        Step("RegSub", "JoinExcl SubIdentity=two", ERROR, 3155),
        Step("RegSub", "JoinExcl SubIdentity=three", ERROR, 3155),
    ),
    "an exclusive identity locks the others out": (
        Step("RegSub", "JoinExcl SubIdentity=one"),
        Step("RegSub", "JoinExcl SubIdentity=two", ERROR, 3156),
        Step("RegSub", "JoinShared SubIdentity=two", ERROR, 3156),
        Step("RegSub", "JoinExcl SubIdentity=one"),
    ),
    "the holder turns its lock into a shared one": (
        Step("RegSub", "JoinExcl SubIdentity=one"),
        Step("RegSub", "JoinShared SubIdentity=one"),
        Step("RegSub", "JoinShared SubIdentity=two"),
    ),
    "the only one that shares turns that into a lock": (
        Step("RegSub", "JoinShared SubIdentity=one"),
        Step("RegSub", "JoinExcl SubIdentity=one"),
        Step("RegSub", "JoinShared SubIdentity=two", ERROR, 3156),
    ),
    "who has not joined may not act without joining": (
        Step("RegSub", "SubIdentity=one", ERROR, 3154),
        Step("RegSub", "JoinShared SubIdentity=one"),
        Step("RegSub", "SubIdentity=two", ERROR, 3154),
        Step("RegSub", "", ERROR, 3154),
        Step("RegSub", "NoAlter FullResp"),
        Step("RegSub", "SubIdentity=one"),
    ),
    "attributes that others share stay": (
        Step("RegSub", "JoinShared SubIdentity=one"),
        Step("RegSub", "JoinShared NonPers SubIdentity=one", WARNING, 3157),
        Step("RegSub", "JoinShared SubIdentity=two", ERROR, 3155),
        Step("RegSub", "JoinShared NoAlter SubIdentity=two"),
        Step("RegSub", "Pers SubIdentity=two", ERROR, 3155),
        Step("RegSub", "NonPers SubIdentity=two"),
    ),
    "joining needs an identity, and one way of joining": (
        Step("RegSub", "JoinShared", ERROR, 2339),
        Step("RegSub", "JoinExcl", ERROR, 2339),
        Step("RegSub", "JoinShared JoinExcl SubIdentity=one", ERROR, 3083),
        Step("RegSub", "Locked", ERROR, 3083),
        Step("DeregSub", "LeaveOnly", ERROR, 2339),
    ),
    "the subscription ends with the last that leaves": (
        Step("RegSub", "JoinShared SubIdentity=one"),
        Step("RegSub", "JoinShared SubIdentity=two"),
        Step("DeregSub", "SubIdentity=three", ERROR, 3154),
        Step("DeregSub", "SubIdentity=one"),
        Step("DeregSub", "SubIdentity=one", ERROR, 3154),
        Step("DeregSub", "SubIdentity=two"),
        Step("DeregSub", "SubIdentity=two", ERROR, 3073),
    ),
    "with LeaveOnly it stays when all have left": (
        Step("RegSub", "JoinExcl SubIdentity=one"),
        Step("DeregSub", "LeaveOnly SubIdentity=two", ERROR, 3154),
        Step("DeregSub", "LeaveOnly SubIdentity=one"),
        Step("RegSub", "JoinExcl SubIdentity=two"),
        Step("DeregSub", ""),
        Step("DeregSub", "", ERROR, 3073),
    ),
    "without SubIdentity it ends whoever has joined": (
        Step("RegSub", "JoinExcl SubIdentity=one"),
        Step("DeregSub", ""),
        Step("DeregSub", "", ERROR, 3073),
    ),
    "a name is added to a subscription without one": (
        Step("RegSub", ""),
        Step("RegSub", "SubName=mine", ERROR, 3152),
        Step("RegSub", "AddName", ERROR, 3083),
        Step("RegSub", "AddName SubName=mine"),
        Step("RegSub", "AddName SubName=mine", ERROR, 3152),
        Step("RegSub", "AddName SubName=other", ERROR, 3152),
        Step("RegSub", "SubName=other", ERROR, 3152),
        Step("RegSub", "SubName=mine"),
        Step("RegSub", ""),
    ),
    "a name belongs to one subscription": (
        Step("RegSub", "SubName=mine"),
        Step("RegSub", "SubName=mine Topic=b", ERROR, 3152),
        Step("RegSub", "SubName=yours Topic=b Topic=c", ERROR, 3152),
        Step("RegSub", "SubName=yours Topic=b"),
    ),
    "names are neither empty nor reserved": (
        Step("RegSub", "SubName=", ERROR, 3153),
        Step("RegSub", "SubName=MQ.MINE", ERROR, 3153),
        Step("RegSub", f"JoinShared SubIdentity={'x' * 129}", ERROR, 3154),
    ),
    "a subscription is deregistered by its name": (
        Step("RegSub", "SubName=mine"),
        Step("RegSub", "Topic=b"),
        Step("DeregSub", "SubName=yours", ERROR, 3073),
        Step("DeregSub", "SubName=mine Topic=b", user="bob", completion=ERROR, reason=3151),
        Step("DeregSub", "SubName=yours Topic=b", ERROR, 3153),
        Step("DeregSub", "SubName=mine Topic=elsewhere"),
        Step("DeregSub", "", ERROR, 3073),
        Step("DeregSub", "Topic=b"),
    ),
    "a name alone says which subscription is meant": (
        Step("RegSub", "SubName=mine"),
        Step("RegSub", "SubName=yours Topic=b"),
        Step("ReqUpdate", "SubName=mine alone", ERROR, 3077),
        Step("ReqUpdate", "SubName=mine alone", user="bob", completion=ERROR, reason=3151),
        Step("DeregSub", "SubName=mine alone", user="bob", completion=ERROR, reason=3151),
        Step("DeregSub", "SubName=mine alone"),
        Step("DeregSub", "SubName=mine alone", ERROR, 3073),
        Step("ReqUpdate", "SubName=mine alone", ERROR, 3073),
        Step("RegSub", "SubName=theirs alone", ERROR, 2339),
        Step("DeregSub", "FullResp SubName=yours alone"),
        Step("DeregSub", "Topic=b", ERROR, 3073),
    ),
    "a named subscription is deregistered by its topic too": (Step("RegSub", "SubName=mine"), Step("DeregSub", "")),
    "an update is requested by name": (
        Step("RegSub", "SubName=mine"),
        Step("RegSub", "Topic=b"),
        Step("ReqUpdate", "SubName=mine Topic=x", ERROR, 3077),
        Step("ReqUpdate", "SubName=mine Topic=x", user="bob", completion=ERROR, reason=3151),
        Step("ReqUpdate", "SubName=yours Topic=b", ERROR, 3153),
        Step("ReqUpdate", "SubName=yours Topic=x", ERROR, 3073),
    ),
    "another user needs VariableUserId on both sides": (
        Step("RegSub", "VariableUserId"),
        Step("RegSub", "", ERROR, 3078, user="bob"),
        Step("RegSub", "VariableUserId", user="bob"),
        Step("DeregSub", "", ERROR, 3151),
        Step("DeregSub", "VariableUserId"),
    ),
    "a full response on deregistration needs one topic": (
        Step("RegSub", "Topic=a Topic=b"),
        Step("DeregSub", "FullResp Topic=a Topic=b", ERROR, 3083),
        Step("DeregSub", "FullResp DeregAll", ERROR, 3083),
        Step("DeregSub", "FullResp Topic=a"),
    ),
    "a filter and a point are part of the identity": (
        Step("RegSub", "Filter=x=1"),
        Step("DeregSub", "", ERROR, 3073),
        Step("DeregSub", "Filter=x=2", ERROR, 3073),
        Step("DeregSub", "Filter=x=", ERROR, 3150),
        Step("DeregSub", "Filter=f(x)", ERROR, 2551),
        Step("ReqUpdate", "Filter=x=1", ERROR, 3077),
        Step("DeregSub", "Filter=x=1"),
        Step("RegSub", "SubPoint=p"),
        Step("ReqUpdate", "", ERROR, 3073),
        Step("DeregSub", "SubPoint=p"),
    ),
    "DeregAll takes the topics, the point and the filter that are named": (
        Step("RegSub", "Topic=a Topic=b"),
        Step("RegSub", "Topic=c SubPoint=p"),
        Step("RegSub", "Topic=d Filter=x=1"),
        Step("RegSub", "Topic=d Filter=x=1 SubPoint=p"),
        Step("DeregSub", "DeregAll Topic=z", ERROR, 3073),
        Step("DeregSub", "DeregAll Topic=a"),
        Step("ReqUpdate", "Topic=a", ERROR, 3073),
        Step("ReqUpdate", "Topic=b", ERROR, 3077),
        Step("DeregSub", "DeregAll Topic=d Filter=x=1 SubPoint=p"),
        Step("ReqUpdate", "Topic=d Filter=x=1 SubPoint=p", ERROR, 3073),
        Step("DeregSub", "DeregAll SubPoint=p"),
        Step("ReqUpdate", "Topic=c SubPoint=p", ERROR, 3073),
        Step("DeregSub", "DeregAll Filter=x=1"),
        Step("ReqUpdate", "Topic=d Filter=x=1", ERROR, 3073),
        Step("DeregSub", "DeregAll"),
        Step("DeregSub", "DeregAll", ERROR, 3073),
    ),
}
_ONLY_IN_MQRFH2 = ("Filter=", "SubPoint=", "DeregAll Topic")


def has_no_topic_of_its_own(step: Step) -> bool:
    return any(word in step.parameters for word in ("Topic=", "DeregAll", "alone"))


def _mqrfh2(step: Step) -> str:
    fields = [field.partition("=") for field in step.parameters.split() if field != "alone"]
    elements = "".join(
        f"<{name}>{value}</{name}>" if mark else f"<RegOpt>{name}</RegOpt>" for name, mark, value in fields
    )
    topic = "" if has_no_topic_of_its_own(step) else "<Topic>a</Topic>"
    return f"<psc><Command>{step.verb}</Command><QName>NEW</QName>{elements}{topic}</psc>"


def _mqrfh(step: Step) -> str:
    fields = [field.partition("=") for field in step.parameters.split() if field != "alone"]
    pairs = "".join(f' MQPS{name} "{value}"' if mark else f" MQPSRegOpts {name}" for name, mark, value in fields)
    topic = "" if has_no_topic_of_its_own(step) else " MQPSTopic a"
    return f"MQPSCommand {step.verb} MQPSQName NEW{pairs}{topic}"


def _answer(body: bytes) -> tuple[str, int]:
    text = body.decode("latin-1")
    if "<pscr>" in text:
        found = re.search(r"<Completion>(\w+)</Completion>.*?(?:<Reason>(\d+)|</pscr>)", text)
        return found[1], int(found[2] or 0)
    found = re.search(r"MQPSCompCode (\d) MQPSReason (\d+) MQPSReasonText \w+ MQPSCommand \w+", text)
    assert text.count("\0") >= 1
    return (OK, WARNING, ERROR)[int(found[1])], int(found[2])


def _play(station, steps, header) -> None:
    for number, step in enumerate(steps):
        station.control(header(step), user_identifier=step.user)
        (answer,) = station.bodies("REPLY")
        assert _answer(answer) == (step.completion, step.reason), (number, step)


@pytest.mark.parametrize("title", SCRIPTS)
def test_script_in_mqrfh2(station, title):
    _play(station, SCRIPTS[title], _mqrfh2)


@pytest.mark.parametrize(
    "title", [title for title, steps in SCRIPTS.items() if not any(name in str(steps) for name in _ONLY_IN_MQRFH2)]
)
def test_script_in_mqrfh(station, title):
    _play(station, SCRIPTS[title], _mqrfh)


@pytest.mark.parametrize("title", SCRIPTS)
def test_script_with_a_restart_between_any_two_steps(station, title):
    for step in SCRIPTS[title]:
        _play(station, [step], _mqrfh2)
        station.restart()


def test_full_response_shows_the_lock_to_others_and_the_identities(station):
    station.subscribe_new("a", "<RegOpt>JoinExcl</RegOpt><SubIdentity>one</SubIdentity><SubUserData>u</SubUserData>")
    inquiry = "<RegOpt>NoAlter</RegOpt><RegOpt>FullResp</RegOpt>"
    station.control(f"<psc><Command>RegSub</Command>{inquiry}<QName>NEW</QName><Topic>a</Topic></psc>")
    (answer,) = station.bodies("REPLY")
    assert b"<RegOpt>Locked</RegOpt><SubIdentity>one</SubIdentity><SubUserData>u</SubUserData></pscr>" in answer
    holder = "<psc><Command>DeregSub</Command><RegOpt>FullResp</RegOpt><QName>NEW</QName><Topic>a</Topic>"
    station.control(f"{holder}<SubIdentity>one</SubIdentity></psc>")
    (answer,) = station.bodies("REPLY")
    assert b"Locked" not in answer


def test_full_response_comes_with_the_warning_that_one_has_joined_before(station):
    command = "MQPSCommand RegSub MQPSRegOpts 196608 MQPSQName OLD MQPSTopic a MQPSSubIdentity one"
    station.control(command)
    station.bodies("REPLY")
    station.control(command, user_identifier="")
    (answer,) = station.bodies("REPLY")
    expected = (
        "MQPSCompCode 1 MQPSReason 3157 MQPSReasonText MQRCCF_ALREADY_JOINED MQPSCommand RegSub MQPSTopic a "
        'MQPSTopic a MQPSQMgrName QM1 MQPSQName OLD MQPSUserId "" MQPSSubIdentity one\0'
    )
    assert answer[32:].startswith(expected.encode())


def test_joined_subscription_delivers_one_copy(station):
    for identity in ("one", "two"):
        station.subscribe_new("a", f"<RegOpt>JoinShared</RegOpt><SubIdentity>{identity}</SubIdentity>")
    station.publish("MQPSCommand Publish MQPSTopic a")
    assert len(station.take_all("NEW")) == 1


def test_a_command_joins_by_name_whatever_topic_and_queue_it_says(station):
    """IBM's JMS client (provider version 6) takes hold of a durable subscription so before it ends it."""
    durable = "<RegOpt>1409025</RegOpt><SubName>JMS:QM1:c:kept</SubName><SubIdentity>&lt;null&gt;</SubIdentity>"
    station.control(
        f"<psc><Command>RegSub</Command>{durable}<QName>NEW</QName><Topic>a/#</Topic></psc>", correl_id=b"c" * 24
    )
    station.bodies("REPLY")
    unknown = durable.replace("1409025", "1409024")
    station.control(f"<psc><Command>RegSub</Command>{unknown}<Topic>JMS:SYS:Unknown</Topic></psc>")
    (answer,) = station.bodies("REPLY")
    for part in (
        b"<Completion>ok</Completion>",
        b"<Topic>a/#</Topic>",
        b"<QName>NEW</QName>",
        (b"c" * 24).hex().encode(),
    ):
        assert part in answer
    station.control(f"<psc><Command>RegSub</Command>{unknown}<Topic>x</Topic></psc>", user_identifier="bob")
    assert b"<Completion>ok</Completion>" in station.bodies("REPLY")[0]  # both sides say VariableUserId
    (found,) = station.engine.objects.publish_subscribe().subscriptions()
    assert (found.topic, found.joined, found.is_exclusive) == ("a/#", ("<null>",), True)
    other = unknown.replace("null", "other")
    station.control(f"<psc><Command>RegSub</Command>{other}<Topic>x</Topic></psc>")
    assert b"<Reason>3156</Reason>" in station.bodies("REPLY")[0]
    station.control("<psc><Command>DeregSub</Command><RegOpt>1048576</RegOpt><SubName>JMS:QM1:c:kept</SubName></psc>")
    assert b"<Completion>ok</Completion>" in station.bodies("REPLY")[0]


def test_a_name_that_nobody_has_makes_a_subscription(station):
    options = "<RegOpt>NoAlter</RegOpt><RegOpt>JoinExcl</RegOpt><SubName>n</SubName><SubIdentity>i</SubIdentity>"
    station.control(f"<psc><Command>RegSub</Command>{options}<QName>NEW</QName><Topic>a</Topic></psc>")
    (found,) = station.engine.objects.publish_subscribe().subscriptions()
    assert (found.topic, found.name, found.joined) == ("a", "n", ("i",))
