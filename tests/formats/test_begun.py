"""A file whose reading ends the process is set aside at last, and the good ones are read."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from polynya.formats import begun as module
from polynya.formats.batch import DatasetBatch, FilePart
from polynya.formats.begun import Begun
from polynya.formats.native.format import read_native
from polynya.formats.opening import landed_file
from polynya.model.errors import DependencyError
from polynya.store.object_store import ObjectStore
from polynya.testing.fakes import MemoryObjectStore
from tests.formats.helpers import a_dataset, column, json_lines, request

FILES = {name: json_lines({"id": at, "n": 1}) for at, name in enumerate(("a", "b", "c"))}
STORE = MemoryObjectStore(FILES)
PARTS = [FilePart(name, len(data)) for name, data in FILES.items()]


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def killed(work: Callable[[], None]) -> None:
    """Do something in a process that is killed then."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_while_reading(folder: Path, *names: str) -> None:
    """A process is killed in the last of some files, each of which is a batch."""

    def work() -> None:
        begun = Begun(folder, "zone")
        for name in names:
            with begun.batch([FilePart(name, 1)]), landed_file(begun.at(STORE), name, "json"):
                if name == names[-1]:
                    end()

    killed(work)


def read(
    begun: Begun, store: ObjectStore = STORE, parts: Sequence[FilePart] = PARTS
) -> DatasetBatch:
    parts = begun.careful(parts)
    with begun.batch(parts):
        return read_native(request(begun.at(store), a_dataset("json"), parts))


def test_a_file_that_was_begun_three_times_and_never_finished_is_set_aside(tmp_path: Path) -> None:
    for _ in range(3):
        killed_while_reading(tmp_path, "a", "b")

    begun = Begun(tmp_path, "zone")
    first = read(begun)
    (refused,) = read(begun, parts=PARTS[1:]).rejected

    assert column(first, "id") == [0]
    assert (refused.file, refused.offset, refused.rule) == ("b", -1, "unreadable_file")
    assert "begun 3 times and never finished" in refused.error
    # It is refused again by the next reader of the same process, and not by another process.
    assert not Begun(tmp_path, "zone").is_suspect("b")


def test_a_file_that_was_begun_is_read_alone_and_forgotten_when_it_was_finished(
    tmp_path: Path,
) -> None:
    killed_while_reading(tmp_path, "a", "b")
    killed_while_reading(tmp_path, "b")
    begun = Begun(tmp_path, "zone")

    assert [part.path for part in begun.careful(PARTS)] == ["a"]
    assert [part.path for part in begun.careful(PARTS[1:])] == ["b"]
    assert [part.path for part in begun.careful(PARTS[2:])] == ["c"]
    read(begun, parts=PARTS[1:])
    assert [part.path for part in begun.careful(PARTS)] == ["a", "b", "c"]
    assert not Begun(tmp_path, "zone").is_suspect("b")


def test_only_kills_while_a_file_is_read_count(tmp_path: Path) -> None:
    def work() -> None:
        read(Begun(tmp_path, "zone"))
        end()

    for _ in range(3):
        killed(work)

    assert read(Begun(tmp_path, "zone")).rejected == ()
    assert not list(tmp_path.glob("counts*"))


def test_a_kill_while_records_become_columns_counts_for_each_file_of_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(*_: object, **__: object) -> DatasetBatch:
        end()
        raise AssertionError

    with monkeypatch.context() as patched:
        patched.setattr("polynya.formats.native.format.to_batch", typed)
        killed(lambda: read(Begun(tmp_path, "zone")) and None)
    begun = Begun(tmp_path, "zone")

    for number in range(3):
        assert [part.path for part in begun.careful(PARTS[number:])] == [PARTS[number].path]
        assert column(read(begun, parts=PARTS[number:]), "id") == [number]
    assert begun.careful(PARTS) == PARTS


def test_what_a_living_process_reads_is_not_counted(tmp_path: Path) -> None:
    begun = Begun(tmp_path, "zone")
    with begun.batch(PARTS), landed_file(begun.at(STORE), "b", "json"):
        assert not Begun(tmp_path, "zone").is_suspect("b")


def test_another_landing_zone_has_counts_of_its_own(tmp_path: Path) -> None:
    killed_while_reading(tmp_path, "b")

    assert not Begun(tmp_path, "other").is_suspect("b")
    assert Begun(tmp_path, "zone").is_suspect("b")


def test_memory_that_does_not_suffice_for_long_sets_a_file_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    begun = Begun(tmp_path, "zone", now=clock)

    def no_memory(*_: object) -> object:
        raise MemoryError

    monkeypatch.setattr("polynya.formats.native.format.file_opener", lambda _: no_memory)
    for tries in (5, 5, 1):
        for _ in range(tries):
            with pytest.raises(DependencyError):
                read(begun)
        clock.now += module.COUNT_INTERVAL_SECONDS

    (refused,) = read(begun).rejected
    assert "begun 3 times" in refused.error


def test_a_store_that_does_not_answer_is_not_counted(tmp_path: Path) -> None:
    class Silent(MemoryObjectStore):
        def open(self, path: str) -> object:  # type: ignore[override]
            raise DependencyError("POLYNYA-AWS-003", "no answer")

    begun = Begun(tmp_path, "zone")
    for _ in range(5):
        with pytest.raises(DependencyError):
            read(begun, Silent(FILES))

    assert len(begun.careful(PARTS)) == 3


def test_files_of_a_load_that_died_twice_are_read_one_by_one(tmp_path: Path) -> None:
    def work() -> None:
        with Begun(tmp_path, "zone").loading(["a", "b"]):
            end()

    killed(work)
    assert not Begun(tmp_path, "zone").is_suspect("a")
    killed(work)

    begun = Begun(tmp_path, "zone")
    assert [part.path for part in begun.careful(PARTS)] == ["a"]
    assert column(read(begun), "id") == [0]
    for _ in range(2):
        killed_while_reading(tmp_path, "b")
    begun = Begun(tmp_path, "zone")
    (refused,) = read(begun, parts=PARTS[1:2]).rejected
    assert "begun 3 times" in refused.error


def test_a_suspect_is_read_while_nothing_else_is(tmp_path: Path) -> None:
    killed_while_reading(tmp_path, "b")
    begun = Begun(tmp_path, "zone")
    met: list[str] = []

    def reads_b() -> None:
        with begun.batch(PARTS[1:2]):
            met.append("b")

    other = threading.Thread(target=reads_b)
    with begun.batch(PARTS[:1]):
        other.start()
        other.join(0.2)
        met.append("a")
    other.join()

    assert met == ["a", "b"]


def test_a_folder_that_cannot_be_written_keeps_nothing_from_being_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert read(Begun(tmp_path / "file" / "begun", "zone")).rows.num_rows == 3


def test_notes_and_counts_that_are_broken_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text('{"zone a": 7}')
    (tmp_path / "note-1").write_text("[1, {")
    (tmp_path / "note-2").write_text('{"a": 1}')

    assert read(Begun(tmp_path, "zone")).rows.num_rows == 3


def test_tasks_get_the_store_itself(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(Begun(tmp_path, "zone").at(STORE)))

    assert type(again) is MemoryObjectStore


def test_memory_that_typing_lacks_is_no_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(*_: object, **__: object) -> DatasetBatch:
        raise MemoryError

    begun = Begun(tmp_path, "zone")
    monkeypatch.setattr("polynya.formats.native.format.to_batch", typed)

    with pytest.raises(DependencyError) as caught:
        read(begun)

    assert caught.value.code == "POLYNYA-STO-003"
    assert [part.path for part in begun.careful(PARTS)] == ["a"]
