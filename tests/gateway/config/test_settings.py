"""The settings: one TOML file, every key checked, every wrong one named."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.config import Address, ConfigurationError, Settings, example_toml, known_keys
from gateway.config.settings import TABLE_ARRAYS

#: Keys whose tables stand in [[ ]], as many as one likes.
ARRAYS = tuple(TABLE_ARRAYS)
CONVERSION = '[[conversion]]\nfrom = "{}"\nto = "{}"\nheader = "mqrfh2"\n'


@pytest.fixture
def load(tmp_path):
    """Loads the settings of a text."""

    def load_text(text, overrides=None):
        path = tmp_path / "rfhbridge.toml"
        path.write_text(text, encoding="utf-8")
        return Settings.load(path, overrides)

    return load_text


def test_defaults_hold_without_a_file():
    settings = Settings.load()
    assert (settings.listen, settings.data, settings.header) == ("127.0.0.1:1883", Path("var"), "mqrfh2")
    assert settings.queue_manager.name == "RFHBRIDGE"
    assert settings.publish.stream == "SYSTEM.BROKER.DEFAULT.STREAM"
    assert settings.broker.streams == ()
    assert (settings.subscribe.queue, settings.subscribe.reply_queue) == ("RFHBRIDGE.SUBSCRIBER", "RFHBRIDGE.REPLY")
    assert settings.mqtt.maximum_packet_bytes == 268_435_455
    assert (settings.access.publish, settings.access.subscribe) == (("#",), ("#",))
    assert (settings.audit.enabled, settings.audit.segment_bytes) == (True, 67_108_864)
    assert (settings.log.level, settings.log.format) == ("info", "text")


def test_file_changes_what_it_names_and_nothing_else(load):
    settings = load('[mqtt]\nmaximum_in_flight = 7\nconnect_timeout_s = 3\n[broker]\nstreams = ["A", "B"]\n')
    assert (settings.mqtt.maximum_in_flight, settings.mqtt.connect_timeout_s) == (7, 3.0)
    assert settings.broker.streams == ("A", "B")
    assert settings.access == Settings().access


def test_the_gateway_may_have_a_name(load):
    assert load('name = "Plant north, line 3"\n').name == "Plant north, line 3"
    for wrong in (" north", "north\\n", "x" * 65):
        with pytest.raises(ConfigurationError, match=r"name: .*must have at most 64 visible characters"):
            load(f'name = "{wrong}"\n')


def test_broker_of_the_other_dialect_has_input_queues_and_subscription_points(load):
    text = '[broker]\ndialect = "wmb"\ninput_queues = ["IN"]\nimplicit_stream_naming = true\n'
    broker = load(text + '[broker.subscription_points]\n"IN.EUR" = "euro"\n').broker
    assert (broker.dialect, broker.implicit_stream_naming) == ("wmb", True)
    assert broker.all_input_queues == ("IN", "IN.EUR")
    assert broker.subscription_points == {"IN.EUR": "euro"}


def test_overrides_go_before_the_file_and_none_is_no_override(load):
    settings = load(
        'listen = "h:1"\n[log]\nlevel = "error"\n', {"listen": "h:2", "log.level": None, "log.format": "json"}
    )
    assert (settings.listen, settings.log.level, settings.log.format) == ("h:2", "error", "json")


def test_settings_cannot_be_changed():
    with pytest.raises(ValidationError):
        Settings().listen = "h:1"


@pytest.mark.parametrize(
    ("text", "unknown", "nearest"),
    [
        ('listn = "h:1"', "listn", "listen"),
        ("[mqtt]\nmax_in_flight = 3", "mqtt.max_in_flight", "mqtt.maximum_in_flight"),
        ("maximum_in_flight = 3", "maximum_in_flight", "mqtt.maximum_in_flight"),
        ("[mqtt]\nsegment_bytes = 3", "mqtt.segment_bytes", "audit.segment_bytes"),
        ("[mqt]\nx = 1", "mqt", "mqtt"),
        ("[subscribe]\nanswer_timeout = 1", "subscribe.answer_timeout", "subscribe.answer_timeout_s"),
        ("[acess]\npublish = []", "acess", "access"),
    ],
)
def test_unknown_key_is_an_error_that_names_the_nearest_with_its_full_path(load, text, unknown, nearest):
    with pytest.raises(ConfigurationError) as raised:
        load(text)
    assert raised.value.problems == (f"unknown key {unknown!r}, the nearest known key is {nearest!r}",)


@pytest.mark.parametrize("key", known_keys())
def test_key_with_a_letter_too_much_names_the_right_one(load, key):
    table, _, name = key.rpartition(".")
    array = table.partition(".")[0]
    heading = f"[[{array}]]\n" if array in ARRAYS and array != table else ""
    heading += f"[[{table}]]" if table in ARRAYS else f"[{table}]"
    text = f"{heading}\n{name}x = 1\n" if table else f"{name}x = 1\n"
    with pytest.raises(ConfigurationError, match=f"the nearest known key is '{key}'"):
        load(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('listen = "1883"', "listen: '1883' is not HOST:PORT"),
        ('listen = "h:65536"', "port from 0 to 65535"),
        ('listen = "::1:1883"', "is not HOST:PORT or [IPV6]:PORT"),
        ("listen = 1883", "listen: "),
        ('data = ""', "data: an empty text names no folder"),
        ('data = "s3://trails/north"', "data: a folder of this machine is needed here, not a URI"),
        ('rescue_folder = "s3://b/rescue"', "rescue_folder: a folder of this machine is needed here, not a URI"),
        ('[audit]\ncopy_folder = "s3://b/copies"', "audit.copy_folder: a folder of this machine is needed here"),
        (
            '[queue_manager]\nsocket_folder = "s3://b"',
            "queue_manager.socket_folder: a folder of this machine is needed",
        ),
        ("[mqtt]\nversions = []", "mqtt.versions: must not be empty"),
        ("listen = true", "listen: must be a valid string, not true"),
        ('header = "mqrfh3"', "header: must be 'mqrfh2' or 'mqrfh', not 'mqrfh3'"),
        ('[queue_manager]\nname = ""', "queue_manager.name: '' is not an MQ name"),
        (f'[queue_manager]\nname = "{"Q" * 49}"', "1 to 48 characters"),
        ('[publish]\nstream = "A B"', "publish.stream: 'A B' is not an MQ name"),
        ('[broker]\ndialect = "mq7"', "broker.dialect: must be 'mq6' or 'wmb', not 'mq7'"),
        ('[broker]\ninput_queues = ["A"]', "broker: input_queues and implicit_stream_naming belong to dialect 'wmb'"),
        ("[broker]\nimplicit_stream_naming = true", "broker: input_queues and implicit_stream_naming belong"),
        ('[broker.subscription_points]\nA = ""', "broker.subscription_points.A: "),
        ('[broker]\nstreams = "A"', "broker.streams: must be an array, not 'A'"),
        ('[broker]\nstreams = ["A", "é"]', "broker.streams#2: 'é' is not an MQ name"),
        ("[subscribe]\nanswer_timeout_s = 0", "subscribe.answer_timeout_s: "),
        ("[subscribe]\nanswer_timeout_s = nan", "subscribe.answer_timeout_s: "),
        ("[mqtt]\nmaximum_in_flight = 65536", "mqtt.maximum_in_flight: "),
        ("[mqtt]\nmaximum_packet_bytes = 268435456", "mqtt.maximum_packet_bytes: "),
        ("[mqtt]\nmaximum_in_flight = true", "mqtt.maximum_in_flight: "),
        ('[access]\npublish = ["a/#/b"]', "access.publish#1: topic 'a/#/b' holds # before the last level"),
        ('[access]\nsubscribe = [""]', "access.subscribe#1: "),
        ("[audit]\nenabled = 1", "audit.enabled: "),
        ('[log]\nlevel = "loud"', "log.level: "),
        ("mqtt = 3", "mqtt: must be a table, not 3"),
        (
            "[mqtt]\nmaximum_sessions = 9223372036854775808",
            "mqtt.maximum_sessions: does not fit into the 64 bits of an",
        ),
        ('data = "a\\u0000b"', "data: has the character U+0000"),
        ('[[listener]]\ntls.key = "a\\u0000"', "listener#1.tls.key: has the character U+0000"),
        ("[mqtt]\nconnect_timeout_s = 1e300", "mqtt.connect_timeout_s: must be less than or equal to 31536000"),
        ("[mqtt]\nmaximum_unsent_bytes = 2147483648", "mqtt.maximum_unsent_bytes: must be less than or equal to 2147"),
        ("[mqtt]\nmaximum_queued_age_s = 9000000000000", "mqtt.maximum_queued_age_s: must be less than"),
        ("[audit]\nsegment_minutes = 9000000000000", "audit.segment_minutes: must be less than or equal to 525600"),
        ("[audit]\ncompress_after_hours = 1e300", "audit.compress_after_hours: must be less than or equal to 876000"),
        ("[audit]\nkeep_days = 1e300", "audit.keep_days: must be less than or equal to 36500"),
        ('[listener]\nname = "a"', "listener: must be an array of tables: write [[listener]]"),
    ],
)
def test_wrong_value_is_an_error_that_names_the_key(load, text, complaint):
    with pytest.raises(ConfigurationError) as raised:
        load(text)
    assert complaint in str(raised.value)
    assert "rfhbridge check --example" in raised.value.hint


def test_byte_order_mark_and_ends_of_lines_of_windows_change_nothing(load):
    assert load("\ufeff[mqtt]\r\nmaximum_in_flight = 7\r\n").mqtt.maximum_in_flight == 7


def test_a_file_without_end_is_none_of_a_configuration():
    with pytest.raises(ConfigurationError, match="has more than 16777216 characters"):
        Settings.load(Path("/dev/zero"))


def test_arrays_without_end_in_each_other_are_an_error_of_the_file(load):
    with pytest.raises(ConfigurationError, match="is nested too deeply"):
        load(f"x = {'[' * 5_000}{']' * 5_000}")
    with pytest.raises(ConfigurationError, match="unknown key 'a'"):
        load(f"a{'.a' * 2_000} = 1")


def test_conversions_are_read_with_their_defaults(load):
    settings = load(CONVERSION.format("IN", "OUT") + CONVERSION.format("A", "IN") + 'mode = "extended"\n')
    first, second = settings.conversion
    assert (first.source, first.target, first.header, first.mode, first.description) == (
        "IN",
        "OUT",
        "mqrfh2",
        "strict",
        "",
    )
    assert (second.target, second.mode) == ("IN", "extended")
    assert Settings().conversion == ()


@pytest.mark.parametrize(
    ("ways", "complaint"),
    [
        ([("A", "A")], "conversion#1: messages from 'A' come back to it"),
        ([("A", "B"), ("B", "C"), ("C", "A")], "conversion#3: messages from 'C' come back to it"),
        ([("A", "B"), ("B", "A"), ("C", "A")], "conversion#2: messages from 'B' come back to it"),
        ([("A", "B"), ("A", "C")], "conversion#2.from: 'A' has a conversion already"),
        (
            [("SYSTEM.BROKER.CONTROL.QUEUE", "A")],
            "conversion#1.from: 'SYSTEM.BROKER.CONTROL.QUEUE' cannot be converted",
        ),
        ([("SYSTEM.BROKER.DEFAULT.STREAM", "A")], "it is a stream"),
        ([("STOCK", "A")], "it is a stream"),
        ([("SYSTEM.RFHBRIDGE.AUDIT", "A")], "the audit trail is written from it"),
        ([("SYSTEM.DEAD.LETTER.QUEUE", "A")], "dead letters are put on it"),
        ([("SYSTEM.RFHBRIDGE.HELD", "A")], "dead letters wait on it for room"),
        ([("A", "SYSTEM.RFHBRIDGE.HELD")], "'SYSTEM.RFHBRIDGE.HELD' takes only messages of the gateway"),
        ([("RFHBRIDGE.SUBSCRIBER", "A")], "the gateway receives its publications on it"),
        ([("RFHBRIDGE.REPLY", "A")], "the gateway receives its answers on it"),
        (
            [("A", "SYSTEM.RFHBRIDGE.AUDIT")],
            "conversion#1.to: 'SYSTEM.RFHBRIDGE.AUDIT' takes only messages of the gateway",
        ),
        (
            [("A", "SYSTEM.DEAD.LETTER.QUEUE")],
            "conversion#1.to: 'SYSTEM.DEAD.LETTER.QUEUE' takes only messages of the gateway",
        ),
        ([("A B", "A")], "conversion#1.from: 'A B' is not an MQ name"),
    ],
)
def test_conversion_that_cannot_work_is_an_error_before_anything_starts(load, ways, complaint):
    with pytest.raises(ConfigurationError) as raised:
        load('broker.streams = ["STOCK"]\n' + "".join(CONVERSION.format(*way) for way in ways))
    assert complaint in str(raised.value)


@pytest.mark.parametrize("target", ["SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM", "A.NEW.QUEUE"])
def test_conversion_may_put_on_the_brokers_queues(load, target):
    assert load(CONVERSION.format("IN", target)).conversion[0].target == target


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[conversion]]\nfrom = "A"\nto = "B"\n', "conversion#1.header: is missing"),
        (CONVERSION.format("A", "B") + 'form = "C"\n', "unknown key 'conversion#1.form', the nearest known key is"),
        (CONVERSION.format("A", "B") + 'mode = "loose"\n', "conversion#1.mode: must be 'strict' or 'extended'"),
        ('[conversion]\nfrom = "A"\n', "conversion: must be an array of tables: write [[conversion]]"),
        ('[http]\nlisten = "8080"\n', "http.listen: '8080' is not HOST:PORT"),
        ("[http]\nmaximum_request_bytes = 104857601\n", "http.maximum_request_bytes: "),
    ],
)
def test_wrong_conversion_or_http_table_is_an_error_that_names_the_key(load, text, complaint):
    with pytest.raises(ConfigurationError) as raised:
        load(text)
    assert complaint in str(raised.value)


def test_http_is_off_and_on_loopback_unless_it_is_configured():
    http = Settings().http
    assert (http.enabled, http.address.host, http.address.port) == (False, "127.0.0.1", 8080)


def test_all_problems_of_a_file_are_named_at_once(load):
    with pytest.raises(ConfigurationError) as raised:
        load('listen = "x"\nhedder = "mqrfh"\n')
    assert raised.value.problems == (
        "listen: 'x' is not HOST:PORT or [IPV6]:PORT with a port from 0 to 65535",
        "unknown key 'hedder', the nearest known key is 'header'",
    )


WRONG = """listen = "x"

