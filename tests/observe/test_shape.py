"""The shape of several tables as one."""

from __future__ import annotations

from dataclasses import replace

from polynya.observe.maintenance import combine, summarise
from tests.cluster.fakes import a_look


def test_the_worst_of_some_figures_and_the_sum_of_others() -> None:
    good = replace(a_look("shop.a", 95), files=3, average_bytes=100, removed_orphan_bytes=None)
    bad = replace(a_look("shop.b", 60), files=1, average_bytes=20, deleted_share=0.4)

    shape = summarise([good, bad])

    assert shape is not None
    assert (shape.health_percent, shape.deleted_share) == (60, 0.4)
    assert (shape.files, shape.size_bytes, shape.average_bytes) == (4, 320, 80)
    assert (shape.rows_not_optimised, shape.snapshots, shape.metadata_bytes) == (20, 2, 2)
    assert shape.removed_orphan_bytes == 100


def test_nobody_knows_before_a_look() -> None:
    assert summarise([]) is None
    assert combine([]) is None
