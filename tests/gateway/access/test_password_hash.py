"""Argon2id hashes: vectors of the reference implementation, and what an entry may not be."""

import pytest

from gateway.access.password_hash import PasswordHash

# From the test vectors of the reference implementation of Argon2 (phc-winner-argon2, src/test.c): password, entry.
VECTORS = [
    (
        b"password",
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
    ),
    (b"password", "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"),
]
SOUND = VECTORS[1][1]


@pytest.mark.parametrize(("password", "text"), VECTORS)
def test_the_hash_of_another_program_knows_its_password(password: bytes, text: str) -> None:
    entry = PasswordHash.parse(text)
    assert entry.text == text
    assert entry.is_of(password)
    for other in (password + b"\0", password[:-1], password.upper(), b""):
        assert not entry.is_of(other)


def test_a_new_hash_has_a_salt_of_its_own_and_is_read_back() -> None:
    first, second = PasswordHash.of(b"sesame"), PasswordHash.of(b"sesame")
    assert first.salt != second.salt
    assert first.digest != second.digest
    assert PasswordHash.parse(first.text) == first
    assert first.is_of(b"sesame")
    assert not first.is_of(b"Sesame")


@pytest.mark.parametrize("cut", range(len(SOUND)))
def test_a_hash_that_is_cut_short_is_no_hash(cut: int) -> None:
    """A digest that lacks its last characters would be another digest: Base64 alone would not show it."""
    try:
        found = PasswordHash.parse(SOUND[:cut])
    except ValueError:
        return
    assert not found.is_of(b"password")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "password",
        SOUND + "\n",
        " " + SOUND,
        SOUND.replace("argon2id", "argon2i"),
        SOUND.replace("v=19", "v=16"),
        SOUND.replace("m=256", "m=7"),
        SOUND.replace("m=256", "m=1048577"),
        SOUND.replace("m=256", "m=99999999"),
        SOUND.replace("t=2", "t=0"),
        SOUND.replace("t=2", "t=65"),
        SOUND.replace("p=1", "p=0"),
        SOUND.replace("p=1", "p=17"),
        SOUND.replace("m=256,t=2,p=1", "m=64,t=2,p=16"),
        SOUND.replace("m=256", "m=-256"),
        SOUND.replace("m=256", "m=٢٥٦"),
        SOUND.replace("c29tZXNhbHQ", "c29t"),
        SOUND.replace("c29tZXNhbHQ", "c29tZ"),
        SOUND.replace("c29tZXNhbHQ", "A" * 128),
        SOUND.replace("c29tZXNhbHQ", "c29t ZXNhbHQ"),
        "$2y$10$abcdefghijklmnopqrstuv",
    ],
)
def test_what_is_no_sound_entry_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        PasswordHash.parse(text)
    if text:
        assert text not in str(refused.value)
