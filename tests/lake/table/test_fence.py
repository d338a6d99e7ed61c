"""Under which epoch an owner may take a table over."""

from __future__ import annotations

import pickle

import pytest

from polynya.lake.table.fence import epoch_to_take, owner_in_words, refuse_overtaken
from polynya.lake.table.state import TableOwnership
from polynya.model.errors import FencedError

FOUND = TableOwnership(epoch=4, owner="node-2.9a", commit="c")


def taken(granted: int | None, *, owner: str = "node-1.7f", found: TableOwnership = FOUND) -> int:
    return epoch_to_take(found, owner=owner, granted=granted, table="lake.users")


@pytest.mark.parametrize(
    ("granted", "owner", "epoch"),
    [
        pytest.param(None, "any", 5, id="without a grant the next one"),
        pytest.param(5, "node-1.7f", 5, id="the next one"),
        pytest.param(9, "node-1.7f", 9, id="other tables of the unit were further"),
        pytest.param(4, "node-2.9a", 4, id="the same owner opens its table again"),
    ],
)
def test_a_table_is_taken_over_with_the_epoch_that_was_granted(
    granted: int | None, owner: str, epoch: int
) -> None:
    assert taken(granted, owner=owner) == epoch


@pytest.mark.parametrize(
    ("granted", "owner"),
    [
        pytest.param(3, "node-1.7f", id="a higher epoch was there"),
        pytest.param(4, "node-1.7f", id="the same epoch in other hands"),
        pytest.param(3, "node-2.9a", id="an epoch that the same owner had before"),
    ],
)
def test_a_table_that_has_seen_the_epoch_is_refused(granted: int, owner: str) -> None:
    with pytest.raises(FencedError) as refused:
        taken(granted, owner=owner)

    error = pickle.loads(pickle.dumps(refused.value))
    assert (error.code, error.epoch, error.owner) == ("POLYNYA-LAKE-060", 4, "node-2.9a")
    assert error.retryable


def test_a_new_table_is_anybodys() -> None:
    assert taken(1, found=TableOwnership()) == 1


def test_who_holds_a_table_is_told_of_a_newer_owner_only() -> None:
    refuse_overtaken(FOUND, 4, "lake.users")

    with pytest.raises(FencedError, match=r"node-2\.9a took over lake\.users") as refused:
        refuse_overtaken(FOUND, 3, "lake.users")
    assert (refused.value.code, refused.value.epoch) == ("POLYNYA-LAKE-002", 4)


def test_an_owner_is_shown_as_people_find_it() -> None:
    assert owner_in_words("node-1:4711:0a1b2c3d4e5f") == "process 4711 on node-1"
    assert owner_in_words("a test") == "a test"
    assert owner_in_words("") == "another process"
