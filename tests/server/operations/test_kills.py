"""A server, its process, or both are killed at each boundary: every operation has an end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polynya.model.errors import ConflictError
from polynya.server.operations.manager import OperationManager
from polynya.server.operations.records import (
    ChildProcess,
    OperationFolder,
    OperationRequest,
    OperationResult,
    OperationStore,
)
from polynya.server.operations.verbs import VERBS
from polynya.store.clock import SystemClock

COMMAND = [sys.executable, "-m", "tests.server.operations.child"]
RUN = VERBS["run"]
ROOT = Path(__file__).parents[3]


@contextmanager
def manager(path: Path, stop_seconds: float = 5.0) -> Iterator[OperationManager]:
    made = OperationManager(OperationStore(path), COMMAND, SystemClock(), stop_seconds)
    made.open()
    try:
        yield made
    finally:
        made.close()


def started(found: OperationManager, seconds: float, code: int = 0, key: str | None = None) -> str:
    words = ["run", str(seconds), str(code)]
    return found.submit(RUN, words, (f"t{code}",), by="ann", key=key)[0]


def end(found: OperationManager, name: str) -> OperationResult:
    for _ in range(300):
        view = found.view(name)
        assert view is not None
        if view.result is not None:
            return view.result
        time.sleep(0.05)
    raise AssertionError(view)


def process_of(folder: OperationFolder) -> ChildProcess:
    for _ in range(300):
        if (process := folder.process()) is not None and folder.output.stat().st_size:
            return process
        time.sleep(0.05)
    raise AssertionError(list(folder.path.iterdir()))


def kept(path: Path) -> OperationFolder:
    now = SystemClock().now().isoformat()
    request = OperationRequest("1-a", "run", ("run", "0", "0"), (), "ann", now, "body", None)
    return OperationStore(path).add(request)


def test_a_process_that_is_killed_is_reported_with_the_state_of_the_data(tmp_path: Path) -> None:
    with manager(tmp_path) as found:
        name = started(found, 60)
        os.kill(process_of(found.folder(name)).pid, signal.SIGKILL)
        result = end(found, name)
    assert (result.status, result.exit_code, result.state) == (
        "interrupted",
        None,
        RUN.writes.value,
    )


def server(path: Path) -> subprocess.Popen[bytes]:
    """Another process with a manager and one operation of a minute."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from tests.server.operations.test_kills import manager, started\n"
        "with manager(Path(sys.argv[1])) as found: started(found, 60); time.sleep(60)"
    )
    return subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=ROOT)


@pytest.mark.parametrize("both", [False, True], ids=["server", "server and process"])
def test_a_process_ends_with_its_server_and_the_next_server_reports_it(
    tmp_path: Path, both: bool
) -> None:
    killed = server(tmp_path)
    for _ in range(300):
        if folders := OperationStore(tmp_path).all() if (tmp_path / "lock").exists() else []:
            break
        time.sleep(0.05)
    process = process_of(folders[0])
    killed.kill()
    killed.wait()
    if both:
        os.kill(process.pid, signal.SIGKILL)
    with manager(tmp_path) as found:
        result = end(found, folders[0].path.name)
    assert (result.status, result.state) == ("interrupted", RUN.writes.value)
    assert not process.is_alive()


def test_a_process_that_ends_early_with_its_server_has_not_succeeded(tmp_path: Path) -> None:
    with manager(tmp_path) as found:
        name = started(found, 60)
        process_of(found.folder(name))
    with manager(tmp_path) as found:
        result = end(found, name)
    assert (result.status, result.exit_code) == ("interrupted", 0)


def test_a_server_that_died_before_the_process_leaves_it_to_the_next(tmp_path: Path) -> None:
    kept(tmp_path)
    with manager(tmp_path) as found:
        assert end(found, "1-a").status == "succeeded"


def test_a_server_that_died_while_it_started_the_process_reports_it(tmp_path: Path) -> None:
    kept(tmp_path).note_begun()
    with manager(tmp_path) as found:
        assert end(found, "1-a").status == "interrupted"


def test_a_server_that_died_after_the_exit_code_has_the_result(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    folder.note_begun()
    folder.note_exit(4)
    with manager(tmp_path) as found:
        result = end(found, "1-a")
    assert (result.status, result.exit_code) == ("failed", 4)


def test_a_request_that_is_not_whole_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / ".1-a.new").mkdir()
    with manager(tmp_path) as found:
        assert found.ids() == []
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_cancel_asks_then_ends_the_process(tmp_path: Path) -> None:
    with manager(tmp_path) as found:
        name = started(found, 60)
        process = process_of(found.folder(name))
        assert found.cancel(name)
        result = end(found, name)
        assert (result.status, result.state) == ("cancelled", RUN.writes.value)
        assert not found.cancel(name)
    assert not process.is_alive()


def test_a_key_gives_one_operation_at_one_moment_and_after_a_restart(tmp_path: Path) -> None:
    names: list[str] = []
    with manager(tmp_path) as found:
        threads = [
            threading.Thread(target=lambda: names.append(started(found, 0, key="k")))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        end(found, names[0])
    with manager(tmp_path) as found:
        names.append(started(found, 0, key="k"))
    assert len(set(names)) == 1


def test_an_object_has_one_operation_of_a_kind_and_a_project_one_server(tmp_path: Path) -> None:
    with manager(tmp_path) as found:
        name = started(found, 60)
        with pytest.raises(ConflictError, match=name):
            started(found, 60)
        with pytest.raises(ConflictError, match="another server"), manager(tmp_path):
            pass
        found.cancel(name)


def test_a_command_that_does_not_stop_is_killed_when_the_server_ends(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('{}', flush=True); time.sleep(60)"
    )
    found = OperationManager(
        OperationStore(tmp_path), [sys.executable, "-c", deaf], SystemClock(), stop_seconds=0.1
    )
    found.open()
    name = found.submit(RUN, ["run"], (), by="ann")[0]
    while not found.folder(name).output.stat().st_size:
        time.sleep(0.02)
    before = time.monotonic()
    found.close()
    assert time.monotonic() - before < 10
    with manager(tmp_path) as found:
        assert end(found, name).status == "interrupted"


def test_a_folder_of_another_version_hides_no_other(tmp_path: Path) -> None:
    kept(tmp_path)
    (tmp_path / "0-b").mkdir()
    (tmp_path / "0-b" / "request.json").write_text('{"id": "0-b"}')
    with manager(tmp_path) as found:
        assert found.ids() == ["1-a"]


def test_how_long_nothing_moved_is_known_before_somebody_asks(tmp_path: Path) -> None:
    class Ahead(SystemClock):
        """Goes ahead when it is told to."""

        seconds = 0.0

        def monotonic(self) -> float:
            return super().monotonic() + self.seconds

    clock = Ahead()
    quiet = "import time; print('{}', flush=True); time.sleep(60)"
    found = OperationManager(OperationStore(tmp_path), [sys.executable, "-c", quiet], clock)
    found.open()
    name = found.submit(RUN, ["run"], (), by="ann")[0]
    while not found.folder(name).output.stat().st_size:
        time.sleep(0.02)
    time.sleep(0.5)
    clock.seconds = 600.0
    view = found.view(name)
    found.cancel(name)
    found.close()
    assert view is not None
    assert view.progress is not None
    assert 600 <= (view.progress.still_seconds or 0) < 660
