"""A time-stamping authority for tests: the replies are those of `openssl ts`, behind an HTTP server of this process."""

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

POLICY: Final = "1.3.6.1.4.1.99999.1"
REPLY_TYPE: Final = "application/timestamp-reply"
_CONFIGURATION: Final = """
[tsa]
default_tsa = here
[here]
serial = serial
signer_cert = tsa.pem
certs = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = {policy}
digests = {digests}
accuracy = secs:1, millisecs:500
tsa_name = yes
ess_cert_id_alg = sha256
"""
_DAY: Final = timedelta(days=1)


def _has_ts() -> bool:
    program = shutil.which("openssl")
    return (
        program is not None
        and subprocess.run((program, "ts", "-help"), check=False, capture_output=True).returncode == 0
    )


needs_openssl_ts = pytest.mark.skipif(not _has_ts(), reason="there is no openssl with ts here")


def openssl(folder: Path, *words: object, data: bytes = b"") -> bytes:
    """What it writes; fails with what it complains of."""
    ended = subprocess.run(("openssl", *map(str, words)), cwd=folder, input=data, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode(errors="replace")
    return ended.stdout


class StampingAuthority:
    """A root certificate, one that stamps, and `openssl ts` in a folder."""

    def __init__(self, folder: Path, *, usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.TIME_STAMPING) -> None:
        folder.mkdir(parents=True)
        self.folder, self.root = folder, folder / "root.pem"
        root_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
        root, name = _name(f"Root of {folder.name}"), _name(f"Stamps of {folder.name}")
        self.root.write_bytes(
            _builder(root, root, root_key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(root_key, SHA256())
            .public_bytes(Encoding.PEM)
        )
        certificate = _builder(name, root, key)
        certificate = certificate.add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
        (folder / "tsa.pem").write_bytes(certificate.sign(root_key, SHA256()).public_bytes(Encoding.PEM))
        (folder / "tsa.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (folder / "serial").write_text("01\n")
        self._lock = threading.Lock()

    def reply(self, query: bytes, *, policy: str = POLICY, digests: str = "sha256, sha512") -> bytes:
        """The reply to a query."""
        with self._lock:
            (self.folder / "tsa.conf").write_text(_CONFIGURATION.format(policy=policy, digests=digests))
            (self.folder / "query").write_bytes(query)
            openssl(self.folder, "ts", "-reply", "-config", "tsa.conf", "-queryfile", "query", "-out", "reply")
            return (self.folder / "reply").read_bytes()

    def stamp(self, data: bytes, *words: str) -> bytes:
        """The reply to a query over data; `words` are options of `openssl ts -query`."""
        (self.folder / "data").write_bytes(data)
        options = words or ("-sha256", "-cert")
        return self.reply(openssl(self.folder, "ts", "-query", "-data", "data", *options))


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + 30 * _DAY)
    )


class StampingServer:
    """An HTTP server that answers with what `answer` makes of a query: pieces of bytes, status and type in front."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self.answer = answer
        self.status, self.content_type = 200, REPLY_TYPE
        #: Where it is set, the pieces that are sent instead of an answer, without a header of ours.
        self.raw: Callable[[], Iterable[bytes]] | None = None
        self.queries: list[bytes] = []
        self.sent_bytes = 0
        self.is_over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/stamp?a=1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                query = self.rfile.read(int(self.headers["Content-Length"]))
                server.queries.append(query)
                assert self.headers["Content-Type"] == "application/timestamp-query"
                if server.raw is not None:
                    self._send(server.raw())
                    return
                body = server.answer(query)
                self.send_response(server.status)
                self.send_header("Content-Type", server.content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _send(self, pieces: Iterable[bytes]) -> None:
                try:
                    for piece in pieces:
                        self.wfile.write(piece)
                        server.sent_bytes += len(piece)
                except OSError:
                    return  # the other side has had enough

            def log_message(self, *_words: object) -> None:
                """Says nothing."""

        return Handler
