"""`polynya serve`: who may reach it, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from polynya.cli.main import main
from tests.lake.warehouse.tables import make_tables
from tests.projects import USERS, write_project

TOKEN = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--host", "0.0.0.0"], "POLYNYA-ACC-030"),
        (["--host", "::"], "POLYNYA-ACC-030"),
        (["--host", "no such host"], "POLYNYA-QRY-012"),
        (["--token", "env:LONG"], "POLYNYA-CLI-001"),
        (["--catalog", "--port", "70000"], "POLYNYA-CLI-001"),
        (["--catalog", "--host", "0.0.0.0"], "POLYNYA-QRY-010"),
        (["--catalog", "--host", "::"], "POLYNYA-QRY-010"),
        (["--catalog", "--host", "no such host"], "POLYNYA-QRY-012"),
        (["--catalog", "--host", "192.0.2.1", "--token", "env:LONG"], "POLYNYA-QRY-012"),
        (["--catalog", "--token", TOKEN], "POLYNYA-QRY-011"),
        (["--catalog", "--token", "env:MISSING"], "POLYNYA-QRY-011"),
        (["--catalog", "--token", "env:SHORT"], "POLYNYA-QRY-011"),
        (["--catalog", "--token", "env:ODD"], "POLYNYA-QRY-011"),
        (["--catalog", "--tls-key", "k"], "POLYNYA-CLI-001"),
        (["--catalog", "--tls-key", "k", "--tls-certificate", "c"], "POLYNYA-QRY-013"),
    ],
)
def test_what_cannot_be_served_is_refused_before_it_listens(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: str,
) -> None:
    values = {"LONG": TOKEN, "SHORT": TOKEN[1:], "ODD": TOKEN + "\n"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    write_project(tmp_path)
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert main(["-p", str(tmp_path), "serve", *arguments]) != 0
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    printed = capsys.readouterr()
    assert code in printed.err
    # Not even a token that was given in the wrong way is repeated.
    assert TOKEN not in printed.err + printed.out


def test_a_port_in_use_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        try:
            code = main(["-p", str(write_project(tmp_path)), "serve", "--catalog", "--port", port])
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    assert code != 0
    assert "POLYNYA-QRY-012" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 0), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_it_serves_until_a_signal(tmp_path: Path, number: int, code: int) -> None:
    make_tables(write_project(tmp_path), "orders")
    arguments = ["-p", str(tmp_path), "--json", "serve", "--catalog", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "polynya", *arguments, "--token", "env:LAKE_TOKEN"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LAKE_TOKEN": TOKEN},
    )
    try:
        assert process.stdout is not None
        lines = (json.loads(line) for line in process.stdout)
        event = next(line for line in lines if line["type"] == "catalog.served")
        client = load_catalog("any", type="rest", uri=event["url"], token=TOKEN)
        assert client.list_tables("shop_internal") == [("shop_internal", "orders")]
        # The client keeps its connection, which must not keep the server.
        process.send_signal(number)
        assert process.wait(timeout=60) == code
    finally:
        process.kill()
        process.wait()


def test_the_api_answers_soon_and_until_a_signal(tmp_path: Path) -> None:
    write_project(tmp_path, users=USERS)
    process = subprocess.Popen(
        [sys.executable, "-m", "polynya", "-p", str(tmp_path), "--json", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = (json.loads(line) for line in process.stdout)
        event = next(line for line in lines if line["type"] == "api.served")
        connection = http.client.HTTPConnection(event["url"].removeprefix("http://"))
        connection.request("GET", "/health")
        probe = connection.getresponse().read()
        probed = _processor_seconds(process.pid)
        connection.request("GET", "/api/v1/datasets")
        page = json.load(connection.getresponse())
        answered = _processor_seconds(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()

    assert [one["name"] for one in page["items"]] == ["shop.users"]
    assert probe == b"ok\n"
    # Other work on the machine makes the clock slow, and processor seconds hardly more. A fast
    # machine takes a third of both (`python -m bench cold`).
    assert (probed < 4, answered < 9) == (True, True)


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


#: What makes the start of the server slow and is needed by few requests: each is loaded by them.
_LATE = (
    "apprise", "boto3", "duckdb", "joserfc", "kafka", "pandas", "polars", "prometheus_client",
    "pymysql", "polynya.capture.worker", "polynya.cluster.agent",
    "polynya.cluster.control.requests",
    "polynya.engine.answers", "polynya.engine.runner", "polynya.engine.served_catalog",
    "polynya.engine.tasks.storage", "polynya.lake.apply", "polynya.lake.copy",
    "polynya.lake.read.query", "pyspark", "sqlglot",
)  # fmt: skip


def test_the_server_starts_without_what_few_requests_need() -> None:
    program = (
        "import sys, polynya.server.access.guard, polynya.server.app, polynya.server.http_protocol;"
        f"print([one for one in {_LATE!r} if one in sys.modules], len(sys.modules))"
    )

    said = subprocess.check_output([sys.executable, "-c", program], text=True)

    found, _, modules = said.rpartition(" ")
    assert found == "[]"
    # 1,250 when this was written; before, it took 1,770.
    assert int(modules) < 1_330


#: What a probe that the server is up does not need.
_AFTER_A_PROBE = ("jinja2", "pyarrow", "pyiceberg", "polynya.server.app", "polynya.server.state")


def test_a_probe_is_answered_before_the_routes_are_loaded() -> None:
    program = (
        "import sys, polynya.cli.serve, polynya.server.http_protocol, polynya.server.starting;"
        f"print([one for one in {(*_LATE, *_AFTER_A_PROBE)!r} if one in sys.modules])"
    )

    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


def test_views_for_duckdb_name_the_catalog_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ["-p", str(write_project(tmp_path))]
    for wrong in ("lake", "ftp://lake", "http://me:pw@lake", "http://lake:0", "http://la\nke"):
        assert main([*folder, "views", "shop.users", "--attach", wrong]) == 2
    assert main([*folder, "views", "shop.users", "--engine", "trino", "--attach", "http://a"]) == 2
    assert main([*folder, "views", "shop.users", "--secret", "a"]) == 2
    assert capsys.readouterr().err.count("error[POLYNYA-CLI-001]") == 7
