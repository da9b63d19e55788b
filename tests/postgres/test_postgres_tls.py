"""The server's certificate is looked at: who signed it, and for whom."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from mailroom.campaigns.databases import login_of, parameters_of
from mailroom.errors import ConnectError
from mailroom_local.database.postgres import Postgres
from tests.postgres.conftest import Make
from tests.support.postgres.vault import Vault, database_settings
from tests.support.unit.loopback import certificate, server_tls

ASK_LENGTH = 8
ASK_TLS = b"\x04\xd2\x16\x2f"
"""The end of what a client sends that would speak TLS (PostgreSQL, Message Formats: SSLRequest)."""


class Front:
    """A server that speaks TLS, before one that does not."""

    def __init__(self, behind: int, tls: ssl.SSLContext) -> None:
        self._behind = behind
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                Thread(target=self._one, args=(self._listener.accept()[0],), daemon=True).start()

    def _one(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            while client.recv(ASK_LENGTH)[-4:] != ASK_TLS:
                client.sendall(b"N")
            client.sendall(b"S")
            with (
                self._tls.wrap_socket(client, server_side=True) as secret,
                socket.create_connection(("127.0.0.1", self._behind)) as plain,
            ):
                self._between(secret, plain)

    def _between(self, secret: ssl.SSLSocket, plain: socket.socket) -> None:
        """Question and answer in turn, which is all that a client of this kind does."""
        secret.settimeout(0.01)
        plain.settimeout(0.01)
        while True:
            for one, other in ((secret, plain), (plain, secret)):
                with suppress(TimeoutError):
                    data = one.recv(65536)
                    if not data:
                        return
                    other.sendall(data)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates, each signed by itself."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("127.0.0.1", "other.example"):
        certificate(folder, name)
    return folder


@pytest.fixture
def front(
    request: pytest.FixtureRequest, server: Postgres, vault: Vault, certificates: Path
) -> Iterator[None]:
    """The server, with the certificate of that name."""
    made = Front(server.port, server_tls(certificates / f"{request.param}.pem"))
    vault.secret["port"] = made.port
    yield
    made.close()


ITS_OWN, ANOTHERS = "127.0.0.1.pem", "other.example.pem"


def spoken(make: Make, folder: Path, sslmode: str, trusted: str) -> None:
    ca_file = str(folder / trusted) if trusted else ""
    databases = make(sslmode=sslmode, ca_file=ca_file)
    with databases.connection("app") as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("front", "sslmode", "trusted"),
    [
        ("127.0.0.1", "verify-full", ITS_OWN),
        ("other.example", "verify-ca", ANOTHERS),
        ("other.example", "require", ""),
    ],
    indirect=["front"],
)
@pytest.mark.usefixtures("front")
def test_a_connection_accepts_a_database_server_with_a_valid_certificate(
    make: Make, certificates: Path, sslmode: str, trusted: str
) -> None:
    spoken(make, certificates, sslmode, trusted)


@pytest.mark.parametrize(
    ("front", "sslmode", "trusted", "reason"),
    [
        ("127.0.0.1", "verify-full", ANOTHERS, "certificate verify failed"),
        ("127.0.0.1", "verify-ca", ANOTHERS, "certificate verify failed"),
        ("127.0.0.1", "verify-full", "", "certificate verify failed"),
        ("127.0.0.1", "verify-full", "missing.pem", "missing.pem"),
        ("other.example", "verify-full", ANOTHERS, "does not match host name"),
    ],
    indirect=["front"],
)
@pytest.mark.usefixtures("front")
def test_a_connection_to_a_database_server_with_an_invalid_certificate_fails(
    make: Make, certificates: Path, sslmode: str, trusted: str, reason: str
) -> None:
    with pytest.raises(ConnectError, match=reason):
        spoken(make, certificates, sslmode, trusted)


def test_the_systems_certificates_verify_a_database_whose_settings_lack_a_certificate_file(
    vault: Vault,
) -> None:
    system = ssl.get_default_verify_paths().cafile or "system"
    for sslmode, expected in (("verify-full", system), ("verify-ca", system), ("require", None)):
        database = database_settings(sslmode=sslmode)
        login = login_of("app", database, vault)  # type: ignore[arg-type]
        assert parameters_of(database, login).get("sslrootcert") == expected
