"""`polynya console`: opens the console in the browser, of this machine or of a server in AWS."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import stopped_by_signals
from polynya.cli.serve import ApiServing, serve_api
from polynya.cli.stopping import EndedEarly, Stopping
from polynya.model.config.aws import is_loopback
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.operation import CATALOG_ADDRESS_UNUSABLE
from polynya.model.error_catalogue.server_operations import (
    CONSOLE_PROGRAM_MISSING,
    CONSOLE_UNREACHED,
    CONSOLE_URL_UNKNOWN,
    CONSOLE_WITHOUT_SERVER,
)
from polynya.model.names import S3Location
from polynya.observe.catalog import ConsoleOpened
from polynya.store.clock import Clock, SystemClock

if TYPE_CHECKING:
    from polynya.model.loader import LoadedProject

#: Where the pages of the server are, and what it answers to anybody.
_PAGES: Final = "/console"
_HEALTH: Final = "/health"
_HOST: Final = "127.0.0.1"
_MAX_PORT: Final = 65535
#: A tunnel and a server that starts take some seconds each.
_WAIT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.3
_PROBE_SECONDS: Final = 3.0
_END_SECONDS: Final = 5.0
_MOST_SAID: Final = 500
_PROGRAMS: Final = {
    "aws": "the AWS CLI, version 2 (AWS CLI User Guide, `Install or update the AWS CLI`)",
    "session-manager-plugin": "the Session Manager plugin (Systems Manager User Guide, `Install "
    "the Session Manager plugin for the AWS CLI`)",
}


@stopped_by_signals
def console(
    *,
    port: int = 0,
    no_browser: bool = False,
    local: bool = False,
    context: Context,
) -> int:
    """Open the console in the browser; Ctrl-C ends it.

    Starts `polynya serve` on this machine. If the `config` of the target is in S3, it opens a
    tunnel to the server that the stage runs in AWS instead, by port forwarding of Session Manager,
    or the address of its load balancer.

    For example: `polynya console --target prod`.

    Args:
        port: port on this machine; default that of `url` in `access.yml` if it names this machine,
            else any free one.
        no_browser: print the address, and open no browser.
        local: serve from this machine also if the target is in AWS.
    """
    if not 0 <= port <= _MAX_PORT:
        raise WRONG_USAGE(f"`--port` is 0 to {_MAX_PORT}")
    try:
        stopping = Stopping.on_signals(threading.Event(), context.output, starting=True)
        project = context.load(tolerant=True)
        own = _own_address(project)
        show = _Showing(context, project, browser=not no_browser, own=own)
        port = port or (urlsplit(own).port or 0 if own else 0)
        place = project.target.config
        if local or not isinstance(place, S3Location):
            return serve_api(context, stopping, ApiServing(_HOST, port), show)
        return _show_remote(show, stopping, str(place), port)
    except EndedEarly:
        return ExitCode.OK


def _own_address(project: LoadedProject) -> str | None:
    """The `url` of `access.yml` if it leads to this machine: logins come back there."""
    # Start-up time: most projects have none.
    from polynya.model.access import read_access

    access = read_access(project.directory)
    url = None if access is None else access.url
    return url if url is not None and is_loopback(url) else None


@dataclass(frozen=True, slots=True)
class _Showing:
    """Tells the address of the console, and opens a browser there.

    `own` is how `access.yml` calls this machine: a session begins and ends under one name.
    """

    context: CommandContext
    project: LoadedProject
    browser: bool
    own: str | None

    def __call__(self, url: str) -> None:
        """Show the pages of the server at a URL."""
        if self.own is not None and urlsplit(self.own).port == urlsplit(url).port:
            url = self.own
        address, target = url.rstrip("/") + _PAGES, self.project.target.name
        name = self.project.project.name
        self.context.output.event(ConsoleOpened(subject=name, url=address, target=target))
        if self.browser and not webbrowser.open(address):
            self.context.output.note("no browser was found: open the address yourself")


def _show_remote(show: _Showing, stopping: Stopping, place: str, port: int) -> int:
    # Start-up time: the AWS SDK.
    from polynya.model.access import read_access
    from polynya.store.aws.clients import region_of
    from polynya.store.aws.server_instance import server_instance

    context, project = show.context, show.project
    found = server_instance(place, project.target.aws)
    if found is None:
        raise CONSOLE_WITHOUT_SERVER(where=f"target {project.target.name}", place=place)
    clock = SystemClock()
    if found.is_balanced:
        access = read_access(project.directory)
        if access is None or access.url is None:
            raise CONSOLE_URL_UNKNOWN(where=f"target {project.target.name}")
        if not _answers_soon(access.url, clock, None):
            raise CONSOLE_UNREACHED(server=access.url, why="nothing answered there")
        show(access.url)
        return ExitCode.OK
    for program, what in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise CONSOLE_PROGRAM_MISSING(program=program, what=what)
    here = _free_port(port)
    context.output.note(f"opening a tunnel to {found.id}")
    command = _start_session(found.id, found.port, here, region_of(project.target.aws))
    with _tunnel(command) as tunnel:
        url = f"http://{_HOST}:{here}"
        if not _answers_soon(url, clock, tunnel.process):
            raise CONSOLE_UNREACHED(server=found.id, why=tunnel.why())
        stopping.starting = False
        show(url)
        while not stopping.stop.wait(_POLL_SECONDS):
            if tunnel.process.poll() is not None:
                raise CONSOLE_UNREACHED(server=found.id, why=tunnel.why())
    return ExitCode.INTERRUPTED if stopping.interrupted else ExitCode.OK


def _start_session(instance: str, there: int, here: int, region: str) -> list[str]:
    """The command that forwards a port of this machine to one of an instance."""
    ports = {"portNumber": [str(there)], "localPortNumber": [str(here)]}
    return [
        "aws",
        "ssm",
        "start-session",
        "--target",
        instance,
        "--document-name",
        "AWS-StartPortForwardingSession",
        "--parameters",
        json.dumps(ports),
        "--region",
        region,
    ]


@dataclass(frozen=True, slots=True)
class _Tunnel:
    """The process that forwards the port, and the file with what it says."""

    process: subprocess.Popen[bytes]
    said: IO[bytes]

    def why(self) -> str:
        """Why it leads nowhere: the last line that the process wrote, if it ended."""
        code = self.process.poll()
        if code is None:
            return f"nothing answered within {_WAIT_SECONDS:.0f} s"
        self.said.seek(0)
        lines = self.said.read()[-4096:].decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"the tunnel ended with code {code}: {last[:_MOST_SAID]}"


@contextmanager
def _tunnel(command: list[str]) -> Iterator[_Tunnel]:
    """A process in a session of its own, which the plugin that it starts shares; ended whole."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield _Tunnel(process, said)
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started, also where it has ended itself."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)


def _answers_soon(url: str, clock: Clock, process: subprocess.Popen[bytes] | None) -> bool:
    """Whether the server answers before the time is over and the process ends."""
    deadline = clock.monotonic() + _WAIT_SECONDS
    while clock.monotonic() < deadline and (process is None or process.poll() is None):
        if _answers(url):
            return True
        clock.sleep(_POLL_SECONDS)
    return False


def _answers(url: str) -> bool:
    # A proxy of the environment knows no port of this machine and no address of the network.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(url.rstrip("/") + _HEALTH, timeout=_PROBE_SECONDS) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):
        return False


def _free_port(port: int) -> int:
    """A port of this machine, or any free one for 0. A server that has it would be taken for ours.

    Raises DependencyError POLYNYA-QRY-012.
    """
    try:
        with socket.create_server((_HOST, port)) as taken:
            return int(taken.getsockname()[1])
    except OSError as error:
        raise CATALOG_ADDRESS_UNUSABLE(where=f"{_HOST}:{port}", why=error.strerror) from error
