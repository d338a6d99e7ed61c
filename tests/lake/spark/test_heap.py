"""The heap follows the machine: nodes and laptops of every size leave room beside it."""

from __future__ import annotations

import pytest

from polynya.lake.spark.heap import driver_heap, machine_memory

GIB = 1024


@pytest.mark.parametrize(
    ("machine", "heap"), [(8, 3.6), (16, 8.4), (32, 18), (64, 30), (256, 30), (2, 1)]
)
def test_a_node_gives_most_of_its_memory(machine, heap):
    assert driver_heap(machine * GIB, dedicated=True) == int(heap * GIB)


@pytest.mark.parametrize(("machine", "heap"), [(2, 1), (4, 1), (8, 2), (16, 4), (64, 4)])
def test_a_laptop_gives_a_quarter(machine, heap):
    assert driver_heap(machine * GIB, dedicated=False) == heap * GIB


@pytest.mark.parametrize("machine", [8, 16, 32, 64, 128])
def test_what_stands_beside_the_heap_has_room(machine):
    """Python's batches, threads, classes and compiled code: 3 GiB at least, with the system."""
    assert machine * GIB - driver_heap(machine * GIB, dedicated=True) >= 3 * GIB


def test_a_container_counts_as_the_machine(tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("1073741824\n")

    assert machine_memory(limit) == GIB
    limit.write_text("max\n")
    assert machine_memory(limit) == machine_memory(tmp_path / "nowhere") > GIB
