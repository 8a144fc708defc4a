"""Who is let in: password, anonymous, bound identifiers; what is remembered, and what is not done on the event loop."""

import asyncio
import subprocess
import sys
import threading
from collections import deque
from typing import Any

import pytest

from gateway.access.external_users import ExternalUser, TokenCheck, TokenRefused
from gateway.access.hashing import Check, Done, HashingThreads
from gateway.access.login import Admitted, Decision, Entrance, Login, Refused
from gateway.access.password_hash import PasswordHash
from gateway.access.recent_logins import RecentLogins
from gateway.access.refused_logins import LoginRefusal
from gateway.access.users import Users
from gateway.config.limits import Limit
from gateway.limits.refusals import Refusals
from gateway.mqtt.events import ConnectReceived
from gateway.mqtt.reason_codes import ReasonCode
from spark_audit.record import LoginProof

# Reference vectors of Argon2: the passwords are "password" and, with another salt, the same.
ANNA = "anna:$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4\n"
BOB = "bob:$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc\n"


ANY_ENTRANCE = Entrance()
TOKEN = b"eyJhbGciOiJFUzI1NiJ9.e30.AAAA"
LET_IN, NOBODY = Admitted(user="anna", proof=LoginProof.PASSWORD), Admitted(user=None, proof=LoginProof.NONE)
ANNA_BY_TOKEN = Admitted(user="anna", proof=LoginProof.TOKEN, until_us=7, fingerprint="f")