[mqtt]
maximum_in_flght = 3
versions = [
  "3.1",
  "9",
]

[[target]]
name = "A"
connections = ["h(1)"]

[[target]]
name = "A"
"""


def test_each_problem_has_its_line_and_stands_alone(load):
    with pytest.raises(ConfigurationError) as raised:
        load(WRONG)
    places = [complaint.removeprefix(raised.value.source).split(": ")[0] for complaint in raised.value.complaints]
    assert places == [":1", ":4", ":5"], "in the order of the file"
    assert raised.value.complaints[2].endswith("prints every key with its default)")


def test_problems_of_tables_together_have_their_lines_too(load):
    with pytest.raises(ConfigurationError) as raised:
        load(WRONG[WRONG.index("[[target]]") :] + 'connections = ["h(1)"]\n')
    assert raised.value.lines == (6, 0)
    assert raised.value.problems[0] == "target#2.name: there is a target 'A' already"


def test_a_problem_of_an_option_has_no_line(load):
    with pytest.raises(ConfigurationError) as raised:
        load('header = "mqrfh"\nlisten = "h:1"\n', {"listen": "x"})
    assert raised.value.lines == (0,)


def test_what_is_no_toml_has_its_line(load):
    with pytest.raises(ConfigurationError) as raised:
        load("[mqtt]\nversions = \n")
    assert raised.value.lines == (2,)


def test_a_very_long_file_costs_no_search_for_lines(load):
    with pytest.raises(ConfigurationError) as raised:
        load("\n" * 2_000 + "a = 1\n")
    assert raised.value.lines == (0,)


def test_file_that_is_no_toml_or_no_text_or_not_there_is_an_error_of_ours(load, tmp_path):
    with pytest.raises(ConfigurationError, match="is not TOML"):
        load("listen = ")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        Settings.load(tmp_path / "binary.toml")
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        Settings.load(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="Is a directory"):
        Settings.load(tmp_path)


def test_example_means_the_defaults_and_explains_every_key(load):
    example = example_toml()
    assert load(example) == Settings()
    lines = [line.replace("[[", "[").replace("]]", "]") for line in example.splitlines()]
    of_witness = lines.index("# [audit.witness]")
    in_comments = lines[of_witness : lines.index("", of_witness)] + lines[lines.index("# [listener]") :]
    lines += [line.removeprefix("# ") for line in in_comments]
    for key in known_keys():
        name = key.rpartition(".")[2]
        values = [index for index, line in enumerate(lines) if line.startswith(f"{name} = ")]
        assert values or f"[{key}]" in lines, key
        assert all(lines[index - 1].startswith("# ") for index in values), key


def test_configuration_sha256_depends_on_every_setting_and_on_nothing_else(load):
    assert load(example_toml()).configuration_sha256 == Settings().configuration_sha256
    assert load("[audit]\nenabled = false").configuration_sha256 != Settings().configuration_sha256
    assert len(bytes.fromhex(Settings().configuration_sha256)) == 32


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:1883", "127.0.0.1", 1883), ("[::1]:1883", "::1", 1883), ("localhost:0", "localhost", 0)],
)
def test_address_is_read_and_written_alike(text, host, port):
    address = Address.parse(text)
    assert (address.host, address.port, str(address)) == (host, port, text)
    assert Settings.load(None, {"listen": text}).listeners[0].address == address


@pytest.mark.parametrize("text", ["", ":", "h", "h:", ":1", "h:x", "h:-1", "[::1]", "::1:1", "[h]:1", "h:1:2", "h :1"])
def test_wrong_address_is_an_error(text):
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (
            {"subscribe.queue": "SYSTEM.BROKER.CONTROL.QUEUE"},
            "subscribe.queue: 'SYSTEM.BROKER.CONTROL.QUEUE' cannot be used",
        ),
        (
            {"publish.stream": "SYSTEM.RFHBRIDGE.AUDIT"},
            "'SYSTEM.RFHBRIDGE.AUDIT' cannot be used: the audit trail",
        ),
        (
            {"publish.stream": "RFHBRIDGE.SUBSCRIBER"},
            "'RFHBRIDGE.SUBSCRIBER' is the queue of publish.stream already",
        ),
        ({"subscribe.queue": "SYSTEM.BROKER.DEFAULT.STREAM", "publish.stream": "S"}, "is a stream"),
        ({"subscribe.reply_queue": "RFHBRIDGE.SUBSCRIBER"}, "is the queue of subscribe.queue already"),
        ({"http.enabled": True, "http.listen": "127.0.0.1:1883"}, "http.listen: 127.0.0.1:1883 is the address"),
    ],
)
def test_a_queue_or_an_address_that_is_taken_is_refused_before_the_start(
    overrides: dict[str, object], problem: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(None, overrides)
    assert problem in str(caught.value)


TARGET = '[[target]]\nname = "PLANT"\n'
ROUTE = '[[route]]\ntarget = "PLANT"\n'


def test_a_target_and_its_route_are_read_with_their_defaults(load):
    settings = load(TARGET + '[[route]]\ntarget = "PLANT"\ntopics = ["plant/#"]\nstream = "PLANT.STREAM"\n')
    (target,), (route,) = settings.target, settings.routes
    assert (target.name, target.mode, target.binding, target.connections) == (
        "PLANT",
        "client",
        "auto",
        ("localhost(1414)",),
    )
    assert (route.topics, route.stream, route.queue) == (("plant/#",), "PLANT.STREAM", "")


def test_everything_goes_to_the_only_target_where_there_is_no_route(load):
    assert [(route.target, route.topics) for route in load(TARGET).routes] == [("PLANT", ("#",))]
    assert load("").routes == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (TARGET + TARGET, "target#2.name: there is a target 'PLANT' already"),
        (TARGET + '[[target]]\nname = "HQ"\n', "route: is missing; with several targets, routes say"),
        (TARGET + ROUTE.replace("PLANT", "PLANET"), "route#1.target: there is no target 'PLANET'; known: PLANT"),
        (ROUTE, "route#1.target: there is no target 'PLANT'; known: none"),
        ('[[target]]\nname = "plant"\n', "target#1.name: 'plant' is not a name of a target"),
        (TARGET + "connections = []\n", "target#1: connections: name at least one HOST(PORT), or ccdt_url"),
        (TARGET + 'connections = ["mq1 1414"]\n', "target#1.connections#1: 'mq1 1414' is not a connection name"),
        (TARGET + 'password_file = "pw"\n', "target#1: user: is missing; a password needs a user"),
        (TARGET + 'binding = "pymqi"\nccdt_url = "file:///t"\n', "pymqi cannot use one"),
        (TARGET + 'binding = "native"\nccdt_url = "file:///t"\n', "native cannot use one"),
        (TARGET + 'binding = "native"\nmode = "bindings"\n', 'with binding "native" it must be "client"'),
        (TARGET + 'binding = "native"\n', "state_queue: RFHBRIDGE.STATE may be the other gateway's own"),
        (TARGET + 'jms_folders = true\nheader = "mqrfh"\n', "target#1: jms_folders: an MQRFH has no folders; write"),
        ('header = "mqrfh"\n[publish]\njms_folders = true\n', "publish.jms_folders: an MQRFH has no folders; write"),
        (TARGET + "retry_s = []\n", "target#1.retry_s: must not be empty"),
        (TARGET + "retry_s = [0, 5, 0]\n", "target#1.retry_s: the last number is for all later attempts: at least 0.1"),
        (TARGET + "retry_s = [-1, 5]\n", "target#1.retry_s#1: must be greater than or equal to 0"),
        (TARGET + "batch_messages = 9999\n", "target#1.batch_messages: must be less than or equal to 9998"),
        (TARGET + 'queue_manager = "RFHBRIDGE"\n', "target#1.queue_manager: 'RFHBRIDGE' is the embedded one"),
        (TARGET + 'reply_queue = "RFHBRIDGE.SUBSCRIBER"\n', "target#1.reply_queue: 'RFHBRIDGE.SUBSCRIBER' is"),
        (TARGET + 'users = { somebody = "THIRTEENCHARS" }\n', "'THIRTEENCHARS' is not a UserIdentifier"),
        (TARGET + ROUTE + 'topics = ["a/#/b"]\n', "route#1.topics#1: "),
        (TARGET + ROUTE + "topics = []\n", "route#1.topics: "),
    ],
)
def test_targets_and_routes_that_cannot_work_are_errors_that_name_the_key(load, text, complaint):
    with pytest.raises(ConfigurationError, match=re.escape(complaint)):
        load(text)


@pytest.mark.parametrize(
    ("table", "allows"),
    [
        ("", True),
        ("anonymous = true", True),
        ("password_file = 'users'", False),
        ("password_file = 'users'\nanonymous = 'auto'", False),
        ("password_file = 'users'\nanonymous = true", True),
        ("password_file = 'users'\nanonymous = false", False),
    ],
)
def test_anonymous_clients_are_allowed_while_no_password_file_is_named(
    tmp_path: Path, table: str, allows: bool
) -> None:
    path = tmp_path / "rfhbridge.toml"
    path.write_text(f"[access]\n{table}\n", encoding="utf-8")
    assert Settings.load(path).access.allows_anonymous is allows


@pytest.mark.parametrize(
    ("audit", "complaint"),
    [
        ('digest_target = "PLANT"\ndigest_queue = "D"', "audit.digest_target: there is no target 'PLANT'; known: none"),
        ('digest_queue = "D"', "audit.digest_queue: needs audit.digest_target"),
        ('copy_folder = "var/copy"', "audit.copy_folder: 'var/copy' is in the data folder"),
        ('personal_data = "hashed"', "audit.personal_data: must be 'plain' or 'keyed'"),
        ("keep_days = -1", "audit.keep_days: must be greater than or equal to 0"),
        ("compress_after_hours = inf", "audit.compress_after_hours: must be a finite number"),
    ],
)
def test_a_trail_that_goes_nowhere_is_an_error_that_names_the_key(load, audit: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(complaint)):
        load(f"[audit]\n{audit}\n")


def test_digests_may_go_to_a_target_that_there_is(load) -> None:
    audit = load(TARGET + '[audit]\ndigest_target = "PLANT"\ndigest_queue = "AUDIT.DIGESTS"\n').audit
    assert (audit.digest_target, audit.digest_queue) == ("PLANT", "AUDIT.DIGESTS")


CERTIFICATES = (
    '[[listener]]\nname = "secure"\nlisten = "127.0.0.1:8883"\ntls.certificate = "a"\ntls.key = "b"\n'
    'tls.client_authority = "c"\ntls.client_certificate = "required"\n'
)


@pytest.mark.parametrize("key", ["anonymous = false", "bind_client_identifier = true"])
@pytest.mark.parametrize(
    ("users", "is_right"),
    [
        ("", False),
        ('password_file = "users"\n', True),
        ('token.key_files = ["keys"]\n', True),
        (CERTIFICATES + 'tls.user_from_certificate = "common_name"\n', True),
    ],
)
def test_rules_for_users_need_something_that_tells_users_apart(load, key: str, users: str, is_right: bool) -> None:
    text = f"[access]\n{key}\n{users}"
    if is_right:
        assert load(text).access.anonymous in (False, "auto")
        return
    with pytest.raises(ConfigurationError, match="access: anonymous = false and bind_client_identifier = true need a"):
        load(text)


@pytest.mark.parametrize(
    ("token", "complaint"),
    [
        ('algorithms = ["none"]', "access.token.algorithms#1: must be 'RS256'"),
        ("algorithms = []", "access.token.algorithms: "),
        ('key_files = [""]', "access.token.key_files#1: "),
        (
            'issuer = "https://login"',
            "access.token: key_files: is missing; issuer needs keys, because without keys no token is accepted",
        ),
        ('audience = "mqtt"', "key_files: is missing; audience needs keys, because without keys no token is accepted"),
        ("leeway_s = -1", "access.token.leeway_s: must be greater than or equal to 0"),
        ("maximum_bytes = 65536", "access.token.maximum_bytes: must be less than or equal to 65535"),
        ('user_claim = ""', "access.token.user_claim: "),
        ('key_file = ["a"]', "unknown key 'access.token.key_file', the nearest known key is 'access.token.key_files'"),
    ],
)
def test_a_wrong_key_of_the_table_for_tokens_is_named(load, token: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(complaint)):
        load(f"[access.token]\n{token}\n")


def test_a_rescue_folder_in_the_data_folder_rescues_nothing(load):
    with pytest.raises(ConfigurationError) as error:
        load('data = "var"\nrescue_folder = "var/rescue"\n')
    assert "rescue_folder: 'var/rescue' is in the data folder" in str(error.value)
    settings = load('data = "var"\nrescue_folder = "variable"\n')
    assert settings.rescue == Path("variable").absolute()
