"""The commits of a table as a log, and what each process did. No JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from polynya.lake.read.commits import commits, in_words, steps_by_owner


def table_of(*summaries: dict[str, str]) -> Any:
    """A table with a snapshot each second."""
    snapshots = [
        Snapshot(
            snapshot_id=number,
            timestamp_ms=number * 1000,
            manifest_list="x",
            summary=Summary(
                Operation.APPEND, **{name.replace("_", "-"): text for name, text in one.items()}
            ),
        )
        for number, one in enumerate(summaries, 1)
    ]
    return SimpleNamespace(metadata=SimpleNamespace(snapshots=snapshots))


def takeover(owner: str, epoch: int) -> dict[str, str]:
    return {
        "polynya.step": "takeover",
        "polynya.owner": owner,
        "polynya.epoch": str(epoch),
    }


COPY = {
    "polynya.step": "copy",
    "polynya.rows-in": "10",
    "polynya.rows-out": "9",
    "polynya.rows-quarantined": "1",
    "polynya.rows-filtered": "0",
    "added-data-files": "2",
    "added-files-size": "900",
}
APPLY = {"polynya.step": "apply", "polynya.reason": "rows", "polynya.events": "9"}


def test_a_commit_says_its_step_its_reason_and_its_rows() -> None:
    _, copy, apply = commits(table_of(takeover("n1:1:a", 4), COPY, APPLY))

    assert (copy.step, copy.rows) == ("copy", {"in": 10, "out": 9, "quarantined": 1})
    assert copy.files == {"added-data-files": 2, "added-files-size": 900}
    assert list(in_words(copy)) == ["10 in", "9 out", "1 quarantined"]
    assert (apply.reason, list(in_words(apply))) == ("rows", ["9 events", "rows"])


def test_steps_belong_to_the_process_that_had_taken_the_table_over() -> None:
    found = commits(
        table_of(COPY, takeover("n1:1:a", 4), COPY, APPLY, COPY, takeover("n2:7:b", 5), COPY)
    )

    first, second, third = steps_by_owner(found, "n2:7:b")

    assert (first.owner, first.steps) == ("", {"copy": 1})
    assert (second.owner, second.epoch, second.steps) == ("n1:1:a", 4, {"copy": 2, "apply": 1})
    assert second.rows == {"in": 20, "out": 18, "quarantined": 2, "events": 9}
    assert (third.owner, third.rows["in"]) == ("n2:7:b", 10)
    assert second.began < second.ended < third.began


def test_a_process_that_only_took_a_table_over_has_done_nothing() -> None:
    assert steps_by_owner(commits(table_of(takeover("n1:1:a", 4))), "n1:1:a") == []


def test_values_of_others_are_no_figures() -> None:
    (found,) = commits(table_of({"polynya.step": "copy", "polynya.rows-in": "9" * 40}))

    assert found.rows == {}
