"""The commits of a table as a log, and what each process did. No JVM."""

from __future__ import annotations

from typing import Any

from polynya.lake.read.commits import (
    commits,
    in_words,
    most_changed_rows,
    snapshots_since,
    steps_by_owner,
)


def metadata_of(*summaries: dict[str, str]) -> dict[str, Any]:
    """The snapshots 1, 2, … as Iceberg writes them in JSON, each the parent of the next one.

    They are a second apart.
    """
    return {
        "snapshots": [
            {
                "snapshot-id": number,
                "parent-snapshot-id": number - 1,
                "timestamp-ms": number * 1000,
                "summary": {"operation": "append", **one},
            }
            for number, one in enumerate(summaries, 1)
        ]
    }


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
    _, copy, apply = commits(metadata_of(takeover("n1:1:a", 4), COPY, APPLY))

    assert (copy.step, copy.rows) == ("copy", {"in": 10, "out": 9, "quarantined": 1})
    assert copy.files == {"added-data-files": 2, "added-files-size": 900}
    assert list(in_words(copy)) == ["10 in", "9 out", "1 quarantined"]
    assert (apply.reason, list(in_words(apply))) == ("rows", ["9 events", "rows"])


def test_steps_belong_to_the_process_that_had_taken_the_table_over() -> None:
    found = commits(
        metadata_of(COPY, takeover("n1:1:a", 4), COPY, APPLY, COPY, takeover("n2:7:b", 5), COPY)
    )

    first, second, third = steps_by_owner(found, "n2:7:b")

    assert (first.owner, first.steps) == ("", {"copy": 1})
    assert (second.owner, second.epoch, second.steps) == ("n1:1:a", 4, {"copy": 2, "apply": 1})
    assert second.rows == {"in": 20, "out": 18, "quarantined": 2, "events": 9}
    assert (third.owner, third.rows["in"]) == ("n2:7:b", 10)
    assert second.began < second.ended < third.began


def test_a_process_that_only_took_a_table_over_has_done_nothing() -> None:
    assert steps_by_owner(commits(metadata_of(takeover("n1:1:a", 4))), "n1:1:a") == []


def test_values_of_others_are_no_figures() -> None:
    (found,) = commits(metadata_of({"polynya.step": "copy", "polynya.rows-in": "9" * 40}))

    assert found.rows == {}


def test_summaries_tell_how_many_rows_have_changed_at_most() -> None:
    table = metadata_of(
        {"added-records": "100"},
        {"polynya.step": "copy", "added-records": "7"},
        {"polynya.step": "apply", "added-records": "90", "deleted-records": "95"},
        {"polynya.step": "copy+apply", "added-records": "3", "added-position-deletes": "2"},
        {"operation": "replace", "added-records": "50", "deleted-records": "50"},
        {"polynya.step": "derive", "deleted-records": "4", "removed-position-deletes": "9"},
    )

    # An apply and maintenance change no row of a live view.
    found = snapshots_since(table, 1, 6)
    assert not isinstance(found, str)
    assert most_changed_rows(found) == 7 + 3 + 2 + 4
    assert most_changed_rows(found, of_others=True) == 7 + 3 + 2 + 4 + 9
    assert snapshots_since(table, 4, 5) == []
    assert most_changed_rows([]) == 0


def test_what_has_expired_is_a_reason() -> None:
    table = metadata_of(*[{"added-records": "1"}] * 4)
    del table["snapshots"][2]

    assert snapshots_since(table, 3, 4) == "the snapshot that it has read has expired"
    assert snapshots_since(table, 1, 4) == "a snapshot since the one that it has read has expired"
