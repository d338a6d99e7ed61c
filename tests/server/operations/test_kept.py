"""Operations that outlive the machine of their server, and the lease of that server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from polynya.model.errors import DependencyError
from polynya.server.operations.kept import (
    DEAD_SECONDS,
    FOLDER,
    LOST_SECONDS,
    RENEW_SECONDS,
    KeptOperations,
)
from polynya.server.operations.manager import OperationManager
from polynya.server.operations.records import OperationStore
from polynya.server.operations.verbs import VERBS
from polynya.server.plans import PlanDecision, PlanRecord
from polynya.store.clock import SystemClock
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.server.operations.test_kills import COMMAND, end, process_of, started


@dataclass
class Machine:
    """A machine with a disk of its own, beside others at the same warehouse."""

    disk: Path
    kept: KeptOperations

    def server(self) -> OperationManager:
        store = OperationStore(self.disk / "operations")
        manager = OperationManager(store, COMMAND, SystemClock(), 1.0, kept=self.kept)
        manager.open()
        return manager


def machine(warehouse: MemoryObjectStore, disk: Path, name: str) -> Machine:
    return Machine(disk, KeptOperations(warehouse, "prod", name, SystemClock()))


def test_a_server_on_another_machine_has_the_ended_operations_with_their_output(
    tmp_path: Path,
) -> None:
    warehouse = MemoryObjectStore()
    first = machine(warehouse, tmp_path / "1", "i-1").server()
    name = started(first, 0.3)
    end(first, name)
    said = [line for _, line in first.folder(name).lines(0)]
    decision = PlanDecision("approved", "ann", "2026-11-29T10:00:00+00:00")
    PlanRecord(first.folder(name)).note_decision(decision)
    first.keep(name)
    first.close()

    second = machine(warehouse, tmp_path / "2", "i-2").server()

    view = second.view(name)
    assert view is not None
    assert (view.status, view.request.by) == ("succeeded", "ann")
    assert [line for _, line in second.folder(name).lines(0)] == said
    assert said
    assert PlanRecord(second.folder(name)).decision() == decision
    second.close()


def test_what_ran_on_a_lost_machine_is_interrupted_and_what_waited_is_started(
    tmp_path: Path,
) -> None:
    warehouse = MemoryObjectStore()
    lost = machine(warehouse, tmp_path / "1", "i-1").server()
    running = [started(lost, 60, code) for code in (0, 1)]
    waiting = started(lost, 0, 3)
    process_of(lost.folder(running[0]))
    # It is lost as it is: what its processes note later stays on its disk.
    lost.kept = None

    second = machine(warehouse, tmp_path / "2", "i-2").server()
    end(second, waiting)

    assert [end(second, name).status for name in running] == ["interrupted", "interrupted"]
    assert "each commit is whole" in str(end(second, running[0]).state)
    assert end(second, waiting).exit_code == 3
    second.close()
    lost.close()


def test_nothing_starts_that_the_warehouse_does_not_hold(tmp_path: Path) -> None:
    class Refuses(MemoryObjectStore):
        def put(self, path: str, data: bytes) -> None:
            raise OSError(5, "no answer")

    server = machine(Refuses(), tmp_path, "i-1").server()

    with pytest.raises(DependencyError, match="cannot be kept"):
        server.submit(VERBS["validate"], (), (), by="ann")
    assert server.ids() == []
    assert OperationStore(tmp_path / "operations").all() == []
    server.close()


def test_what_is_not_an_operation_is_left_alone_and_what_is_old_is_removed(tmp_path: Path) -> None:
    warehouse, clock = MemoryObjectStore(), FakeClock()
    first = machine(warehouse, tmp_path / "1", "i-1").server()
    name = started(first, 0)
    end(first, name)
    first.close()
    folder = ".polynya/operations/prod"
    good = warehouse.get(f"{folder}/{name}.json")
    for strange in ("broken", "../up", "20260101T000000000000-ABCDEF01"):
        warehouse.put(f"{folder}/{strange.replace('/', '_')}.json", good)
    warehouse.put(f"{folder}/20260101T000000000000-abcdef01.json", b"{}")
    kept = KeptOperations(warehouse, "prod", "i-2", clock)
    store = OperationStore(tmp_path / "2")
    store.path.mkdir()

    assert kept.restore(store, SystemClock().now() + timedelta(days=31)) == []
    assert kept.restore(store, SystemClock().now()) == []
    left = sorted(info.path.rpartition("/")[2] for info in warehouse.list(folder))
    assert left == [
        ".._up.json", "20260101T000000000000-ABCDEF01.json",
        "20260101T000000000000-abcdef01.json", "broken.json",
    ]  # fmt: skip


def test_one_server_at_a_time_has_the_lease() -> None:
    warehouse, clock = MemoryObjectStore(), FakeClock()
    first, second = (KeptOperations(warehouse, "prod", n, clock).lease for n in ("i-1", "i-2"))
    first.step()
    second.step()
    assert (first.held, second.held) == (True, False)

    for _ in range(10):
        clock.sleep(RENEW_SECONDS)
        first.step()
        second.step()
    assert (first.held, second.held) == (True, False)

    # The first one is cut off: it stops before the second one takes over.
    clock.sleep(LOST_SECONDS)
    assert not first.held
    second.step()
    assert not second.held
    clock.sleep(DEAD_SECONDS - LOST_SECONDS)
    second.step()
    assert second.held

    first.step()
    assert not first.held
    second.release()
    first.step()
    assert first.held


def test_a_server_that_comes_back_on_its_machine_does_not_wait_for_itself() -> None:
    warehouse, clock = MemoryObjectStore(), FakeClock()
    KeptOperations(warehouse, "prod", "i-1", clock).lease.step()

    again = KeptOperations(warehouse, "prod", "i-1", clock).lease
    again.step()

    assert again.held


def test_a_lease_that_is_taken_right_after_a_renewal_is_not_renewed_again() -> None:
    class Warehouse(MemoryObjectStore):
        def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
            written = super().put_if_unchanged(path, data, version)
            self.put(path, b"i-2\n")
            return written

    lease = KeptOperations(warehouse := Warehouse(), "prod", "i-1", FakeClock()).lease
    lease.step()
    assert lease.held

    lease.step()
    assert not lease.held
    lease.step()

    assert not lease.held
    assert warehouse.get(f"{FOLDER}/prod/lease") == b"i-2\n"


def test_a_store_that_fails_for_a_moment_costs_no_lease() -> None:
    class Fails(MemoryObjectStore):
        failing = False

        def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
            if self.failing:
                raise OSError(5, "no answer")
            return super().put_if_unchanged(path, data, version)

    warehouse, clock = Fails(), FakeClock()
    lease = KeptOperations(warehouse, "prod", "i-1", clock).lease
    lease.step()
    warehouse.failing = True
    clock.sleep(RENEW_SECONDS)
    lease.step()
    assert lease.held
    clock.sleep(LOST_SECONDS - RENEW_SECONDS)
    assert not lease.held
    warehouse.failing = False
    lease.step()
    assert lease.held
