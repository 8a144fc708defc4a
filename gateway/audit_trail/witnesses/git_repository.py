"""A witness that is a branch of a Git repository: one commit for each submission, pushed and never forced.

Each digest is a file `digests/NNNNNNNNN/NNNNNNNNNNNN.digest`, in folders of a thousand. A receipt of the last commit
that was pushed lies in the trail (spark_audit/trail/receipt.py). The commits are made in a bare
repository beside the trail, so a push is tried again without making them anew. `check` tries to replace the branch's
last commit by another one with the same files, and then to delete the branch. Both must be refused. If the remote
accepts one of them, the branch is put back at once, and this is no witness.

Every call of git has a limit of time, of its output, and of the size of the files that it writes.
"""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.audit_trail.child import ProgramFailed, output_of
from gateway.audit_trail.durable_file import put_in_place
from gateway.audit_trail.witnesses.witness import Witnessed, WitnessError, WorthlessWitness, operation_of
from mq_adapters.embedded.store.files import make_folder
from spark_audit.trail.digest import DIGEST_FOLDER, digest_number, digest_place
from spark_audit.trail.receipt import GitReceipt, receipt_bytes, receipt_path

#: What git may write into one file, blocks of 512 bytes: a branch with 350,000 digests (ten years) has 100 MB.
_MOST_FILE_BLOCKS: Final = 2 * 1024 * 1024
_AUTHOR: Final = "rfhbridge <rfhbridge@localhost>"
_FETCHED: Final = "refs/rfhbridge/fetched"
_MENDED_HINT: Final = "the gateway tries again by itself; `git ls-remote` with the same address shows more"
_PROTECT_HINT: Final = "protect the branch, or set receive.denyNonFastForwards and receive.denyDeletes there"


