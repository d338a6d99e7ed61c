"""How MariaDB is reached: TLS that is verified, and what a refusal is called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.mariadb import Server
from polynya.capture.mysql.session import MysqlSession
from polynya.model.errors import DependencyError, PolynyaError
from tests.capture.mysql.capturing import Process, settings_of
from tests.mariadb import access_to, new_server
from tests.streams.kafka.certificates import Authority


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server whose certificate is for this address, and the certificate of its authority."""
    folder = tmp_path_factory.mktemp("tls")
    ours = Authority.of(folder, "ours")
    whole = str(ours.signs("server", host="IP:127.0.0.1"))
    server = new_server(folder / "server", {"ssl_cert": whole, "ssl_key": whole})
    try:
        server.start()
        yield server, ours.certificate
    finally:
        server.close()


def refusal(server: Server, **more: object) -> str:
    """The code of the error that a connection ends with."""
    with pytest.raises(PolynyaError) as caught:
        MysqlSession(access_to(server, **more))
    assert server.password not in caught.value.render()
    return caught.value.code


def test_a_server_whose_authority_is_known_is_trusted(secured: tuple[Server, Path]) -> None:
    server, authority = secured

    session = MysqlSession(access_to(server, tls="verify", ca=str(authority)))

    cipher = session.first("SHOW STATUS LIKE 'Ssl_cipher'")
    assert cipher is not None
    assert cipher[1]
    session.close()


def test_a_certificate_that_nobody_knows_is_refused(secured: tuple[Server, Path]) -> None:
    assert refusal(secured[0], tls="verify") == "POLYNYA-GTW-042"


def test_a_certificate_of_another_authority_is_refused(
    secured: tuple[Server, Path], tmp_path: Path
) -> None:
    other = Authority.of(tmp_path, "other").certificate

    assert refusal(secured[0], tls="verify", ca=str(other)) == "POLYNYA-GTW-042"


def test_a_server_without_tls_is_refused_where_it_is_asked_for(server: Server) -> None:
    assert refusal(server, tls="verify") == "POLYNYA-GTW-042"
    assert refusal(server, tls="require") == "POLYNYA-GTW-042"


def untrusted(secured: tuple[Server, Path], landing: Path, trusted: Path, *module: str) -> Process:
    """What is left of a capture of a server of another authority."""
    server = secured[0]
    server.execute("CREATE DATABASE IF NOT EXISTS shop", "CREATE OR REPLACE TABLE shop.a (id INT)")
    access = {"tls": "verify", "ca": str(trusted)}
    process = Process(settings_of(server, landing, access=access), *module)
    assert process.wait() == 3
    return process


def test_a_capture_ends_where_the_server_does_not_prove_itself(
    secured: tuple[Server, Path], tmp_path: Path
) -> None:
    process = untrusted(secured, tmp_path, Authority.of(tmp_path, "theirs").certificate)

    assert process.events[-1]["error"]["code"] == "POLYNYA-GTW-042"
    assert not process.events[-1]["error"]["retryable"]


@pytest.mark.slow
def test_debezium_takes_the_server_only_by_its_certificate_too(
    secured: tuple[Server, Path], tmp_path: Path
) -> None:
    other = Authority.of(tmp_path, "theirs").certificate
    process = untrusted(secured, tmp_path, secured[1], "tests.capture.distrustful", str(other))

    assert process.events[-1]["error"]["code"] == "POLYNYA-GTW-006"
    assert "valid certification path" in process.events[-1]["error"]["message"]


def test_some_certificate_is_enough_where_only_encryption_is_asked_for(
    secured: tuple[Server, Path],
) -> None:
    MysqlSession(access_to(secured[0], tls="require")).close()


def test_a_wrong_password_is_a_refusal_that_a_person_has_to_change(server: Server) -> None:
    assert refusal(server, password="wrong") == "POLYNYA-GTW-041"


def test_a_server_that_is_not_there_may_come_back(tmp_path: Path) -> None:
    absent_server = new_server(tmp_path)

    with pytest.raises(DependencyError) as caught:
        MysqlSession(access_to(absent_server))

    assert (caught.value.code, caught.value.retryable) == ("POLYNYA-GTW-040", True)


def test_a_session_that_was_ended_by_the_server_may_be_opened_again(server: Server) -> None:
    session = MysqlSession(access_to(server))
    (number,) = session.rows("SELECT CONNECTION_ID()")[0]
    server.execute(f"KILL {number}")

    with pytest.raises(DependencyError) as caught:
        session.rows("SELECT 1")

    assert caught.value.code == "POLYNYA-GTW-040"
    session.close()
    session.close()