class HeldChecks(HashingThreads):
    """Checks that wait until the test lets them run, and how many have run."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Check, Done]] = deque()
        self.lately: list[bool] = []
        self.ran = 0
        self.is_full = False

    def submit(self, check: Check, done: Done, *, origin: bytes = b"", user: str = "", is_lately: bool = False) -> bool:
        if self.is_full:
            return False
        self.waiting.append((check, done))
        self.lately.append(is_lately)
        return True

    def run(self) -> None:
        check, done = self.waiting.popleft()
        self.ran += 1
        done(check())


class Front:
    """A login with users anna and bob, and its decisions."""

    def __init__(self, text: str | None = ANNA + BOB, *, tokens: TokenCheck | None = None, **options: Any) -> None:
        self.checks = HeldChecks()
        options.setdefault("allows_anonymous", False)
        users = None if text is None else Users.parse(text, "users")
        self.login = Login(users, tokens=tokens, threads=self.checks, **options)
        self.decisions: list[Decision] = []
        self.is_wanted = True

    def ask(
        self, user: str | None, password: bytes | None = None, client: str = "c", entrance: Entrance = ANY_ENTRANCE
    ) -> None:
        connect = ConnectReceived(4, client, True, 0, None, user, password)
        self.login.decide(connect, lambda: self.is_wanted, self.decisions.append, entrance)

    def replace(self, text: str) -> frozenset[str]:
        """The password file has another text now; the users whose line is not the same."""
        users = Users.parse(text, "users")
        assert self.login.users is not None
        changed = users.changed_since(self.login.users)
        self.login.replace(users, changed)
        return changed

    def answer(
        self, user: str | None, password: bytes | None = None, client: str = "c", entrance: Entrance = ANY_ENTRANCE
    ) -> Decision:
        self.ask(user, password, client, entrance)
        while self.checks.waiting:
            self.checks.run()
        return self.decisions.pop()


def refusal(decision: Decision) -> LoginRefusal:
    assert isinstance(decision, Refused)
    assert "password" not in decision.reason.replace("or the password is wrong", "")
    return decision.refusal


def test_the_right_password_lets_a_user_in() -> None:
    front = Front()
    assert front.answer("anna", b"password") == LET_IN
    assert front.answer("bob", b"password") == Admitted(user="bob", proof=LoginProof.PASSWORD)


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("anna", b"Password"),
        ("anna", b""),
        ("anna", None),
        ("", b"password"),
        ("", None),
        ("Anna", b"password"),
        ("nobody", b"password"),
        ("anna\0", b"password"),
        ("x" * 65_535, b"y" * 65_535),
    ],
)
def test_a_wrong_name_or_password_costs_one_check_and_is_refused(user: str, password: bytes | None) -> None:
    front = Front()
    assert refusal(front.answer(user, password)) is LoginRefusal.WRONG_CREDENTIALS
    assert front.checks.ran == 1


def test_an_unknown_name_is_not_repeated_for_it_may_be_a_password() -> None:
    front = Front()
    refused = front.answer("sesame", b"anna")
    assert isinstance(refused, Refused)
    assert "sesame" not in refused.reason
    known = front.answer("anna", b"sesame")
    assert isinstance(known, Refused)
    assert "'anna'" in known.reason


def test_clients_without_a_name_are_let_in_where_that_is_allowed() -> None:
    assert Front(allows_anonymous=True).answer(None) == NOBODY
    assert refusal(Front(allows_anonymous=False).answer(None)) is LoginRefusal.NOT_ALLOWED


def test_where_anonymous_clients_are_let_in_a_wrong_password_is_still_wrong() -> None:
    assert refusal(Front(allows_anonymous=True).answer("anna", b"x")) is LoginRefusal.WRONG_CREDENTIALS


def test_without_a_password_file_everybody_is_let_in_as_nobody() -> None:
    decisions: list[Decision] = []
    Login().decide(ConnectReceived(4, "c", True, 0, None, "anna", b"x"), lambda: True, decisions.append)
    assert decisions == [NOBODY]


# -- tokens ------------------------------------------------------------------------------------------------------------


class Issuer:
    """Vouches for one user by whatever token, or refuses it."""

    def __init__(self, user: str | None) -> None:
        self.user = user
        self.asked: list[bytes] = []

    def check(self, token: bytes) -> ExternalUser:
        self.asked.append(token)
        if self.user is None:
            raise TokenRefused("has expired")
        return ExternalUser(user=self.user, until_us=7, fingerprint="f")


@pytest.mark.parametrize("name", [None, "", "jwt", "anna"])
def test_a_token_lets_its_user_in_until_it_expires_whoever_is_in_the_password_file(name: str | None) -> None:
    front = Front(BOB, tokens=Issuer("anna"))
    assert front.answer(name, TOKEN) == ANNA_BY_TOKEN
    assert front.checks.ran == 0


def test_a_token_under_another_users_name_is_refused() -> None:
    front = Front(tokens=Issuer("anna"))
    for name in ("bob", "Anna", "JWT"):
        assert refusal(front.answer(name, TOKEN)) is LoginRefusal.WRONG_CREDENTIALS


def test_a_refused_token_is_told_with_its_reason_and_is_no_password_after_that() -> None:
    front = Front(tokens=Issuer(None), allows_anonymous=True)
    for name in (None, "anna"):
        assert front.answer(name, TOKEN) == Refused(
            refusal=LoginRefusal.WRONG_CREDENTIALS, reason="the token has expired"
        )
    assert front.checks.ran == 0


def test_beside_tokens_passwords_are_still_checked() -> None:
    issuer = Issuer("eve")
    front = Front(tokens=issuer)
    assert front.answer("anna", b"password") == LET_IN
    assert refusal(front.answer("anna", b"eyJust.a.password!")) is LoginRefusal.WRONG_CREDENTIALS
    assert issuer.asked == []


def test_where_there_are_tokens_alone_a_password_is_wrong_and_without_any_a_token_is_nothing() -> None:
    assert refusal(Front(None, tokens=Issuer("anna")).answer("anna", b"password")) is LoginRefusal.WRONG_CREDENTIALS
    assert refusal(Front(None, tokens=Issuer("anna")).answer(None)) is LoginRefusal.NOT_ALLOWED
    assert Front(None, tokens=Issuer("anna"), allows_anonymous=True).answer(None) == NOBODY
    assert Front(None, allows_anonymous=True).answer("anna", TOKEN) == NOBODY


def test_the_identifier_of_a_tokens_user_is_bound_like_any_others() -> None:
    front = Front(None, tokens=Issuer("anna"), binding=True)
    assert refusal(front.answer("anna", TOKEN, "bob")) is LoginRefusal.WRONG_IDENTIFIER
    assert front.answer("anna", TOKEN, "anna:2") == ANNA_BY_TOKEN


# -- what the way in says ----------------------------------------------------------------------------------------------

WITH_CERTIFICATE = Entrance(certificate_user="CN=pump-7,O=Plant")


@pytest.mark.parametrize("name", [None, "", "CN=pump-7,O=Plant"])
def test_the_user_of_a_certificate_is_asked_for_no_password(name: str | None) -> None:
    front = Front(tokens=Issuer("anna"))
    for password in (None, b"", b"wrong", TOKEN):
        assert front.answer(name, password, entrance=WITH_CERTIFICATE) == Admitted(
            user="CN=pump-7,O=Plant", proof=LoginProof.CERTIFICATE
        )
    assert front.checks.ran == 0


def test_another_users_name_beside_a_certificate_is_refused_even_with_the_right_password() -> None:
    assert refusal(Front().answer("anna", b"password", entrance=WITH_CERTIFICATE)) is LoginRefusal.WRONG_CREDENTIALS


@pytest.mark.parametrize("name", ["a\nb", " a", "x" * 257, "\ud800"])
def test_a_certificate_with_a_name_that_no_user_can_have_lets_nobody_in(name: str) -> None:
    front = Front(allows_anonymous=True)
    assert refusal(front.answer(None, entrance=Entrance(certificate_user=name))) is LoginRefusal.WRONG_CREDENTIALS


def test_the_identifier_of_a_certificates_user_is_bound_like_any_others() -> None:
    front = Front(None, binding=True)
    entrance = Entrance(certificate_user="pump")
    assert refusal(front.answer(None, None, "anna", entrance)) is LoginRefusal.WRONG_IDENTIFIER
    assert front.answer(None, None, "pump:1", entrance) == Admitted(user="pump", proof=LoginProof.CERTIFICATE)


@pytest.mark.parametrize("gateway_allows", [False, True])
def test_a_listener_has_its_own_word_on_clients_without_a_name(gateway_allows: bool) -> None:
    for text in (ANNA, None):
        front = Front(text, allows_anonymous=gateway_allows)
        assert front.answer(None, entrance=Entrance(allows_anonymous=True)) == Admitted(
            user=None, proof=LoginProof.LISTENER
        )
        assert refusal(front.answer(None, entrance=Entrance(allows_anonymous=False))) is LoginRefusal.NOT_ALLOWED
    refused = Front(None, allows_anonymous=True).answer("anna", b"password", entrance=Entrance(allows_anonymous=False))
    assert refusal(refused) is LoginRefusal.NOT_ALLOWED, "nobody can tell who anna is"


# -- what is remembered ------------------------------------------------------------------------------------------------


def test_a_login_that_succeeded_is_not_checked_again_and_a_wrong_one_is() -> None:
    front = Front()
    for _ in range(3):
        assert front.answer("anna", b"password") == LET_IN
    assert front.checks.ran == 1
    assert refusal(front.answer("anna", b"passwore")) is LoginRefusal.WRONG_CREDENTIALS
    assert front.checks.ran == 2
    assert front.answer("anna", b"password") == LET_IN
    assert front.checks.ran == 2, "a wrong password does not make the right one forgotten"


def test_a_user_whose_line_changes_is_checked_again_and_the_others_are_not() -> None:
    front = Front()
    for user in ("anna", "bob"):
        front.answer(user, b"password")
    assert front.replace(ANNA.replace("m=256", "m=512") + BOB) == {"anna"}
    assert refusal(front.answer("anna", b"password")) is LoginRefusal.WRONG_CREDENTIALS
    assert front.answer("bob", b"password") == Admitted(user="bob", proof=LoginProof.PASSWORD)
    assert front.replace(ANNA.replace("m=256", "m=512") + "eve" + ANNA[4:]) == {"bob"}
    assert refusal(front.answer("bob", b"password")) is LoginRefusal.WRONG_CREDENTIALS


def test_a_password_that_was_checked_against_an_old_line_is_refused() -> None:
    front = Front()
    front.ask("anna", b"password")
    front.replace(BOB)
    front.checks.run()
    assert refusal(front.decisions.pop()) is LoginRefusal.WRONG_CREDENTIALS
    front.replace(ANNA)
    front.ask("anna", b"password")
    assert front.decisions == [], "nothing was remembered"


def test_a_client_that_has_gone_costs_no_check() -> None:
    front = Front()
    ends: list[bool | None] = []
    front.ask("anna", b"password")
    front.is_wanted = False
    front.checks.waiting[0] = (front.checks.waiting[0][0], ends.append)
    front.checks.run()
    assert ends == [None], "the check ended without a look at the password, which is right"


def test_clients_that_wait_with_one_password_of_one_user_cost_one_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand sensors may share a user, and all come back at once."""
    front = Front()
    for _ in range(3):
        front.ask("anna", b"password")
    front.checks.run()
    monkeypatch.setattr(PasswordHash, "is_of", lambda _entry, _password: pytest.fail("it is checked again"))
    front.checks.run()
    front.checks.run()
    assert front.decisions == [LET_IN] * 3


