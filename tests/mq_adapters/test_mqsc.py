"""MQSC as text, and what the command server answers. Commands are those of IBM's documentation, adapted in names."""

import pytest

from mq_adapters.broker.broker import unattended_administration
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.mqsc import MqscSyntaxError, commands_of, quoted, read_command


def test_comments_blank_lines_and_continuations_are_understood():
    script = [
        "* queues of the shop",
        "",
        "DEFINE QLOCAL(ORDERS) +",
        "       DESCR('one +",
        "       line') +",
        "* a comment in the middle",
        "       MAXDEPTH(5)",
        "ALTER QLOCAL(ORDERS) DESCR('kept -",
        "  blanks')",
        "DISPLAY QLOCAL(ORDERS)",
    ]
    assert list(commands_of(script)) == [
        "DEFINE QLOCAL(ORDERS) DESCR('one line') MAXDEPTH(5)",
        "ALTER QLOCAL(ORDERS) DESCR('kept   blanks')",
        "DISPLAY QLOCAL(ORDERS)",
    ]


def test_an_unfinished_command_at_the_end_is_given():
    assert list(commands_of(["DEFINE QLOCAL(A) +"])) == ["DEFINE QLOCAL(A) "]


def test_names_and_values_without_quotes_are_folded_to_upper_case():
    command = read_command("define ql( orders.in ) descr('It''s ours') maxdepth (5) replace")
    assert (command.verb, command.target.keyword, command.target.items) == ("DEFINE", "QL", ("ORDERS.IN",))
    assert [(each.keyword, each.items) for each in command.parameters] == [
        ("DESCR", ("It's ours",)),
        ("MAXDEPTH", ("5",)),
        ("REPLACE", None),
    ]


def test_commas_between_parameters_and_a_semicolon_at_the_end_are_allowed():
    command = read_command("ALTER QL('lower'), PUT(DISABLED) , GET(ENABLED);")
    assert command.target.items == ("lower",)
    assert [each.keyword for each in command.parameters] == ["PUT", "GET"]


def test_a_list_of_names_and_a_condition_have_several_items():
    assert read_command("ALTER NL(N) NAMES(A,'b', C)").parameters[0].items == ("A", "b", "C")
    assert read_command("DIS QL(*) WHERE(CURDEPTH GT 0)").parameters[0].items == ("CURDEPTH", "GT", "0")


@pytest.mark.parametrize(
    "text",
    ["", "DEFINE", "DEFINE QL(A", "DEFINE QL(A) DESCR('x", "DEFINE QL(A) (5)", "DEFINE QL(A)) PUT(ENABLED)", "?"],
)
def test_what_is_no_command_is_a_syntax_error(text):
    with pytest.raises(MqscSyntaxError):
        read_command(text)


@pytest.mark.parametrize(("value", "shown"), [("A.B", "A.B"), ("a", "'a'"), ("it's", "'it''s'"), ("", " ")])
def test_a_value_that_could_be_misread_is_shown_in_quotes(value, shown):
    assert quoted(value) == shown


# -- the command server ------------------------------------------------------------------------------------------------


@pytest.fixture
def said(engine):
    """Carries out a command and gives its lines; `!` before a command that must fail."""
    engine.objects.publish_subscribe = lambda: unattended_administration(engine)
    server = CommandServer(engine)

    def say(command):
        answer = server.execute(command.removeprefix("!"))
        assert answer.succeeded is not command.startswith("!"), answer.lines
        return list(answer.lines)

    return say


def test_a_queue_is_defined_altered_displayed_cleared_and_deleted(said):
    assert said("DEFINE QLOCAL(A) MAXDEPTH(7)") == ["AMQ8006I: Queue created."]
    assert said("ALTER QL(A) BOTHRESH(2)") == ["AMQ8008I: Queue changed."]
    assert said("DIS QL(A) MAXDEPTH BOTHRESH") == [
        "AMQ8409I: Display Queue details.",
        "   QUEUE(A)                                TYPE(QLOCAL)",
        "   BOTHRESH(2)                             MAXDEPTH(7)",
    ]
    assert said("CLEAR QL(A)") == ["AMQ8022I: Queue cleared."]
    assert said("DELETE QL(A)") == ["AMQ8007I: Queue deleted."]
    assert said("!DIS QL(A)") == ["AMQ8147E: Object A not found."]


def test_define_says_what_is_there_already_unless_it_replaces(said):
    said("DEFINE QL(A) MAXDEPTH(7) BOTHRESH(2)")
    assert said("!DEFINE QL(A)") == ["AMQ8150E: The object already exists."]
    assert said("!DEFINE QALIAS(A) TARGET(B)") == ["AMQ8150E: The object already exists."]
    assert said("DEFINE QL(A) MAXDEPTH(8) REPLACE") == ["AMQ8008I: Queue changed."]
    assert "BOTHRESH(0)" in said("DIS QL(A) BOTHRESH")[-1]


def test_an_object_may_be_like_another(said):
    said("DEFINE QL(A) MAXDEPTH(7) DESCR('first')")
    said("DEFINE QL(B) LIKE(A) MAXDEPTH(9)")
    assert said("DIS QL(B) MAXDEPTH DESCR")[-1] == "   DESCR('first')                          MAXDEPTH(9)"
    assert said("!DEFINE QL(C) LIKE(NONE)") == ["AMQ8147E: Object NONE not found."]


