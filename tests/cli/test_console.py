"""`polynya console`: on this machine, and by a tunnel to the server in AWS."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main
from polynya.store.aws.server_instance import ACCESS_TAG, PORT_TAG, SERVER_TAG
from tests.aws import aws_server, client
from tests.projects import aws_project, write_project

PLACE = "s3://acme-config/shop"
#: Forwards a port as the AWS CLI does: the plugin is a process of its own, and outlives a `kill`.
AWS = """#!{python}
import http.server, json, os, subprocess, sys
with open(os.environ["SAID"], "a") as said:
    said.write(json.dumps(sys.argv[1:]) + "\\n")
if os.environ.get("REFUSED"):
    sys.exit("An error occurred (AccessDeniedException): not authorized to ssm:StartSession")
plugin = subprocess.Popen(["session-manager-plugin"])
with open(os.environ["SAID"], "a") as said:
    said.write(json.dumps(plugin.pid) + "\\n")
ports = json.loads(sys.argv[sys.argv.index("--parameters") + 1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(ports["localPortNumber"][0])), Handler).serve_forever()
"""
#: Opens the address, notes it and its status, and presses Ctrl-C in the console that opened it.
BROWSER = """#!{python}
import os, signal, sys, urllib.error, urllib.request
try:
    status = urllib.request.urlopen(sys.argv[1], timeout=30).status
except urllib.error.HTTPError as error:
    status = error.code
open(os.environ["SEEN"], "w").write(f"{status} {sys.argv[1]}")
os.kill(os.getppid(), signal.SIGINT)
"""


@dataclass
class Programs:
    """Programs on PATH, and what they noted."""

    folder: Path

    def put(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text.replace("{python}", sys.executable))
        path.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "BROWSER": f"{self.folder}/browser %s",
            "SAID": str(self.folder / "said"),
            "SEEN": str(self.folder / "seen"),
        }

    @property
    def said(self) -> list[Any]:
        return [json.loads(line) for line in (self.folder / "said").read_text().splitlines()]


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    made = Programs(tmp_path / "bin")
    made.folder.mkdir()
    made.put("aws", AWS)
    made.put("session-manager-plugin", "#!/bin/sh\nexec sleep 120\n")
    made.put("browser", BROWSER)
    return made


@pytest.fixture
def opened(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that are opened in a browser; each presses Ctrl-C in this process."""
    for name, value in programs.environment.items():
        monkeypatch.setenv(name, value)
    addresses: list[str] = []

    def open_and_end(address: str) -> bool:
        addresses.append(address)
        os.kill(os.getpid(), signal.SIGINT)
        return True

    monkeypatch.setattr("webbrowser.open", open_and_end)
    return addresses


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with aws_server() as found:
        yield found


def launch(endpoint: str, place: str, access: str) -> str:
    """An instance with the tags of a server."""
    tags = {SERVER_TAG: place, PORT_TAG: "8181", ACCESS_TAG: access}
    named = [{"Key": key, "Value": value} for key, value in tags.items()]
    answer = client("ec2", endpoint).run_instances(
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": named}],
    )
    return str(answer["Instances"][0]["InstanceId"])


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def run(folder: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polynya", "-p", str(folder), "console", *words]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_tunnel_is_opened_to_the_server_of_the_target_and_ended_with_ctrl_c(
    tmp_path: Path, endpoint: str, programs: Programs, opened: list[str]
) -> None:
    write_project(tmp_path, project=aws_project(endpoint))
    old = launch(endpoint, PLACE, "ssm")
    client("ec2", endpoint).terminate_instances(InstanceIds=[old])
    launch(endpoint, "s3://acme-config/another", "ssm")
    instance = launch(endpoint, PLACE, "ssm")

    assert called(tmp_path, "console") == 130

    command, plugin = programs.said
    assert command[:6] == [
        "ssm", "start-session", "--target", instance,
        "--document-name", "AWS-StartPortForwardingSession",
    ]  # fmt: skip
    ports = json.loads(command[7])
    assert ports["portNumber"] == ["8181"]
    assert command[8:] == ["--region", "eu-central-1"]
    (port,) = ports["localPortNumber"]
    assert opened == [f"http://127.0.0.1:{port}/console"]
    assert gone(plugin)


