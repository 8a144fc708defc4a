"""The plan of a trail: how the configuration wants it written, for the exporter's process.

The exporter keeps its plan beside the trail. A command that exports pending notes while no gateway runs writes them by
the same plan: with the same key, and with personal data keyed where the configuration wants that.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import orjson

from gateway.audit_trail.digests import Provenance
from gateway.audit_trail.durable_file import put_in_place
from gateway.audit_trail.keys.remote_key import KeyPlace
from gateway.audit_trail.segment import SIGNING_KEY_NAME, STANDARD_LIMITS, SegmentLimits
from gateway.config.queue_names import transmission_queue_name
from gateway.free_space import trail_reserve_bytes
from mq_adapters.reasons import StoreError

if TYPE_CHECKING:  # the exporter reads a plan, and no settings
    from gateway.config import Settings
    from gateway.config.signing_token import SigningTokenSettings

#: In the data folder, beside the folder of the trail.
PLAN_NAME: Final = "trail-plan.json"
#: In the data folder, unless the configuration names another place.
PERSONAL_KEY_NAME: Final = "trail-personal.key"
_PLAN_VERSION: Final = 1

#: The version of the code, and that of its mapping table.
Versions = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessPlan:
    """A witness as the configuration has it (gateway/config/witnesses.py); a file is an absolute path or ""."""

    name: str
    type: str
    timeout_s: float
    remote: str = ""
    branch: str = ""
    git_settings_file: str = ""
    url: str = ""
    authority_file: str = ""
    policy: str = ""
    bucket: str = ""
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    credentials_file: str = ""
    keep_days: float = 0


def _absolute(file: str) -> str:
    return str(Path(file).absolute()) if file else ""


def _key_place(settings: "SigningTokenSettings") -> KeyPlace | None:
    if not settings.type:
        return None
    return KeyPlace(
        type=settings.type,
        public_key=settings.public_key,
        module=_absolute(settings.module),
        token=settings.token,
        key=settings.key,
        pin_file=_absolute(settings.pin_file),
        socket=_absolute(settings.socket),
        timeout_s=settings.timeout_s,
    )


def versions_of_program() -> Versions:
    """Takes 30 ms, unless both modules are loaded: the gateway tells its exporter."""
    from importlib.metadata import version

    from mappings.table import TABLE_VERSION

    return version("rfhbridge"), TABLE_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailPlan:
    """How a trail is written. Texts are paths, made absolute; "" and 0 mean that there is none of it.

    `digest_transmission_queue` is the local queue whose channel takes digests to `digest_queue`, a queue at a target.
    """

    signing_key: str
    personal_key: str = ""
    segment_bytes: int = STANDARD_LIMITS.size_bytes
    segment_minutes: float = STANDARD_LIMITS.age / timedelta(minutes=1)
    configuration_sha256: str = ""
    copy_folder: str = ""
    digest_transmission_queue: str = ""
    digest_queue: str = ""
    #: 0: at once; below 0: never.
    compress_after_hours: float = 0
    keep_days: float = 0
    #: Free bytes on the disk below which no line is written.
    reserve_bytes: int = 0
    witnesses: tuple[WitnessPlan, ...] = ()
    #: Where the configured key lies if it is no file.
    signing_token: KeyPlace | None = None
    #: Where the key lies that hands over to the one of `signing_token`, if that is no file either.
    former_signing_token: KeyPlace | None = None

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """The plan of a gateway's configuration."""
        audit, data = settings.audit, settings.data.absolute()
        personal_key = audit.personal_key or data / PERSONAL_KEY_NAME
        return cls(
            signing_key=str(Path(audit.signing_key or data / SIGNING_KEY_NAME).absolute()),
            personal_key=str(Path(personal_key).absolute()) if audit.personal_data == "keyed" else "",
            segment_bytes=audit.segment_bytes,
            segment_minutes=audit.segment_minutes,
            configuration_sha256=settings.configuration_sha256,
            copy_folder=_absolute(audit.copy_folder),
            digest_transmission_queue=transmission_queue_name(audit.digest_target, 0) if audit.digest_target else "",
            digest_queue=audit.digest_queue,
            compress_after_hours=audit.compress_after_hours,
            keep_days=audit.keep_days,
            reserve_bytes=trail_reserve_bytes(audit.low_space_bytes),
            signing_token=_key_place(audit.signing_token),
            former_signing_token=_key_place(audit.former_signing_token),
            witnesses=tuple(
                WitnessPlan(
                    name=witness.name,
                    type=witness.type,
                    url=witness.url,
                    authority_file=_absolute(witness.authority_file),
                    policy=witness.policy,
                    remote=witness.remote,
                    branch=witness.branch,
                    git_settings_file=_absolute(witness.git_settings_file),
                    bucket=witness.bucket,
                    prefix=witness.prefix,
                    endpoint=witness.endpoint,
                    region=witness.region,
                    credentials_file=_absolute(witness.credentials_file),
                    keep_days=witness.keep_days,
                    timeout_s=witness.timeout_s,
                )
                for witness in audit.witness
            ),
        )

    @classmethod
    def standard(cls, trail: Path) -> Self:
        """The plan of a trail of which nothing is known."""
        return cls(signing_key=str(trail.absolute().parent / SIGNING_KEY_NAME))

    @classmethod
    def kept(cls, trail: Path) -> Self:
        """The plan that was kept beside a trail, else the standard one. Raises StoreError for what is no plan."""
        path = trail.with_name(PLAN_NAME)
        try:
            return cls.from_json(path.read_bytes())
        except FileNotFoundError:
            return cls.standard(trail)
        except (OSError, ValueError) as error:
            hint = "start the gateway: it writes the file anew from its configuration"
            raise StoreError(f"read {path}", str(error), hint) from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The plan that `to_json` gave. ValueError for anything else."""
        said = orjson.loads(text)
        names = {field.name for field in fields(cls)}
        if not isinstance(said, Mapping) or said.get("version") != _PLAN_VERSION or set(said) - {"version"} - names:
            raise ValueError("it is no plan of a trail that this program knows")
        values: dict[str, Any] = {name: value for name, value in said.items() if name != "version"}
        try:
            witnesses = tuple(WitnessPlan(**each) for each in values.pop("witnesses", ()))
            tokens = {name: values.pop(name, None) for name in ("signing_token", "former_signing_token")}
            places = {name: None if token is None else KeyPlace(**token) for name, token in tokens.items()}
            return cls(
                **values,
                witnesses=witnesses,
                signing_token=places["signing_token"],
                former_signing_token=places["former_signing_token"],
            )
        except TypeError as error:
            raise ValueError(f"it is no plan of a trail: {error}") from None

    def to_json(self) -> bytes:
        return orjson.dumps({"version": _PLAN_VERSION, **asdict(self)})

    def keep(self, trail: Path) -> None:
        """Keeps the plan beside the trail. Raises OSError."""
        put_in_place(trail.with_name(PLAN_NAME), (self.to_json(),))

    @property
    def limits(self) -> SegmentLimits:
        return SegmentLimits(size_bytes=self.segment_bytes, age=timedelta(minutes=self.segment_minutes))

    def provenance(self, versions: Versions | None = None) -> Provenance:
        """`versions`: those of this program, where the caller knows them."""
        code_version, table_version = versions or versions_of_program()
        return Provenance(
            code_version=code_version,
            table_version=table_version,
            configuration_sha256=self.configuration_sha256,
        )
