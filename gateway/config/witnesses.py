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


_URL: Final = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?(/[!-~]*)?")
_POLICY: Final = re.compile(r"[0-2](\.(0|[1-9][0-9]{0,38})){1,30}")
_OF_GIT: Final = frozenset(("remote", "branch", "git_settings_file"))
_OF_AUTHORITY: Final = frozenset(("url", "authority_file", "policy"))
#: Keys that a type needs, and those that go with another one.
_NEEDED: Final = {"git": ("remote",), "rfc3161": ("url", "authority_file")}
_OF_OTHERS: Final = {"git": _OF_AUTHORITY, "rfc3161": _OF_GIT}


def _checked_policy(policy: str) -> str:
    if policy and not _POLICY.fullmatch(policy):
        raise ValueError(f"{policy!r} is no object identifier: numbers with . between them, as in 1.3.6.1.4.1.99999.1")
    return policy


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
    type: Literal["git", "rfc3161"] = Field(
        description='what it is: "git", a repository whose remote refuses forced pushes; "rfc3161", a time-stamping'
        " authority",
        examples=["git"],
    )
    remote: str = Field(
        default="",
        description="git: address of the repository that digests are pushed to, as `git push` takes it",
        examples=["ssh://git@git.example.com/plant/digests.git"],
    )
    branch: Annotated[str, AfterValidator(_checked_branch)] = Field(
        default="main", description="git: branch of the repository; each gateway needs one of its own"
    )
    git_settings_file: str = Field(
        default="",
        description='git: file of settings of git that are used for it alone, core.sshCommand or credential.helper; "":'
        " none",
    )
    url: str = Field(
        default="", description="rfc3161: address of the authority, http or https", examples=["http://tsa.example.com"]
    )
    authority_file: str = Field(
        default="", description="rfc3161: PEM file of the certificates that the authority's certificate must lead to"
    )
    policy: Annotated[str, AfterValidator(_checked_policy)] = Field(
        default="", description='rfc3161: object identifier of the policy that time-stamps must have; "": any'
    )
    timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=3_600,
        allow_inf_nan=False,
        description="seconds that one call of git, or one request, may take",
    )

    @model_validator(mode="after")
    def _checked_type(self) -> Self:
        for name in _NEEDED[self.type]:
            if not getattr(self, name):
                raise ValueError(f"{name}: is missing; a witness of type {self.type} needs it")
        for name in sorted(self.model_fields_set & _OF_OTHERS[self.type]):
            raise ValueError(f"{name}: does not go with type {self.type}")
        return self

    @model_validator(mode="after")
    def _checked_address(self) -> Self:
        if _PASSWORD.search(self.remote):
            raise ValueError("remote: holds a password; name a credential.helper in a file with git_settings_file")
        if self.url and not _URL.fullmatch(self.url):
            raise ValueError("url: is no address; write http://HOST[:PORT]/PATH, or https, without a user")
        if self.remote.startswith("-") or "::" in self.remote:
            raise ValueError("remote: is no address of a repository")
        return self


Witnesses = Annotated[tuple[WitnessSettings, ...], BeforeValidator(listed)]
