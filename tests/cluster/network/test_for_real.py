"""A network agent that updates itself, as real processes against stand-ins for S3 and EC2."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest

from polynya import __file__ as RUNTIME
from polynya.cluster.control.requests import coordination_store
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.network.documents import AgentReport, ClusterCommand
from polynya.cluster.network.relay import CommandQueue, give
from polynya.cluster.network.update_process import put_pin
from polynya.model.config.aws import AwsAccess
from tests.aws import REGION, aws_server, client
from tests.cluster_faults.proxy import Proxy, proxied

CLUSTER, PLACE = "polynya-dev-main", "s3://acme-config/coordination"
STUBS = {
    "good": "# another version\n",
    "crashes": "raise SystemExit(3)\n",
    "hangs": "import time\n\ntime.sleep(1e6)\n",
}
#: Machines may be busy.
PATIENCE = 240.0


def package(folder: Path, kind: str) -> bytes:
    """The code that runs here, as another version; or one that does not work."""
    path, stub, empty = (folder / f"{kind}.{end}" for end in ("tar", "py", "empty"))
    stub.write_text(STUBS[kind])
    empty.touch()
    with tarfile.open(path, "w") as archive:
        if kind == "good":
            archive.add(Path(RUNTIME).parent, "polynya", filter=_without_caches)
            archive.add(stub, "polynya/another_version.py")
        else:
            archive.add(stub, "polynya/__main__.py")
            archive.add(empty, "polynya/__init__.py")
    return path.read_bytes()


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name else entry


class Gateway:
    """The keeper and its processes, and a person with the same store."""

    def __init__(self, folder: Path, proxy: Proxy) -> None:
        self.folder, self.proxy = folder, proxy
        self.store = coordination_store(PLACE, AwsAccess())
        self.document_store = DocumentStore(self.store, CLUSTER, SystemRandom())
        self._log = (folder / "log").open("w+")
        command = [
            sys.executable, "-m", "polynya", "network-agent", "--cluster", CLUSTER, "--name", "gw",
            "--coordination", PLACE, "--poll-seconds", "1", "--deadline-seconds", "30",
            "--updates", str(folder / "updates"),
        ]  # fmt: skip
        environment = {**os.environ, "AWS_ENDPOINT_URL": proxy.address}
        self.process = subprocess.Popen(
            command, env=environment, stdout=self._log, stderr=self._log
        )

    def pin(self, kind: str) -> str:
        data = package(self.folder, kind)
        pin = put_pin(self.store, data, by="kim", reason="", now=datetime.now(UTC), token=kind)
        return pin.sha256

    def updates(self) -> list[tuple[str, str]]:
        lines = (self.folder / "log").read_text().splitlines()
        found = [json.loads(line) for line in lines if '"network.update"' in line]
        return [(one["state"], one["version"]) for one in found]

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not holds():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() - began < PATIENCE, (
                f"{what}\n{(self.folder / 'log').read_text()}"
            )
            time.sleep(0.5)

    def serves(self) -> None:
        """A command is carried out by whoever serves."""
        now = datetime.now(UTC)
        name = give(self.document_store, ClusterCommand(kind="scale", nodes=2, by="kim", since=now))
        queue = CommandQueue(self.document_store)

        def ended() -> bool:
            queue.refresh()
            command = queue.get(name)
            return command is not None and not command.is_open

        self.until("a command is carried out", ended)

    def sign(self) -> AgentReport | None:
        found = self.document_store.read(AgentReport, "network-agent")
        return found.document if found is not None else None


def _no_refreshes(_self: object) -> Any:
    """The stand-in knows no replacement of nodes."""
    # Late, as below: it reads all that there is of EC2, and the collection of all tests waits.
    from moto.core.responses import ActionResult

    return ActionResult({"InstanceRefreshes": []})


def _make_group(autoscaling: Any) -> None:
    autoscaling.create_launch_configuration(
        LaunchConfigurationName="node", ImageId="ami-12c6146b", InstanceType="t4g.small"
    )
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=CLUSTER, LaunchConfigurationName="node", MinSize=1, MaxSize=4,
        DesiredCapacity=2, AvailabilityZones=[f"{REGION}a"],
    )  # fmt: skip


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    from moto.autoscaling.responses import AutoScalingResponse

    with aws_server("acme-config") as endpoint, proxied(endpoint, 1) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        monkeypatch.setattr(
            AutoScalingResponse, "describe_instance_refreshes", _no_refreshes, raising=False
        )
        _make_group(client("autoscaling", endpoint))
        gateway = Gateway(tmp_path, proxy)
        try:
            gateway.until("it serves", lambda: gateway.sign() is not None)
            yield gateway
        finally:
            gateway.process.send_signal(signal.SIGTERM)
            assert gateway.process.wait(60) == 0


@pytest.mark.slow
def test_good_and_bad_versions_and_a_network_that_is_cut_in_the_middle(gateway: Gateway) -> None:
    gateway.serves()

    crashes = gateway.pin("crashes")
    gateway.until("it is found out", lambda: ("failed", crashes[:12]) in gateway.updates())
    gateway.serves()
    sign = gateway.sign()
    assert sign is not None
    gateway.until("it is said", lambda: "failed" in getattr(gateway.sign(), "update", ""))

    hangs = gateway.pin("hangs")
    gateway.until("it is tried", lambda: ("tried", hangs[:12]) in gateway.updates())
    gateway.serves()
    gateway.until("it is found out", lambda: ("failed", hangs[:12]) in gateway.updates())

    good = gateway.pin("good")
    gateway.until("it is tried", lambda: ("tried", good[:12]) in gateway.updates())
    gateway.proxy.cut = True
    time.sleep(60)
    assert ("failed", good[:12]) not in gateway.updates()
    gateway.proxy.cut = False
    gateway.until("it takes over", lambda: ("serves", good[:12]) in gateway.updates())
    gateway.serves()
    token = getattr(gateway.sign(), "token", "")
    assert token != sign.token, "another process serves"
