"""The table [audit.signing_token]: what cannot work is an error that names the key, and a plan keeps the place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.audit_trail.plan import TrailPlan
from gateway.config import ConfigurationError, Settings

KEY = "d" * 64
TOKEN = (
    f'[audit.signing_token]\ntype = "pkcs11"\npublic_key = "{KEY}"\nmodule = "/lib/token.so"\ntoken = "trail"\n'
    'key = "signs"\npin_file = "pin"\n'
)
FORMER = f'[audit.former_signing_token]\ntype = "ssh-agent"\npublic_key = "{"e" * 64}"\nsocket = "old"\n'
AGENT = f'[audit.signing_token]\ntype = "ssh-agent"\npublic_key = "{KEY}"\nsocket = "agent"\n'


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Settings]:
    def loaded(text: str) -> Settings:
        path = tmp_path / "rfhbridge.toml"
        path.write_text(f'data = "{tmp_path / "data"}"\n{text}')
        return Settings.load(path)

    return loaded


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (TOKEN.replace('pin_file = "pin"\n', ""), "pin_file: is missing; type pkcs11 needs it"),
        (TOKEN + 'socket = "agent"\n', "socket: does not go with type 'pkcs11'"),
        (TOKEN.replace(KEY, "no key"), "is no public key"),
        (TOKEN.replace("pkcs11", "tpm"), "type"),
        (TOKEN + "pin = '4711'\n", "pin"),
        (TOKEN + "timeout_s = 601\n", "timeout_s"),
        (TOKEN + "timeout_s = inf\n", "timeout_s"),
        (AGENT + 'token = "trail"\n', "token: does not go with type 'ssh-agent'"),
        (AGENT.replace(KEY, "02" + KEY), "of an agent must be of Ed25519"),
        (AGENT.replace('socket = "agent"\n', ""), "socket: is missing"),
        ('[audit.signing_token]\nsocket = "agent"\n', "socket: does not go with type ''"),
        (FORMER, "hands over to signing_token, and there is none"),
        (TOKEN + FORMER.replace("e" * 64, KEY), "has the same public_key as signing_token"),
        (TOKEN + FORMER.replace('socket = "old"\n', ""), "socket: is missing"),
    ],
)
def test_a_place_of_a_key_that_cannot_work_is_told(load, text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        load(text)


@pytest.mark.parametrize("text", ["", TOKEN, TOKEN.replace(KEY, "02" + KEY), AGENT, TOKEN + FORMER])
def test_a_plan_that_is_kept_has_the_place(load, text: str, tmp_path: Path) -> None:
    plan = TrailPlan.of(load(text))
    trail = tmp_path / "data" / "trail"
    trail.mkdir(parents=True)
    plan.keep(trail)
    assert TrailPlan.kept(trail).signing_token == plan.signing_token
    assert TrailPlan.kept(trail).former_signing_token == plan.former_signing_token
    assert (plan.signing_token is None) == (not text)
    assert (plan.former_signing_token is None) == (FORMER not in text)
    if plan.signing_token is not None and plan.signing_token.type == "pkcs11":
        assert Path(plan.signing_token.pin_file).is_absolute()
