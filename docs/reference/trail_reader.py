"""Reads a trail without any code of rfhbridge: prints what it tells as JSON lines, checks hashes, links and digests.

    python trail_reader.py TRAIL >told.jsonl

It is written from audit-record.md alone, and takes the names of items from audit-notes.json. A line of one record is
printed as it is, and of a batch each note. Standard error tells what is wrong. Exit code 0: nothing, 1: something.
`rfhbridge audit verify` also checks the numbers of records and batches, countersignatures, and copies of digests.
"""

import base64
import gzip
import json
import re
import sys
from hashlib import sha256
from pathlib import Path

import ormsgpack
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SEGMENT = re.compile(r"([0-9]{12}-[0-9]{8}T[0-9]{2})\.(jsonl|jsonl\.gz|jsonl\.zst|open)")
NAMES = json.loads(Path(__file__).with_name("audit-notes.json").read_bytes())
faults = []


def expect(is_right, place, what):
    if not is_right:
        faults.append(place)
        print(f"{place}: {what}", file=sys.stderr)


def told(line, record):
    """What a line tells, as JSON lines: one record, or the notes of a batch with the names of their items."""
    if record["version"] == 1:
        return line + b"\n"
    _, _, notes, contexts = ormsgpack.unpackb(base64.b64decode(record["packed"]))
    sheets = [dict(zip(NAMES["contexts"][name], facts, strict=False)) for name, *facts in contexts]
    text = b""
    for kind, at_us, *values in ormsgpack.unpackb(notes):
        note = {"batch": record["batch"], "note": NAMES["notes"][str(kind)]["name"], "at_us": at_us}
        for item, value in zip(NAMES["notes"][str(kind)]["items"], values, strict=False):
            note |= {item: sheets[value]} if item in NAMES["contexts"] else {item: value}
        text += json.dumps(note, default=lambda data: base64.b64encode(data).decode()).encode() + b"\n"
    return text


def pieces(path):
    """The bytes of a segment's lines, cut anywhere."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        if path.suffix == ".zst":
            import zstandard

            frame = zstandard.ZstdDecompressor(max_window_size=8 << 20).decompressobj()
            while not frame.eof and (data := file.read(1024)):
                yield frame.decompress(data)
            expect(frame.eof and not frame.unused_data, path.name, "it is not one whole frame")
        yield from iter(lambda: file.read(65536), b"")  # in Zstandard nothing is left here


def read_segment(path, head):
    """Prints what its lines tell; the first follows that with hash `head`. Gives what the digest must say."""
    whole, size, count, trees, rest = sha256(), 0, 0, [], b""
    for piece in pieces(path):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            record = json.loads(line)
            sys.stdout.buffer.write(told(line, record))
            whole.update(line + b"\n")
            size, left, count, node = size + len(line) + 1, count, count + 1, sha256(b"\0" + line).digest()
            while left & 1:  # RFC 6962, section 2.1: two trees of one size become the next larger one
                node, left = sha256(b"\1" + trees.pop() + node).digest(), left >> 1
            trees.append(node)
            place, own = f"{path.name}, line {count}", sha256(line[:-75] + b"}").hexdigest()
            expect(line.endswith(b',"hash":"%b"}' % own.encode()), place, "its bytes do not have its hash")
            expect(record["prev"] == head, place, "prev is not the hash of the record before")
            head = record["hash"]
    expect(not rest or path.suffix == ".open", path.name, "its last line has no end")
    root = trees.pop() if trees else sha256().digest()
    while trees:
        root = sha256(b"\1" + trees.pop() + root).digest()
    sums = {"size_bytes": size, "sha256": whole.hexdigest(), "merkle_root": root.hex()}
    return {"head": head, "records": count, **sums}


def read_digests(paths):
    """The digests of segments by their names, and the newest segment that was removed on purpose."""
    digests, removed, previous, due = {}, "", "0" * 64, {1: "", 2: ""}
    for number, path in enumerate(paths, start=1):
        digest = json.loads(data := path.read_bytes())
        signature, version, key = digest.pop("signature"), digest["version"], digest["public_key"]
        expect((digest["number"], digest["previous"]) == (number, previous), path.name, f"digest {number} was due")
        expect(due.get(min(version, 2)) in ("", key) or digest["kind"] == "renewal", path.name, "another key was due")
        text = json.dumps(digest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), text)
        except InvalidSignature:
            expect(False, path.name, "its signature is not by its key")
        digests |= {digest["segment"]: digest} if digest["kind"] == "segment" else {}
        removed = digest["segment"] if digest["kind"] == "retention" else removed
        due = {2: digest["next_public_key"]} if version > 1 else {1: digest["new_public_key"] or key, 2: ""}
        previous = sha256(data).hexdigest()
    return digests, removed


def read_trail(folder):
    digests, removed = read_digests(sorted(folder.glob("digests/*.digest")))
    files, head = {}, "0" * 64
    for path in filter(lambda path: SEGMENT.fullmatch(path.name), sorted(folder.iterdir())):
        files.setdefault(path.name.partition(".")[0], path)
    for name in sorted({*files, *digests}):
        digest, found = digests.get(name, {}), read_segment(files[name], head) if name in files else {}
        expect(found or name <= removed, name, "it is missing")
        for fact, value in found.items():
            expect(digest.get(fact, value) == value, files[name].name, f"its digest says another {fact}")
        head = (digest or found)["head"]


read_trail(Path(sys.argv[1]))
sys.exit(bool(faults))
