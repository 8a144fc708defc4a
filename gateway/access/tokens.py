"""JSON Web Tokens (RFC 7519) that clients send as their MQTT password.

A token names its user in a claim (`sub`) and must have an end (`exp`). Its signature is checked with the operator's
keys, by an algorithm that the key itself allows. One check takes 50 to 140 microseconds (measured; on P-384 and P-521
700), so it runs on the event loop, and is not remembered.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import jwt

from gateway.access.external_users import ExternalUser, TokenRefused, is_user_name
from gateway.access.token_keys import TokenKey, read_token_keys
from gateway.config.error import ConfigurationError
from gateway.config.tokens import TokenSettings

_SECOND_US: Final = 1_000_000
#: The end of the year 9999, in seconds since 1970: a later one means the same.
_LATEST_S: Final = 253_402_300_799
#: Why a token is refused, by the kind of PyJWT's error, the first that fits. Never the error's own text, which may
#: quote the token.
_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (jwt.ExpiredSignatureError, "has expired"),
    (jwt.ImmatureSignatureError, "is not valid yet"),
    (jwt.InvalidAudienceError, "is for another audience"),
    (jwt.InvalidIssuerError, "is from another issuer"),
    (jwt.InvalidSignatureError, "is signed with another key"),
    (jwt.InvalidAlgorithmError, "is signed by another algorithm"),
)


class Tokens:
    """Checks tokens with the keys of the files."""

    def __init__(self, keys: Iterable[TokenKey], settings: TokenSettings) -> None:
        self.keys = tuple(keys)
        self._settings = settings
        self._algorithms = frozenset(settings.algorithms)

    @classmethod
    def read(cls, settings: TokenSettings) -> "Tokens":
        """The keys of the configured files. ConfigurationError also where none of them fits the algorithms."""
        keys = read_token_keys(map(Path, settings.key_files))
        if not any(key.algorithms & set(settings.algorithms) for key in keys):
            problem = f"no key of {', '.join(settings.key_files)} is for {', '.join(settings.algorithms)}"
            raise ConfigurationError("access.token.algorithms", (problem,), "name the algorithm that the keys are for")
        return cls(keys, settings)

    def gone_since(self, before: "Tokens") -> frozenset[str]:
        """Fingerprints of the keys of an earlier state that have gone."""
        return frozenset(key.fingerprint for key in before.keys) - {key.fingerprint for key in self.keys}

    def check(self, token: bytes) -> ExternalUser:
        """The user of a token. Raises TokenRefused."""
        if len(token) > self._settings.maximum_bytes:
            raise TokenRefused(f"has more than {self._settings.maximum_bytes} bytes")
        try:
            claims, key = self._verified(token)
            until_s = min(int(claims["exp"]) + self._settings.leeway_s, _LATEST_S)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise TokenRefused(_reason(error)) from None
        return ExternalUser(user=self._user(claims), until_us=until_s * _SECOND_US, fingerprint=key.fingerprint)

    def _verified(self, token: bytes) -> tuple[dict[str, Any], TokenKey]:
        """The claims, and the key that signed them. Raises PyJWT's errors, or ValueError for an odd token."""
        header = jwt.get_unverified_header(token)
        algorithm = str(header.get("alg"))
        for key in self._candidates(algorithm, header.get("kid")):
            try:
                return self._decoded(token, key, algorithm), key
            except jwt.InvalidSignatureError:
                continue
        raise jwt.InvalidSignatureError

    def _candidates(self, algorithm: str, kid: object) -> list[TokenKey]:
        """The keys that may have signed a token; names are compared if both have one."""
        if algorithm not in self._algorithms:
            raise jwt.InvalidAlgorithmError
        fitting = [key for key in self.keys if algorithm in key.algorithms]
        return [key for key in fitting if kid is None or key.kid is None or key.kid == kid]

    def _decoded(self, token: bytes, key: TokenKey, algorithm: str) -> dict[str, Any]:
        settings = self._settings
        return jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=settings.audience or None,
            issuer=settings.issuer or None,
            leeway=settings.leeway_s,
            options={"require": ["exp", settings.user_claim]},
        )

    def _user(self, claims: dict[str, Any]) -> str:
        """The user in the claim. Raises TokenRefused for a text that cannot be a user name."""
        user = claims[self._settings.user_claim]
        if not isinstance(user, str) or not is_user_name(user):
            raise TokenRefused(f"has no user name in its claim {self._settings.user_claim!r}")
        return user


def _reason(error: Exception) -> str:
    if isinstance(error, jwt.MissingRequiredClaimError):  # its name is the configuration's, or the standard's
        return f"lacks the claim {error.claim!r}"
    return next((words for kind, words in _REASONS if isinstance(error, kind)), "is malformed")