def test_too_many_logins_are_told_so() -> None:
    front = Front()
    front.answer("anna", b"password")
    front.checks.is_full = True
    assert refusal(front.answer("bob", b"password")) is LoginRefusal.BUSY
    assert front.answer("anna", b"password") == LET_IN, "who is remembered needs no check"


# -- identifiers and sessions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "is_right"),
    [
        ("anna", True),
        ("anna:1", True),
        ("anna:", True),
        ("", True),
        ("anna2", False),
        ("bob", False),
        ("bob:anna", False),
    ],
)
def test_a_bound_identifier_is_the_users_name_and_perhaps_more(client: str, is_right: bool) -> None:
    front = Front(binding=True)
    for _ in range(2):
        decision = front.answer("anna", b"password", client)
        assert (decision == LET_IN) is is_right
        assert is_right or refusal(decision) is LoginRefusal.WRONG_IDENTIFIER


@pytest.mark.parametrize(("client", "is_right"), [("any", True), ("", True), ("bob", False), ("anna:1", False)])
def test_a_client_without_a_name_has_no_identifier_that_is_bound_to_a_user(client: str, is_right: bool) -> None:
    decision = Front(allows_anonymous=True, binding=True).answer(None, None, client)
    assert (decision == NOBODY) is is_right
    assert is_right or refusal(decision) is LoginRefusal.WRONG_IDENTIFIER


