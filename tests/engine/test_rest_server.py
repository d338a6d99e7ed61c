"""The HTTP server of a served catalog against clients that do not behave."""

from __future__ import annotations

import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from polynya.engine import rest_server
from polynya.model.loader import load_project
from tests.lab.served import Served, duckdb_here, served
from tests.lake.warehouse.tables import make_tables
from tests.projects import write_project

TOKEN = "0123456789abcdef" * 2
CONFIG = b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(load_project(write_project(tmp_path_factory.mktemp("served")))) as found:
        yield found


def sent(catalog: Served, data: bytes) -> bytes:
    """What comes back for these bytes until the server closes or says nothing for a while."""
    with socket.create_connection(("127.0.0.1", catalog.port), timeout=2) as connection:
        found = b""
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                found += part
        except OSError:
            pass
        return found


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (CONFIG, 200),
        (CONFIG + CONFIG, 200),
        (b"GET /v1/config HTTP/1.0\r\n\r\n", 200),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 70 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"nonsense\r\n\r\n", 400),
        (b"POST /v1/namespaces HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n", 413),
        (b"POST /v1/namespaces HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /v1/namespaces HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 406),
        (b"TRACE / HTTP/1.1\r\n\r\n", 405),
        (b"GET http://169.254.169.254/latest HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/config HTTP/1.1\r\nHost: attacker.example\r\n\r\n", 403),
        (b"GET /v1/config HTTP/1.1\r\nHost: [::1]:8181\r\n\r\n", 200),
    ],
)
def test_a_request_is_answered_or_refused(catalog: Served, data: bytes, status: int) -> None:
    found = sent(catalog, data)

    assert found.startswith(f"HTTP/1.1 {status} ".encode()), found[:200]
    assert b"Python" not in found


def test_a_connection_takes_one_request_after_the_other(catalog: Served) -> None:
    assert sent(catalog, CONFIG * 3).count(b"HTTP/1.1 200") == 3


def test_a_head_that_never_ends_gets_no_more_than_its_limit(catalog: Served) -> None:
    endless = b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 200_000

    assert not sent(catalog, endless).startswith(b"HTTP/1.1 200")
    assert sent(catalog, CONFIG).startswith(b"HTTP/1.1 200")


def test_noise_does_not_stop_the_server(catalog: Served) -> None:
    seed = int(os.environ.get("POLYNYA_TEST_SEED", "41"))
    drawn = random.Random(seed)
    for _ in range(60):
        noise = bytearray(CONFIG * drawn.randint(1, 3))
        for _ in range(drawn.randint(1, 8)):
            noise[drawn.randrange(len(noise))] = drawn.randrange(256)
        sent(catalog, bytes(noise[: drawn.randint(1, len(noise))]))

    assert sent(catalog, CONFIG).startswith(b"HTTP/1.1 200"), seed


def test_slow_and_silent_clients_lose_their_connection(
    catalog: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_server, "_REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(rest_server, "_IDLE_SECONDS", 0.3)
    silent = socket.create_connection(("127.0.0.1", catalog.port), timeout=5)
    slow = socket.create_connection(("127.0.0.1", catalog.port), timeout=5)
    began, dripped = time.monotonic(), False
    try:
        # Each byte comes in time, and the whole does not.
        for byte in CONFIG:
            slow.sendall(bytes([byte]))
            time.sleep(0.05)
    except OSError:
        dripped = True

    assert silent.recv(100) == b""
    assert dripped or slow.recv(100) == b""
    assert time.monotonic() - began < 5
    silent.close()
    slow.close()


def test_too_many_connections_are_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_server, "_MAX_THREADS", 2)
    with served(load_project(write_project(tmp_path))) as found:
        held = [socket.create_connection(("127.0.0.1", found.port)) for _ in range(2)]
        deadline = time.monotonic() + 10
        while found.server.connections < 2 and time.monotonic() < deadline:
            time.sleep(0.01)

        with socket.create_connection(("127.0.0.1", found.port), timeout=5) as third:
            assert third.recv(100).startswith(b"HTTP/1.1 503 ")
        for one in held:
            one.close()
        deadline = time.monotonic() + 10
        while found.server.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert found.ask("/v1/config")[0] == 200


def test_many_clients_at_a_time(catalog: Served) -> None:
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(catalog.ask("/v1/namespaces")[0]))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert statuses == [200] * 20


def test_only_the_token_opens_the_catalog(tmp_path: Path) -> None:
    make_tables(write_project(tmp_path), "orders")
    with served(load_project(tmp_path), token=TOKEN) as found:
        status, document, headers = found.ask("/v1/config")
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert document["error"]["type"] == "NotAuthorizedException"
        for wrong in (f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer ", "Bearer \xff"):
            assert found.ask("/v1/config", Authorization=wrong)[0] == 401
        # With a token the name by which a client came does not matter.
        right = f"bearer {TOKEN}"
        assert found.ask("/v1/config", Authorization=right, Host="catalog.example")[0] == 200

        with duckdb_here() as engine:
            engine.execute(f"CREATE SECRET lake_token (TYPE iceberg, TOKEN '{TOKEN}')")
            engine.execute(
                f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{found.url}', SECRET lake_token)"
            )
            rows = engine.execute("SELECT count(*) FROM lake.shop_internal.orders").fetchall()
            assert rows == [(2,)]
        assert TOKEN not in repr(found.events)


def test_tls(tmp_path: Path) -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = self_signed(tmp_path)
    server_side.load_cert_chain(certificate, key)
    with served(load_project(write_project(tmp_path)), token=TOKEN, tls=server_side) as found:
        assert found.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(certificate))
        with (
            socket.create_connection(("127.0.0.1", found.port), timeout=5) as plain,
            trusting.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(
                b"GET /v1/config HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n" % TOKEN.encode()
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        # Who does not speak TLS neither stops it nor gets an answer.
        assert not sent(found, CONFIG).startswith(b"HTTP/")


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for `localhost`, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, file = folder / "server.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, file
