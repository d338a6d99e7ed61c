"""What only a catalog behind REST can show; `test_lake_on_rest.py` runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from polynya.cli.main import main
from polynya.lake.spark.catalog import python_catalog, secret_properties, spark_properties
from polynya.model.errors import PolynyaError
from polynya.model.loader import load_project
from tests.lab.lab import Lab, put
from tests.projects import USERS, write_project
from tests.rest_catalogs import (
    CREDENTIAL_VARIABLE,
    Answer,
    Exchange,
    Fault,
    Forward,
    Proxy,
    is_commit,
    proxy,
    reference_server,
    rest_project,
    said,
    standing,
)


@pytest.fixture
def way() -> Iterator[Proxy]:
    """What stands between the session and its catalog; faults end with the test."""
    (found,) = standing
    before = found.fault
    yield found
    found.fault = before


def once(answer: Answer, *, reached: bool) -> Fault:
    """The first commit gets this answer, after it `reached` the server or without that."""
    met: list[Exchange] = []

    def fault(exchange: Exchange, forward: Forward) -> Answer:
        if not is_commit(exchange) or met:
            return forward(exchange)
        met.append(exchange)
        if reached:
            assert forward(exchange).status == 200
        return answer

    return fault


def test_java_and_pyiceberg_log_in_and_see_the_same(lab: Lab, way: Proxy) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    target = load_project(lab.project).target

    (named,) = python_catalog(target).list_tables(f"{lab.schema}_internal")

    assert python_catalog(target).load_table(named).scan().to_arrow().num_rows > 0
    assert users.current("id", "name") == [(1, "Ann")]
    assert "a-secret-of-tests" not in str(spark_properties(target))
    assert "a-secret-of-tests" in str(secret_properties(target))
    logins = {one.headers.get("Authorization") for one in way.seen if "/namespaces" in one.path}
    assert logins == {"Bearer client-credentials-token:sub=me"}


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("reached", [True, False])
def test_a_commit_without_an_answer_is_settled_by_reading(
    lab: Lab, way: Proxy, status: int, *, reached: bool
) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    way.fault = once(said(status), reached=reached)

    try:
        users.copy(put(2, 2, name="Ben"))
    except PolynyaError as error:
        # The step is reported as failed or unknown; the next one reads what there is.
        assert error.code.startswith("POLYNYA-LAKE-")
    users.copy(put(3, 3, name="Cid"))

    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert users.changes("id") == [(1,), (2,), (3,)]


def test_garbage_for_an_answer_is_settled_by_reading(lab: Lab, way: Proxy) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    way.fault = once(Answer(200, b"<html>"), reached=True)

    try:
        users.copy(put(2, 2, name="Ben"))
    except PolynyaError as error:
        assert error.code.startswith("POLYNYA-LAKE-")
    users.copy(put(3, 3, name="Cid"))

    assert users.changes("id") == [(1,), (2,), (3,)]


_POLYNYA = "import sys; from polynya.cli.main import main; sys.exit(main())"


def polynya(project: Path, *arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", _POLYNYA, *arguments, "-p", str(project)]
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def land(project: Path, file: int, operation: str = "INSERT") -> None:
    folder = project / "landing/users"
    folder.mkdir(parents=True, exist_ok=True)
    records = (
        {"userId": key, "sequenceNum": file, "operation": operation, "name": f"of {file}"}
        for key in range(100)
    )
    (folder / f"{file:02}.json").write_text("".join(f"{json.dumps(one)}\n" for one in records))


@pytest.mark.parametrize("reached", [True, False])
def test_a_run_that_is_killed_at_a_commit_loses_and_repeats_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    reached: bool,
) -> None:
    monkeypatch.setenv(CREDENTIAL_VARIABLE, "me:a-secret-of-tests")
    warehouse = tmp_path / "warehouse"
    with reference_server(tmp_path / "server", str(warehouse)) as server, proxy(server.uri) as way:
        text = rest_project(way.uri) + "  former: {landing: ./landing, warehouse: ./warehouse}\n"
        tasks = USERS.replace("    keys:", "    history: true\n    keys:")
        project = write_project(tmp_path, project=text, users=tasks + "batch: {max_rows: 100}\n")
        for file in (1, 2, 3):
            land(project, file)
        run = polynya(project, "run", "--once", "--target", "local")
        commits = 0

        def killing(exchange: Exchange, forward: Forward) -> Answer:
            nonlocal commits
            commits += is_commit(exchange)
            if not is_commit(exchange) or commits != 3:
                return forward(exchange)
            answer = forward(exchange) if reached else said(503)
            os.killpg(run.pid, signal.SIGKILL)
            return answer

        way.fault = killing
        assert run.wait(400) == -signal.SIGKILL, run.communicate()[0]
        way.fault = lambda exchange, forward: forward(exchange)
        land(project, 4, "DELETE")
        seen: list[str] = []
        again = polynya(project, "run", "--once", "--target", "local")
        while again.poll() is None:
            seen.append(command_lines())
            with suppress(subprocess.TimeoutExpired):
                again.wait(0.5)
        output = again.communicate()[0]

        assert again.returncode == 0, output
        assert "a-secret-of-tests" not in "\n".join([*seen, output])
        proven = polynya(project, "verify", "--target", "local")
        assert proven.wait(400) == 0, proven.communicate()[0]
        assert counted(project, "local", capsys) == (400, 400)
        # The tables go on in another catalog.
        move = ["catalog", "move", "--target", "local", "--to", "former", "-p", str(project)]
        assert main(move) == 0
        capsys.readouterr()
        assert counted(project, "former", capsys) == (400, 400)
        asked = ["query", "SELECT count(*) AS n FROM shop.users", "--json", "--engine", "embedded"]
        assert main([*asked, "--target", "former", "-p", str(project)]) == 0
        assert '"n": 0' in capsys.readouterr().out.replace('"n":0', '"n": 0')
        refused = polynya(project, "run", "--once", "--target", "local")
        assert "POLYNYA-LAKE-066" in refused.communicate(timeout=400)[0]


def counted(project: Path, target: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """Records in and out of the table."""
    assert main(["status", "--json", "--target", target, "-p", str(project)]) == 0
    status = json.loads(capsys.readouterr().out.splitlines()[1])
    return status["rows_in"], status["rows_out"]


def command_lines() -> str:
    """The command lines of all processes."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return "\n".join(found)


