"""Who answers for dead letters: the user of the client that caused them, or else the networks of its address.

A letter on a session's lane was caused by that session, any other one by the client of its private origin. The letter's
origin names the owner of that session from then on (gateway/audit_trail/notes/origin.py), so that a restart charges the
same account, though the session may be gone. A letter whose client has no session when it is made has no payer.
"""

from typing import Final, NamedTuple

from gateway.audit_trail.notes.origin import client_of, payer_of, with_payer, without_payer
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.limits.budgets import Account, Amount
from gateway.limits.owner import Owner
from gateway.limits.refusals import LimitReached
from mq_adapters.message import MQCI_NONE, Message

_USER: Final = b"u"
_NETWORK: Final = b"n"


def payer_of_session(session: ClientSession) -> bytes:
    """The payer of what a session causes, as an origin names it."""
    return _USER + session.user.encode() if session.user is not None else _NETWORK + session.network


class _Paying(NamedTuple):
    account: Account
    letters: int


class LetterPayers:
    """Charges dead letters to the budgets of users and networks. See mq_adapters.embedded.dead_letter_shares.Payers."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._paying: dict[bytes, _Paying] = {}

    def marked(self, letter: Message) -> bytes:
        correl_id = letter.descriptor.correl_id
        if correl_id != MQCI_NONE:
            session = self._sessions.of_correl_id(correl_id)
        else:
            session = self._sessions.get(client_of(letter.origin))
        return letter.origin if session is None else with_payer(letter, payer_of_session(session))

    def unmarked(self, origin: bytes) -> bytes:
        return without_payer(origin)

    def of(self, origin: bytes) -> bytes:
        return payer_of(origin)

    def limit(self, payer: bytes, letters: int, size: int) -> LimitReached | None:
        budgets, account = self._sessions.budgets, self._visited(payer)
        found = budgets.refusal(account, Amount.DEAD_LETTERS, letters)
        if account.amounts[Amount.DEAD_LETTERS]:  # a single letter is always taken
            found = found or budgets.refusal(account, Amount.DEAD_LETTER_BYTES, size)
        budgets.leave(account)
        return found

    def charge(self, payer: bytes, letters: int, size: int) -> None:
        """An account is kept as long as a letter is charged to it."""
        known = self._paying.get(payer)
        account = self._visited(payer) if known is None else known.account
        account.charge(Amount.DEAD_LETTERS, letters)
        account.charge(Amount.DEAD_LETTER_BYTES, size)
        left = letters + (0 if known is None else known.letters)
        if left > 0:
            self._paying[payer] = _Paying(account, left)
        else:
            self._paying.pop(payer, None)
            self._sessions.budgets.leave(account)

    def _visited(self, payer: bytes) -> Account:
        name = payer[1:]
        is_user = payer.startswith(_USER)
        return self._sessions.budgets.visit(Owner(name.decode(errors="replace")) if is_user else Owner(None, name))
