"""Random histories with all files written again after each apply: equal to the last column.

The other table is folded by the plain applier and never written again; the views are those of the
independent fold.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from polynya.lake.maintenance.rewrite_writer import Input
from tests.lab import twins
from tests.lab.lab import Lab
from tests.lab.twins import WRITERS, Twins, written_by
from tests.lake.apply.test_appliers_agree import LIVES, PARTED, STEPS

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))


@pytest.fixture(autouse=True)
def rewritten(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of files that each rewrite removed: at least one is to have done something."""
    gone: list[int] = []
    real = twins.rewrite_all

    def counted(*arguments: Any) -> Any:
        done = real(*arguments)
        gone.extend(one.files_removed for one in done)
        return done

    monkeypatch.setattr(twins, "rewrite_all", counted)
    return gone


def lived(lab: Lab, name: str, seed: int, rewritten: list[int], **extra: Any) -> str:
    """All that is wrong after a life, as text."""
    events = LIVES[name].dataset(seed + list(LIVES).index(name))
    events = replace(events, extra={**events.extra, **extra})
    found = Twins(lab, events, rewritten=True).live_through(STEPS)
    assert sum(rewritten) > 0
    return "\n".join(found)[:6000]


@pytest.fixture(params=WRITERS)
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes the files."""
    written_by(request.param, monkeypatch)


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("name", LIVES)
def test_on_random_histories(lab: Lab, name: str, rewritten: list[int]) -> None:
    assert lived(lab, name, SEED + 500, rewritten) == ""


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("name", ["typed", "emptied_soft", "large", "sparse_current", "stormy"])
def test_with_deletion_vectors(lab: Lab, name: str, rewritten: list[int]) -> None:
    assert lived(lab, name, SEED + 600, rewritten, format_version=3) == ""


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", PARTED)
def test_in_many_partitions(lab: Lab, name: str, version: int, rewritten: list[int]) -> None:
    layout = {"partition_by": PARTED[name], "sort_by": ["id desc"], "format_version": version}

    assert lived(lab, name, SEED + 700, rewritten, **layout) == ""


def test_a_row_that_a_rewrite_leaves_out_would_be_seen(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: the first row of each file stays behind."""
    live = Input.live
    monkeypatch.setattr(Input, "live", lambda one: live(one)[1:])

    found = Twins(lab, LIVES["typed"].dataset(SEED), rewritten=True).live_through(STEPS)

    assert any("only plain has it" in text for text in found)