def test_a_generic_name_and_a_condition_choose_what_is_displayed(said):
    for name in ("SHOP.A", "SHOP.B", "YARD.A"):
        said(f"DEFINE QL({name})")
    said("ALTER QL(SHOP.B) MAXDEPTH(3)")
    assert [line.split()[0] for line in said("DIS Q(SHOP*) TYPE") if "QUEUE(" in line] == [
        "QUEUE(SHOP.A)",
        "QUEUE(SHOP.B)",
    ]
    assert "QUEUE(SHOP.B)" in said("DIS QL(*) WHERE(MAXDEPTH LT 10)")[1]
    said("ALTER QL(YARD.A) DESCR('goods in the yard')")
    assert "QUEUE(YARD.A)" in said("DIS QL(*) WHERE(DESCR LK 'goods*')")[1]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("!DEFINE QL(A) TRIGGER", "TRIGGER"),
        ("!DEFINE QL(A) CLUSTER(C)", "CLUSTER"),
        ("!DEFINE QL(A) MAXDEPTH(many)", "MAXDEPTH(MANY)"),
        ("!DEFINE QL(A) MAXDEPTH", "MAXDEPTH"),
        ("!DEFINE QL(A) PUT(PERHAPS)", "ENABLED or DISABLED"),
        ("!DEFINE QL('A B')", "1 to 48"),
        ("!DEFINE CHANNEL(C) CHLTYPE(SDR)", "SVRCONN"),
        ("!START LISTENER(L)", "START"),
        ("!DISPLAY QL(ORDERS) CLUSTER", "CLUSTER"),
        ("!DISPLAY QL(*) WHERE(CLUSTER EQ 1)", "CLUSTER"),
        ("!DELETE QMGR", "DELETE QMGR"),
        ("!ALTER QMGR PSMODE(ENABLED)", "PSMODE"),
        ("!CLEAR QALIAS(A)", "CLEAR QALIAS"),
        ("!DELETE QL(SYSTEM.BROKER.CONTROL.QUEUE)", "in use"),
        ("!DEFINE SUB(S)", "DEST"),
        ("!DISPLAY QL(*) WHERE(MAXDEPTH LT 0)", "AMQ8147E: Object * not found."),
        ("!DISPLAY QMGR WHERE(DEADQ EQ NONE)", "AMQ8147E: Object RFHBRIDGE not found."),
        ("!DISPLAY QL(*) WHERE(MAXDEPTH ABOUT 1)", "operator ABOUT"),
        ("!DEFINE QL(A) MAXDEPTH(1) MAXDEPTH(2)", "MAXDEPTH is given more than once"),
        ("!DEFINE QL(A) DESCR('a','b')", "DESCR(a,b): give one value"),
        ("!ALTER Q(ORDERS) MAXDEPTH(1)", "Q is not supported"),
    ],
)
def test_what_there_is_not_is_refused_by_its_name(said, command, named):
    assert named in said(command)[0]


def test_everything_that_is_wrong_with_a_command_is_named_at_once(said, engine):
    assert said("!DEFINE QL(A) TRIGGER CLUSTER(C) MAXDEPTH(MANY) PUT(PERHAPS) SHARE") == [
        "AMQ8405E: QLOCAL has no attributes TRIGGER, CLUSTER, SHARE here.",
        "AMQ8405E: MAXDEPTH(MANY): the value must be a number from 0 to 999999999.",
        "AMQ8405E: PUT(PERHAPS): the value must be ENABLED or DISABLED.",
    ]
    assert said("!DIS QL(ORDERS) TRIGGER SHARE") == ["AMQ8405E: attributes TRIGGER, SHARE are not supported here."]
    assert engine.objects.find_queue("A") is None


def test_a_queue_with_uncommitted_messages_is_not_cleared(said, engine):
    application = Application(engine)
    application.begin()
    application.put("ORDERS", Message(MessageDescriptor(), b"one"), lambda: None)
    assert said("!CLEAR QL(ORDERS)") == ["AMQ8148E: The object is in use."]
    application.commit(lambda: None)
    assert said("CLEAR QL(ORDERS)") == ["AMQ8022I: Queue cleared."]
    assert engine.queue("ORDERS").depth == 0


def test_topics_namelists_and_the_queue_manager_have_attributes_too(said, engine):
    assert said("DEFINE TOPIC(PRICES) TOPICSTR('shop/prices')") == ["AMQ8690I: Topic created."]
    assert said("DEFINE NAMELIST(STREAMS) NAMES(A,B)") == ["AMQ8552I: Namelist created."]
    assert said("ALTER NL(STREAMS) NAMES(C)") == ["AMQ8551I: Namelist changed."]
    assert said("DIS NL(STREAMS) NAMES") == [
        "AMQ8550I: Display namelist details.",
        "   NAMELIST(STREAMS)                       NAMES(C)",
    ]
    assert said("DIS TOPIC(PRI*) TOPICSTR")[1] == "   TOPIC(PRICES)                           TOPICSTR('shop/prices')"
    assert said("DELETE TOPIC(PRICES)") == ["AMQ8692I: Topic deleted."]
    assert said("ALTER QMGR DEADQ(ORDERS)") == ["AMQ8005I: Queue manager changed."]
    assert engine.objects.dead_letter_queue is engine.queue("ORDERS")
    assert said("DIS QMGR QMNAME")[1].strip() == "QMNAME(RFHBRIDGE)"


def test_the_name_of_the_queue_manager_is_kept_in_the_store(data_folder):
    from mq_adapters.embedded.engine import Engine

    Engine.open(data_folder, name="HARBOUR").close()
    again = Engine.open(data_folder)
    assert again.name == "HARBOUR"
    again.close()
