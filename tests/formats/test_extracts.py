"""Which extract is next, which wait, and which files are no part of one that can be applied."""

from __future__ import annotations

from typing import Any

from polynya.formats.batch import WHOLE_FILE, FileProgress
from polynya.formats.extracts import LandedExtracts, landed_extracts, refused_batch
from polynya.formats.native.format import read_native
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.types import parse_type
from polynya.store.object_store import ObjectInfo
from polynya.testing.fakes import MemoryObjectStore
from tests.formats.helpers import request


def dataset(**extracts: Any) -> ResolvedDataset:
    """A dataset of extracts below `in`."""
    path = {"path": "**"} if extracts.get("each") != "folder" else {}
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "users",
            "schema": "shop",
            "landing": {"path": "in", "format": "csv"},
            "datasets": [{"name": "users", "keys": ["id"], "extracts": extracts, **path}],
        }
    )
    return resolved(task, task.datasets[0])


def looked_at(
    *names: str, done: tuple[str, ...] = (), last: str | None = None, **extracts: Any
) -> LandedExtracts:
    """What is made of these files, all of ten bytes."""
    final = dataset(**extracts)
    assert final.landing.extracts is not None
    infos = [ObjectInfo(f"in/{name}", 10) for name in names]
    read = {f"in/{name}": FileProgress(10, 1, complete=True) for name in done}
    return landed_extracts(infos, final, final.landing.extracts, read, last)


def due(landed: LandedExtracts) -> list[str]:
    return [one.name for one in landed.due]


def refused(landed: LandedExtracts) -> list[tuple[str, str]]:
    return [(one.file.path, one.rule) for one in landed.refused]


def test_files_are_taken_in_the_order_of_their_names() -> None:
    assert due(looked_at("b.csv", "a.csv", "c.csv.tmp", "_d.csv", "e/a.csv")) == [
        "a.csv", "b.csv", "e/a.csv"
    ]  # fmt: skip


def test_times_in_names_go_before_names() -> None:
    landed = looked_at("u_01022026.csv", "u_31012026.csv", "u.csv", time_in_name="%d%m%Y")

    assert due(landed) == ["u_31012026.csv", "u_01022026.csv"]
    assert refused(landed) == [("in/u.csv", "no_extract")]


def test_what_comes_after_a_later_one_is_too_late_once() -> None:
    names = ("a.csv", "b.csv", "c.csv", "d.csv")

    landed = looked_at(*names, done=("a.csv", "c.csv"), last="c.csv")

    assert due(landed) == ["d.csv"]
    assert refused(landed) == [("in/b.csv", "late_extract")]
    assert refused(looked_at(*names, done=("a.csv", "b.csv", "c.csv"), last="c.csv")) == []


def test_a_folder_is_whole_when_its_marker_is_there() -> None:
    names = ("1/a.csv", "1/b.csv", "1/_SUCCESS", "2/a.csv", "a.csv")

    landed = looked_at(*names, each="folder")

    assert [(one.name, len(one.files)) for one in landed.due] == [("1", 2)]
    assert landed.waiting == ("2",)
    assert looked_at("1/a.csv", "1/done.csv", each="folder", marker="done.csv").due[0].files == (
        ObjectInfo("in/1/a.csv", 10),
    )


def test_a_file_that_joins_an_applied_folder_is_too_late() -> None:
    landed = looked_at("1/a.csv", "1/b.csv", done=("1/a.csv",), last="1", each="folder")

    assert (due(landed), refused(landed)) == ([], [("in/1/b.csv", "late_extract")])


def test_a_folder_of_files_at_the_top_is_none() -> None:
    final = dataset(each="folder").landing.extracts
    assert final is not None
    task = dataset(each="folder")
    top = [ObjectInfo("in/a.csv", 10)]

    assert landed_extracts(top, task, final, {}, None) == LandedExtracts()


def test_a_file_that_changed_after_it_was_applied_is_told() -> None:
    final = dataset()
    assert final.landing.extracts is not None
    done = {"in/a.csv": FileProgress(9, 1, complete=True)}

    found = [ObjectInfo("in/a.csv", 10)]
    landed = landed_extracts(found, final, final.landing.extracts, done, "a.csv")

    assert [(one.path, one.was, one.size) for one in landed.changed] == [("in/a.csv", 9, 10)]


def test_refused_files_make_a_batch_of_whole_files() -> None:
    known = {"id": parse_type("bigint"), "name": parse_type("string")}
    landed = looked_at("b.csv", last="c.csv")

    nothing = read_native(request(MemoryObjectStore(), dataset(), [], known, load=True))
    batch = refused_batch(landed.refused, nothing)

    assert (batch.rows_in, batch.rows.num_rows, dict(batch.schema)) == (1, 0, known)
    assert [(one.file, one.offset, one.rule) for one in batch.rejected] == [
        ("in/b.csv", WHOLE_FILE, "late_extract")
    ]
    assert batch.files == {"in/b.csv": FileProgress(10, 0, complete=True)}
