"""Integrity of a trail, offline: no Spark, no gateway, no network, nothing but the files.

    chain         line after line: hash, link, sequence, batch
    digests       digest after digest: number, link, key, signature, rotation
    anchor        things that were kept elsewhere: a public key, a copy of the digests
    completeness  segments against digests: missing ones, removed ones, and those without a digest yet
    source        the files of a trail in a folder; packed_trail: in a pack; both in the order in which they are checked
    auditors_rule how long a trail must be kept, and how fresh it must be
    restores      the gaps that a trail tells itself, and which of them an auditor's policy names
    trail         all of it: one pass over a trail, one Verification
    proof         a message's records are among the lines of a segment, shown to people without the trail

Everything is read as a stream: memory does not grow with the trail, but for its file names.
"""

from spark_audit.verify.anchor import Anchor, UnusableAnchor
from spark_audit.verify.auditors_rule import AuditorsRule
from spark_audit.verify.packed_trail import verify_pack
from spark_audit.verify.trail import verify
from spark_audit.verify.verdict import LIMITS, Finding, Problem, Verdict, Verification

__all__ = [
    "LIMITS",
    "Anchor",
    "AuditorsRule",
    "Finding",
    "Problem",
    "UnusableAnchor",
    "Verdict",
    "Verification",
    "verify",
    "verify_pack",
]
