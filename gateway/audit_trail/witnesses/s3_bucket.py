"""A witness that is a bucket of an S3-compatible store with object lock: each digest is an object that nobody removes.

`check` refuses a bucket without object lock, and tries to remove a locked version, which must stay. s3_objects.py has
the requests and the names of objects. It runs as a program of its own for each call. A receipt of the last object that
was put lies in the trail (spark_audit/trail/receipt.py).
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson

from gateway.audit_trail.child import ProgramFailed, on_one_line, output_of
from gateway.audit_trail.durable_file import put_in_place
from gateway.audit_trail.witnesses.s3_objects import Bucket, Call
from gateway.audit_trail.witnesses.witness import Witnessed, WitnessError, WorthlessWitness, operation_of
from mq_adapters.embedded.store.files import make_folder
from spark_audit.trail.receipt import BucketReceipt, receipt_bytes, receipt_path

_PROGRAM: Final = "gateway.audit_trail.witnesses.s3_objects"
#: Digests that are put in the time of one request.
_PUT_IN_TIME: Final = 100
_AWAY_HINT: Final = "the next attempt comes by itself"
_LOCK_HINT: Final = "name a bucket that was made with object lock"


class S3Bucket:
    """The bucket. Raises WitnessError."""

    kind: Final = "s3"

    def __init__(self, name: str, place: Bucket, trail: Path) -> None:
        self.name = name
        self._place = place
        self._receipt = receipt_path(trail, name)

    def check(self) -> None:
        """Tries whether a locked version stays."""
        if problem := self._ask("check").get("problem"):
            raise WorthlessWitness(operation_of(self.name), problem, _LOCK_HINT)

    def last(self) -> Witnessed:
        """The earliest version of the last digest."""
        told = self._ask("last")
        return Witnessed(number=told["number"], data=told["data"].encode())

    def submit(self, digests: Mapping[int, bytes]) -> None:
        """One object for each; after an error `last` tells how many are there."""
        told = self._ask("put", [(number, data.decode()) for number, data in digests.items()])
        number = max(digests)
        receipt = BucketReceipt(
            number=number,
            sha256=hashlib.sha256(digests[number]).hexdigest(),
            endpoint=self._place.endpoint,
            bucket=self._place.bucket,
            key=told["key"],
            version_id=told["version_id"],
            locked_until=told["locked_until"],
        )
        make_folder(self._receipt.parent)
        put_in_place(self._receipt, (receipt_bytes(receipt),))

    def _ask(self, call: Call, digests: list[tuple[int, str]] | None = None) -> dict[str, Any]:
        request = {"place": asdict(self._place), "call": call, "digests": digests or []}
        try:
            told = output_of(
                (sys.executable, "-P", "-m", _PROGRAM),
                data=orjson.dumps(request),
                timeout_s=self._place.timeout_s * (1 + len(request["digests"]) / _PUT_IN_TIME),
                environment=os.environ,
            )
            answer: dict[str, Any] = orjson.loads(told)
        except (ProgramFailed, orjson.JSONDecodeError) as error:
            raise WitnessError(operation_of(self.name), on_one_line(str(error)), _AWAY_HINT) from None
        return answer
