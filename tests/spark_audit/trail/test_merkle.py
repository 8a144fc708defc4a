"""Merkle trees: the roots of the Certificate Transparency test vectors, and the paths of RFC 6962, section 2.1.3."""

import hashlib

import pytest

from spark_audit.trail.merkle import MerkleTree, audit_paths, leaf_hash, node_hash, root_of_path

#: The eight leaves of the Certificate Transparency project's test vectors.
LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
#: The roots over the first 0 to 8 of them.
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def _root_by_definition(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word by word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaf_hash(leaves[0])
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return node_hash(_root_by_definition(leaves[:k]), _root_by_definition(leaves[k:]))


def _path_by_definition(index: int, leaves: list[bytes]) -> tuple[bytes, ...]:
    """PATH of RFC 6962, section 2.1.1, word by word."""
    if len(leaves) <= 1:
        return ()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    if index < k:
        return (*_path_by_definition(index, leaves[:k]), _root_by_definition(leaves[k:]))
    return (*_path_by_definition(index - k, leaves[k:]), _root_by_definition(leaves[:k]))


@pytest.mark.parametrize("size", range(9))
def test_roots_are_those_of_the_known_vectors(size: int) -> None:
    tree = MerkleTree()
    for leaf in LEAVES[:size]:
        tree.add(leaf)
    assert (tree.root().hex(), tree.size) == (ROOTS[size], size)


def test_a_root_may_be_asked_for_at_any_time() -> None:
    tree = MerkleTree()
    roots = [tree.root().hex()]
    for leaf in LEAVES:
        tree.add(leaf)
        roots.append(tree.root().hex())
    assert roots == ROOTS


def test_paths_of_seven_leaves_are_those_that_the_rfc_draws() -> None:
    a, b, c, d, e, f, j = (leaf_hash(leaf) for leaf in LEAVES[:7])
    g, h, i = node_hash(a, b), node_hash(c, d), node_hash(e, f)
    k, last = node_hash(g, h), node_hash(i, j)
    paths = audit_paths(LEAVES[:7], 7, (0, 3, 4, 6))
    assert paths == {0: (b, h, last), 3: (c, g, last), 4: (f, j, k), 6: (i, k)}


@pytest.mark.parametrize("size", [*range(1, 34), 100])
def test_each_leaf_has_the_path_of_the_definition_and_it_leads_to_the_root(size: int) -> None:
    leaves = [b"line %d" % number for number in range(size)]
    paths = audit_paths(iter(leaves), size, range(size))
    root = _root_by_definition(leaves)
    for index, leaf in enumerate(leaves):
        assert paths[index] == _path_by_definition(index, leaves)
        assert root_of_path(leaf, index, size, paths[index]) == root


def test_a_path_does_not_serve_another_leaf_or_place() -> None:
    path = audit_paths(LEAVES, 8, [5])[5]
    root = bytes.fromhex(ROOTS[8])
    assert root_of_path(LEAVES[5], 5, 8, path) == root
    assert root_of_path(LEAVES[4], 5, 8, path) != root
    assert all(root_of_path(LEAVES[5], index, 8, path) != root for index in range(8) if index != 5)


@pytest.mark.parametrize(
    ("index", "size", "length"), [(5, 8, 2), (5, 8, 4), (6, 7, 3), (8, 8, 3), (-1, 8, 3), (0, 0, 0)]
)
def test_a_path_of_the_wrong_length_or_place_leads_nowhere(index: int, size: int, length: int) -> None:
    assert root_of_path(b"line", index, size, [bytes(32)] * length) is None


@pytest.mark.parametrize("size", [2, 4])
def test_another_number_of_leaves_than_said_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="leaves"):
        audit_paths(LEAVES[:3], size, [0])


def test_a_leaf_that_is_not_there_has_no_path() -> None:
    with pytest.raises(ValueError, match="no leaf 3 among 3"):
        audit_paths(LEAVES[:3], 3, [3])
