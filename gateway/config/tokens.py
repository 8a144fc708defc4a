"""The table [access.token] of the configuration file: JSON Web Tokens that clients send as their MQTT password."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from gateway.config.values import Table, listed

TokenAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"
]


class TokenSettings(Table):
    """JSON Web Tokens as passwords."""

    key_files: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(listed)] = Field(
        default=(),
        description="files of the keys that verify tokens: PEM (public keys, certificates) or a JWK Set; without a"
        " file the gateway takes no tokens",
    )
    algorithms: Annotated[tuple[TokenAlgorithm, ...], BeforeValidator(listed), Field(min_length=1)] = Field(
        default=("RS256", "PS256", "ES256", "EdDSA", "HS256"),
        description="algorithms of signatures that are taken; a key verifies only those of its own kind",
    )
    issuer: str = Field(default="", description='value that "iss" of a token must have; "": any')
    audience: str = Field(
        default="", description='value that "aud" of a token must have or contain; "": a token with "aud" is refused'
    )
    user_claim: str = Field(default="sub", min_length=1, description="name of the claim that holds the user")
    leeway_s: int = Field(
        default=0, ge=0, le=3_600, description="seconds by which the clocks of issuer and gateway may differ"
    )
    maximum_bytes: int = Field(default=8_192, ge=1, le=65_535, description="bytes of the longest token that is taken")

    @model_validator(mode="after")
    def _checked_together(self) -> Self:
        for key in ("issuer", "audience"):
            if getattr(self, key) and not self.key_files:
                raise ValueError(f"key_files: is missing; {key} needs keys, because without keys no token is accepted")
        return self