def test_a_tunnel_that_is_refused_says_why(
    tmp_path: Path,
    endpoint: str,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_project(tmp_path, project=aws_project(endpoint))
    launch(endpoint, PLACE, "ssm")
    for name, value in {**programs.environment, "REFUSED": "1"}.items():
        monkeypatch.setenv(name, value)

    assert called(tmp_path, "console", "--no-browser") != 0

    printed = capsys.readouterr().err
    assert "POLYNYA-SRV-065" in printed
    assert "not authorized to ssm:StartSession" in printed


def test_a_login_comes_back_to_the_name_and_the_port_that_the_access_file_has(
    tmp_path: Path, endpoint: str, programs: Programs, opened: list[str]
) -> None:
    write_project(tmp_path, project=aws_project(endpoint))
    launch(endpoint, PLACE, "ssm")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    head = "apiVersion: polynya/v1\nkind: access\nroles: {owner: [ann@example.com]}\n"
    (tmp_path / "access.yml").write_text(f"{head}url: http://localhost:{port}\n")

    assert called(tmp_path, "console") == 130
    assert opened == [f"http://localhost:{port}/console"]
    assert json.loads(programs.said[0][7])["localPortNumber"] == [str(port)]


def test_a_port_that_another_server_has_is_refused_before_a_tunnel_is_opened(
    tmp_path: Path,
    endpoint: str,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_project(tmp_path, project=aws_project(endpoint))
    launch(endpoint, PLACE, "ssm")
    monkeypatch.setenv("PATH", programs.environment["PATH"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert called(tmp_path, "console", "--port", port) != 0

    assert f"127.0.0.1:{port}" in capsys.readouterr().err
    assert not (programs.folder / "said").exists()


@pytest.mark.parametrize("missing", ["aws", "session-manager-plugin"])
def test_a_program_that_is_not_installed_is_named_with_what_to_install(
    tmp_path: Path,
    endpoint: str,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
) -> None:
    write_project(tmp_path, project=aws_project(endpoint))
    launch(endpoint, PLACE, "ssm")
    (programs.folder / missing).unlink()
    monkeypatch.setenv("PATH", str(programs.folder))

    assert called(tmp_path, "console") != 0

    printed = capsys.readouterr().err
    assert "POLYNYA-SRV-064" in printed
    assert f"`{missing}` is not installed" in printed
    assert "User Guide" in printed


def test_a_target_without_a_server_is_an_error_that_says_what_to_deploy(
    tmp_path: Path, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, project=aws_project(endpoint))
    project = tmp_path / "polynya.yml"
    project.write_text(project.read_text().replace(PLACE, "s3://acme-config/unserved"))

    assert called(tmp_path, "console") != 0

    printed = capsys.readouterr().err
    assert "POLYNYA-SRV-063" in printed
    assert "server: {}" in printed


def test_behind_a_load_balancer_the_address_is_that_of_the_access_file(
    tmp_path: Path,
    endpoint: str,
    programs: Programs,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_project(tmp_path, project=aws_project(endpoint))
    project = tmp_path / "polynya.yml"
    project.write_text(project.read_text().replace(PLACE, "s3://acme-config/balanced"))
    launch(endpoint, "s3://acme-config/balanced", "load_balancer")
    assert called(tmp_path, "console") != 0
    assert "POLYNYA-SRV-066" in capsys.readouterr().err

    # Nothing listens there, and nothing is waited for in this test.
    monkeypatch.setattr("polynya.cli.console._WAIT_SECONDS", 0.5)
    head = "apiVersion: polynya/v1\nkind: access\n"
    roles = "roles: {owner: [ann@example.com]}\n"
    (tmp_path / "access.yml").write_text(f"{head}url: https://localhost:9\n{roles}")
    assert called(tmp_path, "console") != 0
    printed = capsys.readouterr().err
    assert "POLYNYA-SRV-065" in printed
    assert "https://localhost:9" in printed
    assert not (programs.folder / "said").exists()


@pytest.mark.slow
def test_a_local_project_is_served_on_a_free_port_and_shown(
    tmp_path: Path, programs: Programs
) -> None:
    done = run(write_project(tmp_path), programs.environment)

    assert done.returncode == 130, done.stderr
    status, seen = (programs.folder / "seen").read_text().split()
    assert status == "200"
    assert seen.startswith("http://127.0.0.1:")
    assert seen.endswith("/console")
    assert seen in done.stderr
    assert not (programs.folder / "said").exists()


def called(folder: Path, *words: str) -> int:
    """The exit code of a command in this process."""
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        return main(["-p", str(folder), *words])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
