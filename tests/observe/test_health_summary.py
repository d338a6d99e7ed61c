"""The health of several tables as one."""

from __future__ import annotations

from dataclasses import replace

from polynya.observe.maintenance import combine, summarise
from tests.cluster.fakes import a_look


def test_the_worst_of_some_figures_and_the_sum_of_others() -> None:
    good = replace(a_look("shop.a", 95), files=3, average_bytes=100, removed_orphan_bytes=None)
    bad = replace(a_look("shop.b", 60), files=1, average_bytes=20, deleted_share=0.4)

    summary = summarise([good, bad])

    assert summary is not None
    assert (summary.health_percent, summary.deleted_share) == (60, 0.4)
    assert (summary.files, summary.size_bytes, summary.average_bytes) == (4, 320, 80)
    assert (summary.rows_not_optimised, summary.snapshots, summary.metadata_bytes) == (20, 2, 2)
    assert summary.removed_orphan_bytes == 100


def test_nobody_knows_before_a_look() -> None:
    assert summarise([]) is None
    assert combine([]) is None
