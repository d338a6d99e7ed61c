"""A server on this machine that stands in for Kinesis, with shards that split, merge and end."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.absent import absent
from tests.aws import REGION

#: `make` installs it from package-lock.json.
PROGRAM = Path(__file__).parents[1] / "node_modules/kinesis-local/main.js"
_STEPS = ("CREATE_STREAM", "DELETE_STREAM", "MERGE_SHARDS", "SPLIT_SHARD", "UPDATE_SHARD_COUNT")


@contextmanager
def kinesis_server() -> Iterator[str]:
    """Its address; without the program the test is skipped, in CI failed."""
    if not PROGRAM.is_file():
        absent("kinesis-local is not installed: `npm ci`")
    port, other = _free_ports()
    settings = {
        "KINESIS_MOCK_PLAIN_PORT": str(port),
        "KINESIS_MOCK_TLS_PORT": str(other),
        "LOG_LEVEL": "ERROR",
        "AWS_REGION": REGION,
        **{f"{step}_DURATION": "20ms" for step in _STEPS},
    }
    # It looks for its certificate in the folder that it is started in.
    server = subprocess.Popen(
        ["node", PROGRAM.name], cwd=PROGRAM.parent, env={**os.environ, **settings},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_CONFIG_FILE", "/nowhere")
        patch.delenv("AWS_PROFILE", raising=False)
        try:
            _await_port(port, server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1]), int(two.getsockname()[1])


def _await_port(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("kinesis-local did not start")