PUMP = Entrance(certificate_user="pump")


def test_reserved_identifiers_are_kept_for_users_of_the_file_of_tokens_and_of_certificates() -> None:
    front = Front(tokens=Issuer("eve"), allows_anonymous=True, binding="reserved", has_certificate_users=True)
    assert front.answer("anna", b"password", "eve") == LET_IN, "nobody knows eve yet"
    assert isinstance(front.answer("eve", TOKEN, "eve:1"), Admitted)
    assert isinstance(front.answer(None, None, "door", PUMP), Admitted)
    for client in ("eve", "eve:1", "pump", "pump:2", "bob"):
        assert refusal(front.answer("anna", b"password", client)) is LoginRefusal.WRONG_IDENTIFIER, client
        assert refusal(front.answer(None, None, client)) is LoginRefusal.WRONG_IDENTIFIER, client
    assert front.answer("anna", b"password", "door") == LET_IN, "a fleet may share what it likes"
    assert refusal(front.answer("eve", TOKEN, "anna")) is LoginRefusal.WRONG_IDENTIFIER
    assert refusal(front.answer(None, None, "anna", PUMP)) is LoginRefusal.WRONG_IDENTIFIER


def test_after_a_restart_whoever_logged_in_lately_is_known() -> None:
    before, after = (Front(tokens=Issuer("eve"), binding="reserved") for _ in range(2))
    site, elsewhere = Entrance(peer="198.51.100.7:5"), Entrance(peer="203.0.113.9:5")
    before.answer("anna", b"password", entrance=site)
    before.answer("eve", TOKEN)
    after.login.recent = RecentLogins.unpack(before.login.recent.pack())
    for user, entrance, is_lately in (("anna", site, True), ("anna", elsewhere, False), ("bob", site, False)):
        after.ask(user, b"wrong", entrance=entrance)
        assert after.checks.lately.pop() is is_lately, (user, entrance)
    assert refusal(after.answer("anna", b"password", "eve:2")) is LoginRefusal.WRONG_IDENTIFIER


