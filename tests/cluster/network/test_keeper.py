"""A network agent updates itself: a version that works takes over, no other one does any harm."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from polynya.cluster.network.update import Keeper, KeeperPorts
from polynya.cluster.network.update_process import (
    FOLDER_VARIABLE,
    PIN,
    UpdateHeartbeat,
    package_path,
    put_pin,
    take_pin_back,
)
from polynya.model.errors import DependencyError
from polynya.observe.events import Event
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.cluster.network.given import Store, Wire

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def package(kind: str) -> bytes:
    """A version that behaves in some way, which its code says."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in ("polynya/__main__.py", "polynya/kind"):
            entry = tarfile.TarInfo(name)
            entry.size = len(kind)
            archive.addfile(entry, io.BytesIO(kind.encode()))
    return data.getvalue()


class Child:
    """A process; `kind` is what its version does, `step` lets it take a turn."""

    def __init__(self, network: Network, code: Path | None, more: Mapping[str, str]) -> None:
        kind = "good" if code is None else (code / "polynya" / "kind").read_text()
        self.kind, self.network = kind, network
        self.version = None if code is None else code.name
        self.heartbeat, self.code, self.signals = UpdateHeartbeat.of(more), None, list[str]()
        assert FOLDER_VARIABLE in more
        if kind.startswith("crashes"):
            self.code = 3

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.signals.append("term")
        self.code = 0

    def kill(self) -> None:
        self.signals.append("kill")
        self.code = -9

    @property
    def serves(self) -> bool:
        return self.code is None and self.heartbeat.may_serve

    def step(self) -> None:
        if self.code is not None or self.kind.startswith("hangs"):
            return
        if self.kind.startswith("works, then hangs") and self.heartbeat.may_serve:
            return
        if self.kind.startswith("works, then crashes") and self.heartbeat.may_serve:
            self.code = 1
            return
        connected = not self.network.wire.cut and not self.kind.startswith("blind")
        self.heartbeat.beat(connected=connected)


