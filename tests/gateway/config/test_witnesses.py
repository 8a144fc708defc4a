"""Witnesses in the configuration: what cannot work is an error that names the key."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.audit_trail.plan import TrailPlan
from gateway.config import ConfigurationError, Settings

GIT = '[[audit.witness]]\nname = "office"\ntype = "git"\nremote = "ssh://git@git.example.com/digests.git"\n'

CLOCK = '[[audit.witness]]\nname = "clock"\ntype = "rfc3161"\nurl = "http://127.0.0.1:1"\nauthority_file = "root.pem"\n'
VAULT = '[[audit.witness]]\nname = "vault"\ntype = "s3"\nbucket = "plant-digests"\nkeep_days = 400\n'


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Settings]:
    def loaded(text: str) -> Settings:
        path = tmp_path / "rfhbridge.toml"
        path.write_text(text)
        return Settings.load(path)

    return loaded


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GIT + GIT, "there is a witness 'office' already"),
        (GIT.replace("office", "../office"), "is no name of a witness"),
        (GIT.replace("git@", "git:secret@"), "holds a password"),
        (GIT.replace("ssh://", "ext::"), "is not the address of a repository"),
        (GIT.replace("ssh://", "--upload-pack="), "is not the address of a repository"),
        (GIT + 'branch = "a..b"\n', "is no name of a branch"),
        (GIT + 'branch = "a.lock"\n', "is no name of a branch"),
        (GIT + "timeout_s = 0\n", "timeout_s"),
        (GIT.replace('"git"', '"notary"'), "type"),
        (
            GIT.replace("ssh://git@git.example.com/digests.git", ""),
            "remote: is missing; a witness of type git",
        ),
        (GIT + 'url = "http://127.0.0.1"\n', "url: does not belong to a witness of type git"),
        (CLOCK + 'branch = "main"\n', "branch: does not belong to a witness of type rfc3161"),
        (CLOCK.replace("authority_file", "policy"), "is no object identifier"),
        (CLOCK.replace('authority_file = "root.pem"\n', ""), "authority_file: is missing"),
        (CLOCK.replace("http://", "ftp://"), "url: is not an address"),
        (CLOCK.replace("http://", "http://user:secret@"), "url: is not an address"),
        (CLOCK + 'policy = "1.2.x"\n', "is no object identifier"),
        (VAULT.replace("plant-digests", "Plant"), "is no name of a bucket"),
        (VAULT.replace("keep_days = 400\n", ""), "keep_days: is missing; a witness of type s3"),
        (VAULT + 'prefix = "../plant"\n', "is no prefix"),
        (VAULT + 'prefix = "plant/"\n', "is no prefix"),
        (VAULT + 'endpoint = "http://user:secret@127.0.0.1"\n', "endpoint: is not an address"),
        (VAULT + 'url = "http://127.0.0.1"\n', "url: does not belong to a witness of type s3"),
        (CLOCK + "keep_days = 4\n", "keep_days: does not belong to a witness of type rfc3161"),
    ],
    ids=["twice", "name", "password", "helper", "option", "branch", "lock", "time", "type", *"abcdefghijklmno"],
)
def test_a_witness_that_cannot_work_is_refused(load: Callable[[str], Settings], text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(text)
    assert complaint in "; ".join(raised.value.problems)


def test_the_plan_of_the_exporter_has_each_witness(load: Callable[[str], Settings]) -> None:
    settings = load(GIT + 'git_settings_file = "git-settings"\n' + GIT.replace("office", "bank") + CLOCK + VAULT)
    plan = TrailPlan.of(settings)
    assert [witness.name for witness in plan.witnesses] == ["office", "bank", "clock", "vault"]
    assert Path(plan.witnesses[2].authority_file).is_absolute()
    assert (plan.witnesses[3].bucket, plan.witnesses[3].keep_days) == ("plant-digests", 400)
    assert Path(plan.witnesses[0].git_settings_file).is_absolute()
    assert TrailPlan.from_json(plan.to_json()) == plan