#: The endpoints of a server that holds views.
_VIEWS = re.compile(rb',?"[A-Z]+ [^"]*/(?:views|register-view)[^"]*"')


def test_without_views_in_the_catalog_they_are_made_for_each_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CREDENTIAL_VARIABLE, "me:a-secret-of-tests")
    warehouse = tmp_path / "warehouse"

    def without_views(exchange: Exchange, forward: Forward) -> Answer:
        if "/views" in exchange.path:
            return said(404)
        answer = forward(exchange)
        if exchange.path.startswith("/v1/config"):
            answer.body = _VIEWS.sub(b"", answer.body)
        return answer

    with reference_server(tmp_path / "server", str(warehouse)) as server, proxy(server.uri) as way:
        way.fault = without_views
        project = write_project(tmp_path, project=rest_project(way.uri), users=USERS)
        land(project, 1)
        run = polynya(project, "run", "--once")
        assert run.wait(400) == 0, run.communicate()[0]
        statement = "SELECT count(*) AS n FROM shop.users"

        asked = [
            polynya(project, "query", statement, "--output", "csv", "--engine", engine)
            for engine in ("embedded", "spark")
        ]

        for one in asked:
            answer = one.communicate(timeout=400)[0]
            assert (one.returncode, answer.split()[-1]) == (0, "100"), answer
        assert main(["doctor", "-p", str(project)]) == 0
        assert "it holds no views" in capsys.readouterr().out