class GitRepository:
    """The branch of a remote. Raises WitnessError."""

    kind: Final = "git"

    def __init__(
        self,
        name: str,
        folder: Path,
        trail: Path,
        *,
        remote: str,
        branch: str,
        git_settings_file: str = "",
        timeout_s: float = 60.0,
    ) -> None:
        self.name = name
        self._folder = folder
        self._receipt = receipt_path(trail, name)
        self._remote = remote
        self._ref = f"refs/heads/{branch}"
        self._git_settings = git_settings_file or os.devnull
        self._timeout_s = timeout_s

    def check(self) -> None:
        """Both ways of rewriting the branch must be refused. A new branch begins without a digest."""
        if not self._commit_of(self._ref):
            self._import([], "A branch for the digests of a trail")
        self._push(f"{self._ref}:{self._ref}")
        ours = self._commit_of(self._ref)
        for way, pushed in (("a forced push", f"+{self._sibling(ours)}:{self._ref}"), ("a deletion", f":{self._ref}")):
            with contextlib.suppress(WitnessError):
                self._push(pushed)
            if self._remote_commit() != ours:
                self._push(f"+{ours}:{self._ref}")
                cause = f"the remote accepts {way} of {self._ref}, so anybody who may push can rewrite the branch"
                raise WorthlessWitness(operation_of(self.name), cause, _PROTECT_HINT)

    def last(self) -> Witnessed:
        """The last digest of the remote's branch, which becomes that of the repository here."""
        self._prepare()
        there = self._remote_commit()
        if there:
            self._take_over(there)
        return self._last_in(there) if there else Witnessed()

    def submit(self, digests: Mapping[int, bytes]) -> None:
        """One commit and one push."""
        first, last = min(digests), max(digests)
        files = [(digest_place(number), data) for number, data in digests.items()]
        self._import(files, f"Digests {first} to {last}" if first < last else f"Digest {last}")
        self._push(f"{self._ref}:{self._ref}")
        self._write_receipt(last, digests[last])

    # -- inside --------------------------------------------------------------------------------------------------------

    def _write_receipt(self, number: int, digest: bytes) -> None:
        """The objects of Git from the commit that was pushed down to a digest."""
        folders = digest_place(number).split("/")[:-1]
        places = ["/".join(folders[:depth]) for depth in range(len(folders) + 1)]
        receipt = GitReceipt(
            number=number,
            sha256=hashlib.sha256(digest).hexdigest(),
            ref=self._ref,
            commit=self._git("cat-file", "commit", self._ref),
            trees=tuple(self._git("cat-file", "tree", f"{self._ref}:{place}") for place in places),
        )
        make_folder(self._receipt.parent)
        put_in_place(self._receipt, (receipt_bytes(receipt),))

    def _prepare(self) -> None:
        make_folder(self._folder.parent)
        if not (self._folder / "HEAD").is_file():
            self._git("init", "--quiet", "--bare", os.fspath(self._folder), in_folder=False)

    def _take_over(self, there: str) -> None:
        """The remote's commit becomes ours, unless ours is not among those before it."""
        ours = self._commit_of(self._ref)
        if not self._has(there):
            self._git("fetch", "--quiet", "--no-tags", self._remote, f"+{self._ref}:{_FETCHED}")
        if ours and ours != there and not self._is_before(ours, there):
            if self._is_before(there, ours):
                return  # the push of ours is still due
            cause = f"{self._ref} there is {there}, which does not follow {ours}: its history was rewritten"
            raise WitnessError(
                operation_of(self.name), cause, "keep both repositories as evidence, and name another branch"
            )
        self._git("update-ref", self._ref, there)

    def _last_in(self, commit: str) -> Witnessed:
        folders = self._names(commit, f"{DIGEST_FOLDER}/")
        names = self._names(commit, f"{max(folders)}/") if folders else []
        numbers = [number for name in names if (number := digest_number(name.rpartition("/")[2]))]
        if not numbers:
            return Witnessed()
        last = max(numbers)
        return Witnessed(number=last, data=self._git("cat-file", "blob", f"{commit}:{digest_place(last)}"))

    def _names(self, commit: str, folder: str) -> list[str]:
        return self._git("ls-tree", "--name-only", "-z", commit, folder).decode(errors="replace").split("\0")[:-1]

    def _import(self, files: list[tuple[str, bytes]], subject: str) -> None:
        """Makes a commit with further files on the branch here."""
        ours = self._commit_of(self._ref)
        parts = [
            f"commit {self._ref}\ncommitter {_AUTHOR} now\ndata {len(subject)}\n{subject}\n".encode(),
            f"from {ours}\n".encode() if ours else b"",
            *(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n" for path, data in files),
        ]
        self._git("fast-import", "--quiet", "--date-format=now", data=b"".join(parts))

    def _sibling(self, commit: str) -> str:
        """Another commit with the same files and parents."""
        parents = self._git("rev-parse", f"{commit}^@").decode().split()
        named = [word for parent in parents for word in ("-p", parent)]
        message = f"Try a forced push {secrets.token_hex(8)}"
        return self._git("commit-tree", f"{commit}^{{tree}}", "-m", message, *named).decode().strip()

    def _push(self, refspec: str) -> None:
        self._git("push", "--quiet", "--no-verify", self._remote, refspec)

    def _remote_commit(self) -> str:
        """The commit of the branch at the remote; "" where it is not there."""
        lines = self._git("ls-remote", "--refs", self._remote, self._ref).decode(errors="replace").splitlines()
        return next((line.partition("\t")[0] for line in lines if line.endswith(f"\t{self._ref}")), "")

    def _commit_of(self, ref: str) -> str:
        try:
            return self._git("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}").decode().strip()
        except WitnessError:
            return ""

    def _has(self, commit: str) -> bool:
        return bool(self._commit_of(commit))

    def _is_before(self, commit: str, other: str) -> bool:
        try:
            self._git("merge-base", "--is-ancestor", commit, other)
        except WitnessError:
            return False
        return True

    def _git(self, *words: str, data: bytes = b"", in_folder: bool = True) -> bytes:
        """The output of git. Its settings are those of the named file alone, and it never asks questions."""
        place = ("--git-dir", os.fspath(self._folder)) if in_folder else ()
        try:
            return output_of(
                ("git", *place, *words),
                data=data,
                timeout_s=self._timeout_s,
                environment=_environment(self._git_settings),
                most_file_blocks=_MOST_FILE_BLOCKS,
            )
        except ProgramFailed as error:
            raise WitnessError(operation_of(self.name), f"git {words[0]}: {error}", _MENDED_HINT) from None


def _environment(git_settings_file: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": git_settings_file,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "rfhbridge",
        "GIT_AUTHOR_EMAIL": "rfhbridge@localhost",
        "GIT_COMMITTER_NAME": "rfhbridge",
        "GIT_COMMITTER_EMAIL": "rfhbridge@localhost",
    }
