"""A standalone Spark cluster on this machine: a master and two workers, from PySpark's own jars.

They ask for authentication. The Python of their executors finds a package of the name `polynya`
that cannot be imported: only one that the driver sends can work there.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark
import pytest

from polynya.lake.spark.java import find_java

_HOME = Path(pyspark.__file__).parent
_PACKAGE = "org.apache.spark.deploy"
_DEFAULTS = """\
spark.authenticate true
spark.authenticate.secret {secret}
spark.network.crypto.enabled true
"""


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """The address of the master. What workers fetch and log is in `folder`.

    `SPARK_CONF_DIR` of this process has the secret, as that of a user would.
    """
    settings, planted = folder / "conf", folder / "planted" / "polynya"
    settings.mkdir(parents=True)
    planted.mkdir(parents=True)
    (settings / "spark-defaults.conf").write_text(_DEFAULTS.format(secret=os.urandom(16).hex()))
    (planted / "__init__.py").write_text("raise ImportError('not the package of the driver')\n")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as processes:
        patch.setenv("SPARK_CONF_DIR", str(settings))
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "PYTHONPATH": str(planted.parent),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        port = _free_port()
        address = f"spark://127.0.0.1:{port}"
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        master = (f"{_PACKAGE}.master.Master", *here, "--port", str(port))
        processes.enter_context(_running(folder / "master.log", environment, *master))
        _wait_for(port)
        for name in ("one", "two"):
            room = ("--cores", "1", "--memory", "900m", "--work-dir", str(folder / name))
            worker = (f"{_PACKAGE}.worker.Worker", *here, *room, address)
            processes.enter_context(_running(folder / f"{name}.log", environment, *worker))
        yield address


def python_workers(folder: Path) -> list[str]:
    """The workers whose executors fetched the package, as they do before their first task."""
    found = folder.glob("*/app-*/*/polynya-*.zip")
    return sorted({path.relative_to(folder).parts[0] for path in found})


def kill_executor(folder: Path, worker: str) -> None:
    """Kill the executor of a worker as a lost machine would; the worker starts another one."""
    inside = str(folder / worker)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (process / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in line and str(
                (process / "cwd").readlink()
            ).startswith(inside):
                os.kill(int(process.name), signal.SIGKILL)
                return
    raise AssertionError(f"worker {worker} has no executor")


@contextmanager
def _running(log: Path, environment: dict[str, str], *arguments: str) -> Iterator[None]:
    """A daemon of Spark in a process group of its own, which ends with the block."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [str(_HOME / "bin" / "spark-class"), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError("the master did not start within a minute")
