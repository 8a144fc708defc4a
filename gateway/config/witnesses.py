"""Witnesses: who else gets the digests of the trail, so that nobody on this machine can write them anew."""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gateway.config.values import Table, listed

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_BRANCH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*")
_LONGEST_BRANCH: Final = 200
#: user:password@ in an address.
_PASSWORD: Final = re.compile(r"//[^/@]*:[^/@]*@")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a witness: 1 to 32 characters, a to z, digits, _ and -")
    return name


def _checked_branch(branch: str) -> str:
    if len(branch) > _LONGEST_BRANCH or not _BRANCH.fullmatch(branch) or branch.endswith(".lock"):
        raise ValueError(f"{branch!r} is no name of a branch: letters, digits, _ and -, with . or / between them")
    return branch


class WitnessSettings(Table):
    """A witness that gets every digest of the trail; one [[audit.witness]] for each."""

    name: Annotated[str, AfterValidator(_checked_name)] = Field(
        description="name of the witness in the log, in metrics and in what `audit verify` says", examples=["office"]
    )
    type: Literal["git"] = Field(
        description='what it is: "git", a repository whose remote refuses forced pushes', examples=["git"]
    )
    remote: Annotated[str, Field(min_length=1)] = Field(
        description="address of the repository that digests are pushed to, as `git push` takes it",
        examples=["ssh://git@git.example.com/plant/digests.git"],
    )
    branch: Annotated[str, AfterValidator(_checked_branch)] = Field(
        default="main", description="branch of the repository; each gateway needs one of its own"
    )
    git_settings_file: str = Field(
        default="",
        description='file of settings of git that are used for it alone, core.sshCommand or credential.helper; "":'
        " none",
    )
    timeout_s: float = Field(
        default=60.0, gt=0, le=3_600, allow_inf_nan=False, description="seconds that one call of git may take"
    )

    @model_validator(mode="after")
    def _checked_remote(self) -> Self:
        if _PASSWORD.search(self.remote):
            raise ValueError("remote: holds a password; name a credential.helper in a file with git_settings_file")
        if self.remote.startswith("-") or "::" in self.remote:
            raise ValueError("remote: is no address of a repository")
        return self


Witnesses = Annotated[tuple[WitnessSettings, ...], BeforeValidator(listed)]
