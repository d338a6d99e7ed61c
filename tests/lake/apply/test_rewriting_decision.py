"""Which data files are written again, and which become one: a table of cases."""

from __future__ import annotations

import pytest

from polynya.lake.apply.removal import Losing, Rewriting, choose, together
from polynya.lake.iceberg.files import DataFile

HOW = Rewriting(share=0.3, budget_bytes=1000, together_bytes=200)


def losing(name: str, dead: int, rows: int, size: int, partition: str = "current") -> Losing:
    """A file of so many bytes and rows, of which some are dead."""
    return Losing(DataFile(None, name, partition, rows, size), dead)


@pytest.mark.parametrize(
    ("files", "again"),
    [
        pytest.param([losing("a", 29, 100, 100)], [], id="less than the share"),
        pytest.param([losing("a", 30, 100, 100)], ["a"], id="the share"),
        pytest.param([losing("a", 100, 100, 10**9)], ["a"], id="all rows: nothing to write"),
        pytest.param([losing("a", 50, 100, 2002)], [], id="more stays than a step may write"),
        pytest.param([losing("a", 60, 100, 2002)], ["a"], id="of a large file more must be dead"),
        pytest.param(
            [losing("a", 40, 100, 1000), losing("b", 50, 100, 1200), losing("c", 40, 100, 600)],
            ["b", "c"],
            id="the largest gain first, and what fits besides",
        ),
        pytest.param(
            [losing("a", 1, 2, 0), losing("b", 1, 100, 5000), losing("c", 1, 1, 1)],
            ["a", "c"],
            id="each by its own share",
        ),
    ],
)
def test_a_file_is_written_again_when_much_of_it_is_deleted(
    files: list[Losing], again: list[str]
) -> None:
    found = choose(files, HOW)

    assert sorted(one.losing.file.path for one in found if one.again) == again
    assert len(found) == len(files)


def test_every_choice_has_its_reason() -> None:
    files = [losing("a", 30, 100, 100), losing("b", 2, 1000, 9), losing("c", 1, 2, 9000)]

    reasons = {one.losing.file.path: one.reason for one in choose(files, HOW)}

    assert reasons == {
        "a": "30 of 100 rows are deleted",
        "b": "only 2 of 1,000 rows are deleted",
        "c": "1 of 2 rows are deleted, but 4,500 bytes stay, 1,000 may be written in this step",
    }


def test_small_files_of_a_partition_become_one() -> None:
    files = [
        losing("big", 1, 2, 500),
        losing("a", 1, 2, 100),
        losing("old", 1, 2, 100, "prior"),
        losing("b", 1, 2, 120),
        losing("c", 1, 2, 300),
        losing("gone", 9, 9, 7000),
    ]

    found = [[one.file.path for one in group] for group in together(files, HOW)]

    assert found == [["gone", "a", "b"], ["c"], ["big"], ["old"]]
