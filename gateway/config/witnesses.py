"""Witnesses: other places that get the digests of the trail, so that nobody on this machine can write them anew."""

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
#: Names of buckets (Amazon S3, "Bucket naming rules"), and keys of objects without what some servers change.
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_LONGEST_PREFIX: Final = 200
#: Keys that a type has, and those among them that it needs.
_OF_TYPE: Final = {
    "git": frozenset(("remote", "branch", "git_settings_file")),
    "rfc3161": frozenset(("url", "authority_file", "policy")),
    "s3": frozenset(("bucket", "prefix", "endpoint", "region", "credentials_file", "keep_days")),
}
_NEEDED: Final = {"git": ("remote",), "rfc3161": ("url", "authority_file"), "s3": ("bucket", "keep_days")}


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


def _checked_bucket(bucket: str) -> str:
    if bucket and not _BUCKET.fullmatch(bucket):
        raise ValueError(f"{bucket!r} is no name of a bucket: 3 to 63 characters, a to z, digits, - and .")
    return bucket


def _checked_prefix(prefix: str) -> str:
    if prefix and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix)):
        raise ValueError(f"{prefix!r} is no prefix: letters, digits, _, - and ., with / between them, none at the end")
    return prefix


class WitnessSettings(Table):
    """A witness that gets every digest of the trail; one [[audit.witness]] for each."""

    name: Annotated[str, AfterValidator(_checked_name)] = Field(
        description="name of the witness in the log, in metrics and in what `audit verify` says", examples=["office"]
    )
    type: Literal["git", "rfc3161", "s3"] = Field(
        description='what it is: "git", a repository whose remote refuses forced pushes; "rfc3161", a time-stamping'
        ' authority; "s3", a bucket with object lock',
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
    bucket: Annotated[str, AfterValidator(_checked_bucket)] = Field(
        default="", description="s3: name of the bucket, which was made with object lock", examples=["plant-digests"]
    )
    prefix: Annotated[str, AfterValidator(_checked_prefix)] = Field(
        default="", description="s3: what the keys of objects begin with; each gateway needs one of its own"
    )
    endpoint: str = Field(
        default="",
        description='s3: address of the server, http or https; "": Amazon\'s',
        examples=["https://s3.example.com"],
    )
    region: str = Field(default="", description='s3: region of the bucket; "": what the environment says')
    credentials_file: str = Field(
        default="",
        description="s3: file with aws_access_key_id and aws_secret_access_key under [default], as Amazon's tools have"
        ' it; "": what their environment says',
    )
    keep_days: float = Field(
        default=0.0,
        ge=0,
        le=36_500,
        allow_inf_nan=False,
        description="s3: days for which each digest is locked; nobody can shorten that afterwards",
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
        of_others = frozenset[str]().union(*_OF_TYPE.values()) - _OF_TYPE[self.type]
        for name in sorted(self.model_fields_set & of_others):
            raise ValueError(f"{name}: does not belong to a witness of type {self.type}")
        return self

    @model_validator(mode="after")
    def _checked_address(self) -> Self:
        if _PASSWORD.search(self.remote):
            raise ValueError("remote: holds a password; name a credential.helper in a file with git_settings_file")
        if self.url and not _URL.fullmatch(self.url):
            raise ValueError(
                "url: is not an address; write http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH, without a user"
            )
        if self.endpoint and not _URL.fullmatch(self.endpoint):
            raise ValueError("endpoint: is not an address; write https://HOST[:PORT], without a user")
        if self.remote.startswith("-") or "::" in self.remote:
            raise ValueError("remote: is not the address of a repository; write ssh://HOST/PATH, for example")
        return self


Witnesses = Annotated[tuple[WitnessSettings, ...], BeforeValidator(listed)]
