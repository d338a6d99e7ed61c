"""A table of a capture that cannot be copied as things are holds up no other, and loses nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from polynya.engine.backlog import LandedReader, LandedReaders
from polynya.engine.ledger import ledger_dataset
from polynya.engine.tasks.shared_files import RefusedTables
from polynya.lake.table.state import CopyState, Membership
from polynya.model.errors import (
    ConfigErrors,
    DependencyError,
    InternalError,
    OperationError,
    PolynyaError,
    TaskStoppedError,
)
from polynya.observe.engine import UnitFailed
from tests.lab.events import land, upsert
from tests.lab.lab import Capture, Lab
from tests.scenarios.kills import killed_at

SLOW = pytest.mark.slow


def in_small_batches(lab: Lab, **defaults: Any) -> Capture:
    capture = lab.capture(**defaults)
    capture.more = {"batch": {"max_rows": 2}}
    return capture


def declared(capture: Capture, table: str, name: str, **settings: Any) -> None:
    source = f"{capture.lab.schema}.{table}"
    capture.more = {**capture.more, "datasets": [{"source": source, "name": name, **settings}]}


@pytest.mark.parametrize("commit", [None, *(pytest.param(n, marks=SLOW) for n in (2, 3, 4))])
def test_a_refused_name_fills_no_batch_and_loses_no_event_when_it_gets_a_dataset(
    lab: Lab, commit: int | None
) -> None:
    capture = in_small_batches(lab)
    land(capture, upsert(1, 9, name="Ann"))
    for second in (10, 20, 30):
        land(capture, upsert(1, second, name=f"Bad {second}"), table="Bad Name")
        land(capture, upsert(2, second, name=f"Ben {second}"))
    with pytest.raises(ConfigErrors, match="has a name that no view can have"):
        capture.run("always")

    assert capture["users"].current("id", "name") == [(1, "Ann"), (2, "Ben 30")]
    assert capture.ledger().table().state.copy.membership.refused == [f"{lab.schema}.Bad Name"]

    declared(capture, "Bad Name", "good")
    land(capture, upsert(2, 50, name="Bea"), table="Bad Name")
    if commit is not None:
        with pytest.raises(InternalError), killed_at(commit, after=True):
            capture.run("always")
    capture.run("always")

    good = capture["Bad Name"]
    assert good.current("id", "name") == [(1, "Bad 30"), (2, "Bea")]
    assert len(good.history("id")) == 4
    assert good.totals() == {"in": 4, "out": 4, "filtered": 0, "quarantined": 0}
    assert capture.ledger().table().state.copy.membership.refused == []


@pytest.mark.slow
def test_an_excluded_table_is_refused_no_longer(lab: Lab) -> None:
    capture = in_small_batches(lab)
    land(capture, upsert(1, 10, name="Ann"))
    land(capture, upsert(1, 11, name="Bad"), table="Bad Name")
    with pytest.raises(ConfigErrors):
        capture.run()
    # The next process says it again, and reads what lands then.
    land(capture, upsert(3, 40, name="Cid"))
    with pytest.raises(ConfigErrors, match="has a name that no view can have"):
        capture.run()
    assert len(capture["users"].current("id")) == 2

    capture.more["exclude"] = [f"{lab.schema}.Bad *"]
    capture.run()


@pytest.mark.slow
def test_keys_that_a_table_does_not_have_hold_up_that_table_alone(lab: Lab) -> None:
    capture = in_small_batches(lab)
    declared(capture, "towns", "towns", keys=["id"])
    land(capture, upsert(1, 10, name="Ann"))
    land(capture, upsert(1, 11, name="Rome"), table="towns")
    capture.run("always")

    declared(capture, "towns", "towns", keys=["id", "name"])
    for second in (20, 30, 40):
        land(capture, upsert(2, second, name=f"Oslo {second}"), table="towns")
        land(capture, upsert(2, second, name=f"Ben {second}"))
    with pytest.raises(OperationError, match=r"the keys of towns changed from \['id'\] to"):
        capture.run("always")
    assert capture["users"].current("id", "name") == [(1, "Ann"), (2, "Ben 40")]
    assert capture["towns"].current("id", "name") == [(1, "Rome")]
    with pytest.raises(OperationError, match="the keys of towns changed"):
        capture.run("always")

    declared(capture, "towns", "towns", keys=["id"])
    capture.run("always")

    towns = capture["towns"]
    assert towns.current("id", "name") == [(1, "Rome"), (2, "Oslo 40")]
    assert len(towns.history("id")) == 4
    assert towns.totals() == {"in": 4, "out": 4, "filtered": 0, "quarantined": 0}


def test_a_table_that_comes_later_takes_no_name_that_another_one_has(lab: Lab) -> None:
    capture = in_small_batches(lab)
    declared(capture, "users", "people")
    land(capture, upsert(1, 10, name="Ann"))
    capture.run("always")

    # Of the two sources, `People` is the first in name order.
    land(capture, upsert(7, 20, name="Eve"), table="People")
    land(capture, upsert(2, 21, name="Ben"))
    with pytest.raises(ConfigErrors, match="both want the name"):
        capture.run("always")

    assert capture["users"].current("id", "name") == [(1, "Ann"), (2, "Ben")]


@pytest.mark.slow
def test_several_troubles_of_a_task_are_all_told(lab: Lab) -> None:
    capture = in_small_batches(lab)
    declared(capture, "towns", "towns", keys=["id"])
    land(capture, upsert(1, 11, name="Rome"), table="towns")
    capture.run()
    declared(capture, "towns", "towns", keys=["name"])
    land(capture, upsert(1, 20, name="Bad"), table="Bad Name")
    land(capture, upsert(1, 21, name="Roma"), table="towns")

    with pytest.raises(ConfigErrors, match="has a name that no view can have"):
        capture.run()

    told = [str(event.error) for event in lab.events if isinstance(event, UnitFailed)]
    assert any("the keys of towns changed" in text for text in told)
    assert any("has a name that no view can have" in text for text in told)


def test_a_refused_table_is_tried_again_after_growing_pauses(lab: Lab) -> None:
    refused = RefusedTables(lab.context())
    tries = []

    def work() -> None:
        tries.append(lab.clock.monotonic())
        raise OperationError("POLYNYA-LAKE-010", "its keys are others")

    for _ in range(40):
        assert not refused.attempt("a.b", work)
        lab.clock.advance(timedelta(seconds=1))
    assert [round(one - tries[0]) for one in tries] == [0, 4, 12, 28]
    assert [error.code for error in refused.errors] == ["POLYNYA-LAKE-010"]

    lab.clock.advance(timedelta(seconds=60))
    assert refused.attempt("a.b", lambda: None)
    refused.forget(["a.b"])
    assert refused.errors == []


@pytest.mark.parametrize(
    "error",
    [
        DependencyError("POLYNYA-DEP-001", "the catalog does not answer"),
        TaskStoppedError("POLYNYA-LAKE-018", "a policy says so"),
    ],
)
def test_what_does_not_concern_one_table_alone_is_no_refusal(lab: Lab, error: PolynyaError) -> None:
    refused = RefusedTables(lab.context())

    def work() -> None:
        raise error

    with pytest.raises(type(error)):
        refused.attempt("a.b", work)
    assert refused.errors == []


def test_landed_batches_stay_for_a_table_that_was_refused(lab: Lab) -> None:
    task = lab.capture().task
    folder = f"{task.landing.path}/topic"
    state = CopyState(membership=Membership(refused=["a.Bad Name"]))
    ledger = ledger_dataset(task).relations.current
    readers = LandedReaders(lambda one: state if one.relations.current == ledger else None)
    readers.know([task])

    assert LandedReader("a.Bad Name", 1) in (readers.of(folder) or ())
