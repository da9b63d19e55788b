"""Real servers on the loopback address, each with one way to answer, and certificates made for the test."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.unit.shared import FakeClock

Script = Callable[[socket.socket], None]


class Server:
    """Reads each request whole, keeps it, and lets its script answer."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.names: list[str | None] = []
        self.stopped = threading.Event()
        self._script = script
        self._tls = tls
        if tls is not None:
            tls.sni_callback = lambda _sock, name, _context: self.names.append(name)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.stopped.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                self._one(self._listener.accept()[0])

    def _one(self, sock: socket.socket) -> None:
        with suppress(OSError), sock:
            if self._tls is None:
                self._talk(sock)
                return
            with self._tls.wrap_socket(sock, server_side=True) as safe:
                self._talk(safe)

    def _talk(self, sock: socket.socket) -> None:
        self.requests.append(_request(sock))
        self._script(sock)


def _request(sock: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data and (more := sock.recv(65536)):
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")), 0)
    while len(body) < length and (more := sock.recv(65536)):
        body += more
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(script: Script, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(script, tls)
    try:
        yield server
    finally:
        server.stop()


def saying(answer: bytes) -> Script:
    """Send the whole response at once, and close."""
    return lambda sock: sock.sendall(answer)


def drips(first: bytes, clock: FakeClock) -> Script:
    """Says that at once, and then a byte each tenth of the clock's seconds for as long as anybody listens."""

    def script(sock: socket.socket) -> None:
        sock.sendall(first)
        while True:
            sock.sendall(b"x")
            clock.advance(0.1)

    return script


def status(code: int, *headers: str) -> Script:
    lines = "".join(f"{each}\r\n" for each in headers)
    return saying(f"HTTP/1.1 {code} Said\r\n{lines}Content-Length: 2\r\n\r\nok".encode())


def certificate(folder: Path, *names: str, days: int = 1) -> Path:
    """A certificate for those names, signed by itself, and its key, in one file. Negative days: expired."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_name(each) for each in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{names[0]}.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def server_tls(file: Path, *, highest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.maximum_version = highest
    return context
