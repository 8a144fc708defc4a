"""Witnesses in the configuration: what cannot work is an error that names the key."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.audit_trail.plan import TrailPlan
from gateway.config import ConfigurationError, Settings

GIT = '[[audit.witness]]\nname = "office"\ntype = "git"\nremote = "ssh://git@git.example.com/digests.git"\n'


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
        (GIT.replace("ssh://", "ext::"), "is no address of a repository"),
        (GIT.replace("ssh://", "--upload-pack="), "is no address of a repository"),
        (GIT + 'branch = "a..b"\n', "is no name of a branch"),
        (GIT + 'branch = "a.lock"\n', "is no name of a branch"),
        (GIT + "timeout_s = 0\n", "timeout_s"),
        (GIT.replace('"git"', '"notary"'), "type"),
    ],
    ids=["twice", "name", "password", "helper", "option", "branch", "lock", "time", "type"],
)
def test_a_witness_that_cannot_work_is_refused(load: Callable[[str], Settings], text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(text)
    assert complaint in "; ".join(raised.value.problems)


def test_the_plan_of_the_exporter_has_each_witness(load: Callable[[str], Settings]) -> None:
    settings = load(GIT + 'git_settings_file = "git-settings"\n' + GIT.replace("office", "bank"))
    plan = TrailPlan.of(settings)
    assert [witness.name for witness in plan.witnesses] == ["office", "bank"]
    assert Path(plan.witnesses[0].git_settings_file).is_absolute()
    assert TrailPlan.from_json(plan.to_json()) == plan
