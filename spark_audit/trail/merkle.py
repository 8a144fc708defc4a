"""Merkle trees of RFC 6962, section 2.1: one hash for the lines of a segment, and proofs that a line is among them.

    leaf  SHA-256(0x00 || line)            a line of the trail, without its line feed
    node  SHA-256(0x01 || left || right)   the left part has the largest power of two of leaves below the whole
    empty SHA-256("")

No class holds a whole tree. Both keep one hash for each bit of the number of leaves.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Final

HASH_BYTES: Final = 32
_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"
#: What every hash begins with: a copy takes less time than a new one.
_BEGUN_LEAF, _BEGUN_NODE = hashlib.sha256(_LEAF), hashlib.sha256(_NODE)


def leaf_hash(leaf: bytes) -> bytes:
    """The hash of one leaf."""
    begun = _BEGUN_LEAF.copy()
    begun.update(leaf)
    return begun.digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two hashes side by side."""
    begun = _BEGUN_NODE.copy()
    begun.update(left + right)
    return begun.digest()


class MerkleTree:
    """The root over leaves that come one after the other."""

    __slots__ = ("_peaks", "size")

    def __init__(self) -> None:
        self.size = 0
        #: Roots of the perfect subtrees so far, the largest first: one for each bit of `size`.
        self._peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Adds a leaf at the end."""
        peaks, size = self._peaks, self.size
        node = leaf_hash(leaf)
        while size & 1:
            node = node_hash(peaks.pop(), node)
            size >>= 1
        peaks.append(node)
        self.size += 1

    def root(self) -> bytes:
        """The root over the leaves so far. More may follow."""
        if not self._peaks:
            return hashlib.sha256(b"").digest()
        root = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            root = node_hash(peak, root)
        return root


def audit_paths(leaves: Iterable[bytes], size: int, wanted: Collection[int]) -> dict[int, tuple[bytes, ...]]:
    """The audit path of each wanted leaf (from 0), from the leaf up: RFC 6962, section 2.1.1.

    `size` is the number of leaves, known before. ValueError if another number comes, or if a wanted leaf is missing.
    """
    places = {index: _siblings(index, size) for index in wanted}
    nodes = _nodes(leaves, size, {place for path in places.values() for place in path})
    return {index: tuple(nodes[place] for place in path) for index, path in places.items()}


def root_of_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root to which a path leads from a leaf; None if a path of that length cannot belong to that place."""
    places = _siblings(index, size) if 0 <= index < size else None
    if places is None or len(places) != len(path):
        return None
    node = leaf_hash(leaf)
    for (_level, sibling), hash_beside in zip(places, path, strict=True):
        node = node_hash(node, hash_beside) if sibling & 1 else node_hash(hash_beside, node)
    return node


def _siblings(index: int, size: int) -> list[tuple[int, int]]:
    """Level and number in its level of each hash of a path. The last of an odd level goes up as it is."""
    if not 0 <= index < size:
        raise ValueError(f"there is no leaf {index} among {size}")
    places, level, width = [], 0, size
    while width > 1:
        if index ^ 1 < width:
            places.append((level, index ^ 1))
        index, level, width = index >> 1, level + 1, (width + 1) >> 1
    return places


def _nodes(leaves: Iterable[bytes], size: int, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
    """The wanted nodes, by level and number in the level, as the leaves go by."""
    found: dict[tuple[int, int], bytes] = {}
    peaks: dict[int, bytes] = {}
    count = 0
    for count, leaf in enumerate(leaves, start=1):
        node, level, number = leaf_hash(leaf), 0, count - 1
        while True:
            if (level, number) in wanted:
                found[level, number] = node
            if not number & 1:
                break
            node, level, number = node_hash(peaks.pop(level), node), level + 1, number >> 1
        peaks[level] = node
    if count != size:
        raise ValueError(f"there are {count} leaves, not {size}")
    return found | _right_edge(peaks, size)


def _right_edge(peaks: dict[int, bytes], size: int) -> dict[tuple[int, int], bytes]:
    """The last node of each level, if it has fewer leaves than its level could hold."""
    edge: dict[tuple[int, int], bytes] = {}
    node: bytes | None = None
    for level in range(size.bit_length()):
        peak = peaks.get(level)
        if peak is not None:
            node = peak if node is None else node_hash(peak, node)
        if node is not None:
            edge[level + 1, size >> (level + 1)] = node
    return edge