class Network:
    """A keeper, its processes, the store at the other end of a wire, and a person who pins."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.wire = folder, FakeClock(NOW), Wire()
        self.people, self.far = MemoryObjectStore(), Store()
        self.far.objects, self.far._writes = self.people.objects, self.people._writes
        self.far.wire = self.wire
        self.children: list[Child] = []
        self.pins = 0
        self.told: list[Event] = []
        self.signs: list[str] = []
        self.boot()

    def boot(self) -> None:
        """Another process of the keeper: those below the one before have ended with it."""
        for one in self.children:
            one.code = -9 if one.code is None else one.code
        ports = KeeperPorts(self.far, self._start, self.signs.append, self.told.append)
        self.keeper = Keeper("gateway", self.folder, ports, clock=self.clock)

    def _start(self, code: Path | None, more: Mapping[str, str]) -> Child:
        self.children.append(Child(self, code, more))
        return self.children[-1]

    def pin(self, kind: str) -> str:
        data = package(kind)
        self.pins += 1
        put_pin(self.people, data, by="kim", reason="", now=NOW, token=f"pin {self.pins}")
        return hashlib.sha256(data).hexdigest()

    def passes(self, seconds: int) -> None:
        """Seconds pass; in each ten of them every process takes a turn."""
        for second in range(seconds):
            self.clock.advance(timedelta(seconds=1))
            if second % 10 == 0:
                for one in self.children:
                    one.step()
            self.keeper.turn()
            assert sum(one.serves for one in self.children) <= 1

    @property
    def serving(self) -> Child:
        (found,) = [one for one in self.children if one.serves]
        return found

    def became(self) -> list[tuple[str, str]]:
        found = [event.as_json() for event in self.told]
        return [(one["state"], one["reason"]) for one in found]


@pytest.fixture
def network(tmp_path: Path) -> Network:
    network = Network(tmp_path)
    network.passes(60)
    return network


def test_without_a_pin_the_installed_version_serves(network: Network) -> None:
    assert network.serving.version is None
    assert network.signs[:2] == ["WATCHDOG=1", "READY=1"]
    assert len(network.children) == 1


def test_a_good_version_is_tried_beside_the_former_and_takes_over(network: Network) -> None:
    former = network.serving
    good = network.pin("good")

    network.passes(25)
    assert [one.version for one in network.children] == [None, good]
    assert network.serving is former
    network.passes(60)

    assert network.serving.version == good
    assert former.signals == ["term"]
    assert network.became() == [
        ("tried", "it was pinned"),
        ("serves", "it has shown that it works"),
    ]
    network.passes(700)
    network.boot()
    assert network.serving.version == good


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("crashes", "it ended with code 3 before it had served"),
        ("hangs", "no heartbeat within 120 s"),
        ("blind", "no heartbeat within 120 s"),
    ],
)
def test_one_that_does_not_work_is_ended_and_the_former_has_served_all_the_time(
    network: Network, kind: str, why: str
) -> None:
    former = network.serving
    bad = network.pin(kind)

    network.passes(400)

    assert network.serving is former
    assert former.signals == []
    assert network.became() == [("tried", "it was pinned"), ("failed", why)]
    assert former.heartbeat.trouble == f"the pinned version {bad[:12]} failed: {why}"
    network.boot()
    network.passes(200)
    assert len(network.became()) == 2, "it is not tried again"
    network.pin(kind)
    network.passes(60)
    assert network.became()[2:3] == [("tried", "it was pinned")], "unless somebody pins it again"


@pytest.mark.parametrize("kind", ["works, then hangs", "works, then crashes"])
def test_one_that_fails_while_it_serves_makes_place_for_the_former(
    network: Network, kind: str
) -> None:
    good = network.pin("good")
    network.passes(800)
    network.pin(kind)

    network.passes(400)

    assert network.serving.version == good
    assert [state for state, _ in network.became()][2:] == ["tried", "serves", "went back"]
    network.passes(300)
    assert network.became()[-1][0] == "went back"


def test_the_network_is_cut_while_a_good_version_is_tried(network: Network) -> None:
    good = network.pin("good")
    network.passes(25)
    assert [state for state, _ in network.became()] == ["tried"]
    network.wire.cut = True

    network.passes(900)
    assert [state for state, _ in network.became()] == ["tried"]
    network.wire.cut = False
    network.passes(60)

    assert network.serving.version == good


def test_the_network_is_cut_while_it_is_fetched(network: Network) -> None:
    good, reads = network.pin("good"), list[str]()
    whole = network.far.read

    def read(path: str, limit: int) -> object:
        if path == package_path(good) and len(reads) < 3:
            reads.append(path)
            raise DependencyError("POLYNYA-AWS-003", "cut in the middle")
        return whole(path, limit)

    network.far.read = read  # type: ignore[method-assign]
    network.passes(60)
    assert network.serving.version is None
    assert network.became() == []
    assert "POLYNYA-AWS-003" in network.serving.heartbeat.trouble
    network.passes(200)

    assert network.serving.version == good
    assert len(reads) == 3


def test_a_version_that_hangs_is_found_out_after_the_network_was_cut(network: Network) -> None:
    network.pin("hangs")
    network.passes(25)
    network.wire.cut = True
    network.passes(600)
    network.wire.cut = False

    network.passes(200)

    assert network.became()[-1] == ("failed", "no heartbeat within 120 s")
    assert network.serving.version is None


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[:-1], "it is not the file that the pin names"),
        (lambda data: data + b"x", "it is not the file that the pin names"),
        (lambda data: b"x" * len(data), "it is not the file that the pin names"),
    ],
)
def test_a_package_that_is_not_the_one_that_was_pinned_is_never_run(
    network: Network, damage: Callable[[bytes], bytes], why: str
) -> None:
    good = network.pin("good")
    network.people.put(package_path(good), damage(package("good")))

    network.passes(100)

    assert len(network.children) == 1
    (event,) = network.became()
    assert event[0] == "refused"
    assert "POLYNYA-AGT-063" in event[1]
    assert why in event[1]
    assert not (network.folder / "versions" / good).exists()


def test_an_archive_that_reaches_out_of_its_folder_is_never_unpacked(network: Network) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        entry = tarfile.TarInfo("../../outside")
        archive.addfile(entry, io.BytesIO())
    put_pin(network.people, data.getvalue(), by="kim", reason="", now=NOW, token="t")

    network.passes(60)

    assert [state for state, _ in network.became()] == ["refused"]
    assert not (network.folder.parent / "outside").exists()


def test_a_pin_that_is_taken_back_brings_the_installed_version_back(network: Network) -> None:
    network.pin("good")
    network.passes(800)
    assert take_pin_back(network.people)

    network.passes(120)

    assert network.serving.version is None
    assert not take_pin_back(network.people)


def test_another_pin_in_the_middle_of_a_trial(network: Network) -> None:
    network.pin("hangs")
    network.passes(25)
    good = network.pin("good")

    network.passes(120)

    assert network.serving.version == good
    assert ("given up", "another version is wanted by now") in network.became()


def test_a_keeper_that_dies_between_two_versions_starts_the_new_one(network: Network) -> None:
    good = network.pin("good")
    network.passes(25)
    dies = network.keeper._serving.end
    network.keeper._serving.end = lambda _clock: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        network.passes(60)
    assert dies is not None

    network.boot()
    network.passes(60)

    assert network.serving.version == good


def test_one_that_dies_is_started_again(network: Network) -> None:
    first = network.serving
    first.code = 1

    network.passes(30)

    assert network.serving is not first
    assert network.serving.version is None


def test_fields_of_a_newer_version_survive_in_the_pin(network: Network) -> None:
    network.pin("good")
    document = json.loads(network.people.get(PIN)) | {"channel": {"name": "beta"}}
    network.people.put(PIN, json.dumps(document).encode())

    network.pin("hangs")

    assert json.loads(network.people.get(PIN))["channel"] == {"name": "beta"}
