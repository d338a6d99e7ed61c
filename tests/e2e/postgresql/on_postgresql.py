"""What only a catalog on a server can show; `test_lake_on_postgresql.py` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.postgresql import PostgresServer
from polynya.cli.main import main
from polynya.lake.iceberg.reading import reach_of
from polynya.lake.spark.catalog import python_catalog, spark_properties
from polynya.model.loader import load_project
from polynya.store.aws.data_objects import S3Files
from tests.lab.lab import Lab, put
from tests.postgresql import PASSWORD_VARIABLE, USER_VARIABLE, environment, postgres_server
from tests.projects import USERS, postgres_project, write_project

_POLYNYA = "import sys; from polynya.cli.main import main; sys.exit(main())"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """A server that only this test uses."""
    with postgres_server() as found:
        for name, value in environment(found).items():
            monkeypatch.setenv(name, value)
        yield found


def polynya(project: Path, *arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", _POLYNYA, *arguments, "-p", str(project)]
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ)
    )


def command_lines() -> str:
    """The command lines of all processes."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


def test_java_arrow_and_pyiceberg_reach_the_same_store(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    target = load_project(lab.project).target

    options = spark_properties(target)
    (names,) = python_catalog(target).list_tables(f"{lab.schema}_internal")

    assert options["s3.endpoint"] == target.aws.endpoint
    assert "jdbc.password" not in options
    location = str(users.table().table.java.location())
    files = reach_of(location, options["io-impl"], options).reads
    assert isinstance(files, S3Files)
    assert files.endpoint == target.aws.endpoint
    assert python_catalog(target).load_table(names).scan().to_arrow().num_rows > 0
    assert users.current("id", "name") == [(1, "Ann")]


def test_two_runs_of_one_project_commit_each_record_once(
    server: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = USERS + "batch: {max_rows: 100}\n"
    project = write_project(tmp_path, project=postgres_project(server.uri), users=text)
    landing = project / "landing" / "users"
    landing.mkdir(parents=True)
    for file in range(10):
        keys = range(file * 100, file * 100 + 100)
        records = ({"userId": key, "sequenceNum": 1, "operation": "INSERT"} for key in keys)
        (landing / f"{file:02}.json").write_text("".join(f"{json.dumps(one)}\n" for one in records))

    first, second = (polynya(project, "run", "--once", "--debug") for _ in range(2))
    seen: list[str] = []
    while first.poll() is None and second.poll() is None and len(seen) < 600:
        seen.append(command_lines())
        try:
            first.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    said = [one.communicate(timeout=200)[0] for one in (first, second)]

    # One of them may give up because the other one has the table.
    assert {first.returncode, second.returncode} <= {0, 5}, said
    last = polynya(project, "run", "--once")
    assert last.wait(200) == 0, last.communicate()[0]
    assert main(["status", "--json", "-p", str(project)]) == 0
    status = json.loads(capsys.readouterr().out.splitlines()[1])
    assert (status["rows_in"], status["rows_out"]) == (1000, 1000)
    proven = polynya(project, "verify")
    assert proven.wait(200) == 0, proven.communicate()[0]
    assert server.password not in "\n".join([*seen, *said])
    assert main(["locate", "shop.users", "-p", str(project)]) == 0
    assert Path(capsys.readouterr().out.splitlines()[-1]).is_file()


def test_a_server_that_is_down_or_refuses_is_told_as_such(
    server: PostgresServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = write_project(tmp_path, project=postgres_project(server.uri), users=USERS)
    given = ["-p", str(project)]

    assert main(["status", *given]) == 0
    monkeypatch.setenv(PASSWORD_VARIABLE, "wrong")
    assert main(["status", *given]) == 4
    said = capsys.readouterr().err
    assert "POLYNYA-DEP-016" in said
    assert "wrong" not in said
    monkeypatch.setenv(PASSWORD_VARIABLE, server.password)
    server.stop()
    assert main(["run", "--once", *given]) == 4
    assert "POLYNYA-DEP-015" in capsys.readouterr().err
    server.start()
    assert main(["status", *given]) == 0
    assert USER_VARIABLE in (project / "polynya.yml").read_text()


def test_a_run_goes_on_when_the_server_is_back(server: PostgresServer, tmp_path: Path) -> None:
    project = write_project(tmp_path, project=postgres_project(server.uri), users=USERS)
    landing, log = project / "landing" / "users", tmp_path / "run.log"
    landing.mkdir(parents=True)
    record = {"userId": 1, "sequenceNum": 1, "operation": "INSERT"}
    (landing / "1.json").write_text(json.dumps(record))
    with log.open("w") as out:
        line = [sys.executable, "-c", _POLYNYA, "run", "-p", str(project)]
        run = subprocess.Popen(line, stderr=out, stdout=subprocess.DEVNULL, env=dict(os.environ))
    try:
        wait_for("copied ", log)
        server.stop()
        (landing / "2.json").write_text(json.dumps({**record, "userId": 2}))
        wait_for("failed ", log)
        server.start()
        wait_for("recovered", log)
        wait_for("copied ", log, times=2)
        run.terminate()
        code = run.wait(100)
    finally:
        run.kill()

    said = log.read_text()
    assert code == 0, said
    assert "POLYNYA-BUG" not in said
    assert "POLYNYA-DEP-015" in said or "POLYNYA-LAKE-005" in said, said


def wait_for(text: str, log: Path, *, times: int = 1) -> None:
    until = time.monotonic() + 200
    while log.read_text().count(text) < times:
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)
