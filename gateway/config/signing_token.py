"""Where the configured signing key lies when it is no file: in a PKCS #11 token, or behind an agent's socket."""

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gateway.config.values import Table
from spark_audit.trail.signature import PUBLIC_KEY, algorithm_of

#: Keys that a type has, all of which it needs.
_OF_TYPE: Final = {
    "": frozenset[str](),
    "pkcs11": frozenset(("public_key", "module", "token", "key", "pin_file")),
    "ssh-agent": frozenset(("public_key", "socket")),
}


def _checked_key(key: str) -> str:
    if key and not PUBLIC_KEY.fullmatch(key):
        raise ValueError(f"{key[:80]!r} is no public key: 64 hex digits (66 for P-256); `rfhbridge check` tells it")
    return key


class SigningTokenSettings(Table):
    """A token or an agent that has the key which countersigns digests, in the place of a file."""

    type: Literal["", "pkcs11", "ssh-agent"] = Field(
        default="", description='what has the key: "pkcs11", a token; "ssh-agent", an agent; "": a file, signing_key'
    )
    public_key: Annotated[str, AfterValidator(_checked_key)] = Field(
        default="", description="the public key, hex; an agent may have several"
    )
    module: str = Field(default="", description="pkcs11: file of the library of the token's maker")
    token: str = Field(default="", description="pkcs11: label of the token")
    key: str = Field(default="", description="pkcs11: label of the key, Ed25519 or P-256, and of its public half")
    pin_file: str = Field(default="", description="pkcs11: file with the PIN in its first line, mode 0600")
    socket: str = Field(default="", description="ssh-agent: its Unix socket; the key is of Ed25519")
    timeout_s: float = Field(
        default=10.0, gt=0, le=600, allow_inf_nan=False, description="seconds that one signature may take"
    )

    @model_validator(mode="after")
    def _checked_type(self) -> Self:
        needed = _OF_TYPE[self.type]
        for name in sorted(needed):
            if not getattr(self, name):
                raise ValueError(f"{name}: is missing; type {self.type} needs it")
        for name in sorted(name for name in frozenset().union(*_OF_TYPE.values()) - needed if getattr(self, name)):
            raise ValueError(f"{name}: does not go with type {self.type!r}")
        if self.type == "ssh-agent" and algorithm_of(self.public_key) != "Ed25519":
            raise ValueError("public_key: of an agent must be of Ed25519, 64 hex digits")
        return self