def test_a_wrong_password_makes_nobody_known() -> None:
    front = Front()
    front.answer("anna", b"wrong")
    front.answer("nobody", b"wrong")
    assert len(front.login.recent) == 0


@pytest.mark.parametrize(
    ("user", "owner", "may"),
    [("anna", "anna", True), ("bob", "anna", False), (None, "anna", False), ("anna", None, True), (None, None, True)],
)
def test_a_session_is_its_owners_while_there_are_users(user: str | None, owner: str | None, may: bool) -> None:
    assert Front().login.may_have_session(user, owner) is may
    assert Front(None, tokens=Issuer("anna")).login.may_have_session(user, owner) is may
    assert Login(has_certificate_users=True).may_have_session(user, owner) is may
    assert Login().may_have_session(user, owner)


def test_refusals_are_counted_by_their_reason_and_who_has_gone_is_none() -> None:
    front = Front(binding=True)
    front.ask(None)
    front.ask("anna", b"wrong", client="anna")
    front.ask("anna", b"password", client="bob")
    front.checks.run()
    front.checks.run()
    front.checks.is_full = True
    front.ask("anna", b"wrong", client="anna")
    counted = {
        LoginRefusal.NOT_ALLOWED: 1,
        LoginRefusal.WRONG_CREDENTIALS: 1,
        LoginRefusal.WRONG_IDENTIFIER: 1,
        LoginRefusal.BUSY: 1,
    }
    assert front.login.refused.totals == counted
    front.is_wanted = False
    front.ask("bob")
    assert front.login.refused.totals == counted


# -- threads -----------------------------------------------------------------------------------------------------------


def test_checks_run_in_threads_and_are_answered_on_the_event_loop() -> None:
    async def scenario() -> None:
        threads = HashingThreads(maximum_waiting=9, threads=1)
        here = threading.get_ident()
        answered: asyncio.Future[tuple[bool | None, int, int]] = asyncio.get_running_loop().create_future()
        ran_in: list[int] = []

        def check() -> bool:
            ran_in.append(threading.get_ident())
            return True

        assert threads.submit(check, lambda right: answered.set_result((right, ran_in[0], threading.get_ident())))
        right, there, back = await asyncio.wait_for(answered, 30)
        threads.close()
        assert (right, back) == (True, here)
        assert there != here

    asyncio.run(scenario())


def test_a_check_for_which_the_system_has_no_thread_is_impossible_and_the_next_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One thread less checked passwords each time, and in the end none: every login was told to come later."""

    async def scenario() -> None:
        threads = HashingThreads(threads=1, maximum_waiting=1)
        results: asyncio.Queue[bool | None] = asyncio.Queue()

        def refuse(_thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as short:
            short.setattr(threading.Thread, "start", refuse)
            assert threads.submit(lambda: True, results.put_nowait)
            assert await asyncio.wait_for(results.get(), 30) is None
        assert threads.submit(lambda: True, results.put_nowait)
        assert await asyncio.wait_for(results.get(), 30) is True
        threads.close()

    asyncio.run(scenario())


class Panic(BaseException):
    """As the library for hashes raises it."""


def test_a_check_that_ends_in_a_panic_is_impossible_and_the_next_is_made() -> None:
    async def scenario() -> None:
        threads = HashingThreads(threads=1, maximum_waiting=1)
        results: asyncio.Queue[bool | None] = asyncio.Queue()

        def panic() -> bool:
            raise Panic

        for check, is_right in ((panic, None), (lambda: True, True)):
            assert threads.submit(check, results.put_nowait)
            assert await asyncio.wait_for(results.get(), 30) is is_right
        threads.close()

    asyncio.run(scenario())


NEVER_ENDS = """
import asyncio, threading
from gateway.access.hashing import HashingThreads

