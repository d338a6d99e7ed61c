"""What a database may do wrong while it is asked: what passes by itself is told from the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from examples.servers.door import certificate, door
from polynya.capture.postgresql.session import PostgresSession
from polynya.model.errors import DependencyError, OperationError
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop

WORKER: Final = ("polynya.capture.worker",)


def test_a_server_is_proven_by_its_certificate_and_name(shop: Shop, tmp_path: Path) -> None:
    shown = certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    for_somebody_else = certificate(other, host="DNS:db.example")

    with door(shop.server.port, certificate=shown) as tls:
        verified = shop.access(port=tls.port, tls="verify", ca=str(shown))
        with PostgresSession(verified) as session:
            assert session.run("SELECT 1") == [[1]]
        assert (
            "TLS, verified"
            in shop.open(port=tls.port, tls="verify", ca=str(shown)).findings()[0].what
        )
        with pytest.raises(OperationError, match="not secure"):
            PostgresSession(shop.access(port=tls.port, tls="verify"))
        with PostgresSession(shop.access(port=tls.port, tls="require")) as session:
            assert session.run("SELECT 1") == [[1]]
    with door(shop.server.port, certificate=for_somebody_else) as tls:
        with pytest.raises(OperationError) as caught:
            PostgresSession(shop.access(port=tls.port, tls="verify", ca=str(for_somebody_else)))
        assert caught.value.code == "POLYNYA-GTW-022"


def untrusted(shop: Shop, folder: Path, trusted: str, *module: str) -> dict[str, Any]:
    """What ends a capture of a server that shows a certificate of its own."""
    shop.run("CREATE TABLE orders (id int PRIMARY KEY)")
    (folder / "landing").mkdir()
    with door(shop.server.port, certificate=certificate(folder)) as tls:
        access = shop.access(port=tls.port, tls="verify", ca=str(folder / trusted))
        capture = CaptureProcess(folder / "landing", access, module=module or WORKER)
        capture.start()
        assert capture.process is not None
        assert capture.process.wait(120) == 3
    found: dict[str, Any] = capture.events()[-1]["error"]
    return found


def another(folder: Path) -> Path:
    """A certificate that nobody shows."""
    (folder / "other").mkdir()
    return certificate(folder / "other")


def test_a_capture_ends_where_the_server_does_not_prove_itself(shop: Shop, tmp_path: Path) -> None:
    error = untrusted(shop, tmp_path, str(another(tmp_path)))

    assert (error["code"], error["retryable"]) == ("POLYNYA-GTW-022", False)


@pytest.mark.slow
def test_debezium_takes_the_server_only_by_its_certificate_too(shop: Shop, tmp_path: Path) -> None:
    other = str(another(tmp_path))

    error = untrusted(shop, tmp_path, "door.pem", "tests.capture.distrustful", other)

    assert error["code"] == "POLYNYA-GTW-006"
    assert "CertPathValidatorException" in error["message"]


def test_a_server_without_tls_is_not_spoken_to_where_tls_is_wanted(shop: Shop) -> None:
    with pytest.raises(OperationError) as caught:
        PostgresSession(shop.access(tls="verify"))

    assert caught.value.code == "POLYNYA-GTW-022"


@pytest.mark.parametrize("wrong", [{"password": "wrong"}, {"user": "nobody"}, {"database": "no"}])
def test_a_refused_log_in_does_not_pass_by_itself(shop: Shop, wrong: dict[str, str]) -> None:
    with pytest.raises(OperationError) as caught:
        PostgresSession(shop.access(**wrong))

    assert caught.value.code == "POLYNYA-GTW-021"
    assert not caught.value.retryable
    assert shop.server.password not in caught.value.render()


def test_a_server_that_is_away_or_goes_away_is_worth_another_try(shop: Shop) -> None:
    with pytest.raises(DependencyError) as refused:
        PostgresSession(shop.access(port=1))
    with door(shop.server.port) as way, PostgresSession(shop.access(port=way.port)) as session:
        way.cut()
        with pytest.raises(DependencyError) as cut:
            session.run("SELECT 1")
    with PostgresSession(shop.access()) as session:
        pid = session.run("SELECT pg_backend_pid()")[0][0]
        shop.run(f"SELECT pg_terminate_backend({pid}, 5000)")
        with pytest.raises(DependencyError) as ended:
            session.run("SELECT 1")

    assert {one.value.code for one in (refused, cut, ended)} == {"POLYNYA-GTW-020"}
    assert all(one.value.retryable for one in (refused, cut, ended))


def test_a_slot_that_cannot_be_decoded_is_worth_another_one(shop: Shop) -> None:
    said = 'could not map filenumber "base/5/16395" to relation OID'
    with PostgresSession(shop.access()) as session, pytest.raises(DependencyError) as caught:
        session.run(f"DO $$ BEGIN RAISE EXCEPTION '{said}'; END $$")

    assert caught.value.code == "POLYNYA-GTW-033"


def test_a_condition_that_is_no_sql_is_for_a_person(shop: Shop) -> None:
    shop.run("CREATE TABLE orders (id int PRIMARY KEY)")
    (table,), view = shop.begin("public.orders")

    with pytest.raises(OperationError, match="refused a statement"):
        view.read(table, None, 10, "id >> 'x'")
    assert view.read(table, None, 10, "id > 0").is_last
