"""The project of `make demo` with its tables, made in the JVM of the tests, and its console."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from polynya.lake.spark.api import SparkSession
from polynya.server.access.control import AccessControl, AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.lab.commands import InProcessDriver
from tests.server.listening import listening

EXAMPLE = Path(__file__).parents[2] / "examples" / "bank"


def make_lake(spark: SparkSession, root: Path) -> None:
    """Copy the example project and let it copy and apply what has landed."""
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("warehouse"))
    printed = InProcessDriver(spark).call(
        "--project", str(root), "run", "--once", "--apply", "always"
    )
    assert printed.code == 0, printed


@dataclass(frozen=True)
class Console:
    """A console that is served: the project folder, its address, its access and its state."""

    root: Path
    url: str
    control: AccessControl
    state: ServerState


@contextmanager
def console(root: Path) -> Iterator[Console]:
    """The console of a project, as `polynya serve` answers it."""
    state = ServerState(root, None, SystemClock())
    app = app_of(state)
    control = guard(app, AccessSettings("127.0.0.1", loopback=True, tls=False))
    state.overview.start()
    try:
        with listening(app) as port:
            yield Console(root, f"http://localhost:{port}", control, state)
    finally:
        state.overview.stop()