async def main():
    threads = HashingThreads(maximum_waiting=9, threads=1)
    assert all(threads.submit(threading.Event().wait, print) for _ in range(2))
    threads.close()

asyncio.run(main())
"""


def test_the_end_of_the_process_waits_for_no_check() -> None:
    """A busy machine leaves hardly any time to threads of a low priority, and a stop waited for two checks of them."""
    ended = subprocess.run([sys.executable, "-c", NEVER_ENDS], timeout=60, check=True, capture_output=True)
    assert (ended.stdout, ended.stderr) == (b"", b"")


def test_a_limited_number_of_checks_waits_and_a_finished_one_makes_room() -> None:
    async def scenario() -> None:
        refusals = Refusals()
        threads = HashingThreads(threads=1, maximum_waiting=3, refusals=refusals)
        let_go = threading.Event()
        results: asyncio.Queue[bool | None] = asyncio.Queue()

        def hold() -> bool:
            return let_go.wait(30)

        assert [threads.submit(hold, results.put_nowait) for _ in range(4)] == [True, True, True, False]
        assert refusals.totals[Limit.WAITING_LOGINS, ReasonCode.SERVER_BUSY] == 1
        let_go.set()
        assert [await asyncio.wait_for(results.get(), 30) for _ in range(3)] == [True, True, True]
        assert threads.submit(hold, results.put_nowait)
        assert await asyncio.wait_for(results.get(), 30) is True
        threads.close()

    asyncio.run(scenario())


def test_each_origin_has_its_turn_and_whoever_comes_often_gives_way() -> None:
    """Ten logins of one address; then one of another is checked next, where there is no more room too."""

    async def scenario() -> list[str]:
        threads = HashingThreads(threads=1, maximum_waiting=10)
        let_go = threading.Event()
        told: list[str] = []
        last: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def submit(name: str, origin: bytes) -> bool:
            def done(is_right: bool | None) -> None:
                told.append(name if is_right else f"{name} had no room")
                if name == "storm 8":
                    last.set_result(None)

            return threads.submit(lambda: let_go.wait(30), done, origin=origin)

        assert all(submit(f"storm {number}", b"a") for number in range(10))
        assert not submit("storm 10", b"a")
        assert submit("device", b"b")
        let_go.set()
        await asyncio.wait_for(last, 30)
        threads.close()
        return told

    names = asyncio.run(scenario())
    assert names[:4] == ["storm 9 had no room", "storm 0", "storm 1", "device"]
    assert names[4:] == [f"storm {number}" for number in range(2, 9)]


def test_a_check_that_was_impossible_is_no_wrong_password(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> Decision:
        threads = HashingThreads(maximum_waiting=9, threads=1)
        login = Login(Users.parse(ANNA, "users"), allows_anonymous=False, threads=threads)
        decided: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()

        here = threading.get_ident()

        def no_memory() -> bool:
            if threading.get_ident() != here:
                raise MemoryError
            return True

        login.decide(ConnectReceived(4, "c", True, 0, None, "anna", b"password"), no_memory, decided.set_result)
        decision = await asyncio.wait_for(decided, 30)
        login.close()
        return decision

    assert refusal_of_the_busy(asyncio.run(scenario()))
    assert "password check failed" in caplog.text


def refusal_of_the_busy(decision: Decision) -> bool:
    return isinstance(decision, Refused) and decision.refusal is LoginRefusal.BUSY
