"""The heap follows the machine: nodes and laptops of every size leave room beside it."""

from __future__ import annotations

import pytest

from polynya.lake.spark.session import asked_heap, driver_heap, machine_memory
from polynya.model.errors import ConfigError

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


@pytest.mark.parametrize(
    ("text", "mib"),
    [("2g", 2048), ("1500m", 1500), ("1536M", 1536), ("1048576k", 1024), ("1gb", 1024)],
)
def test_a_heap_is_taken_as_spark_writes_it(text: str, mib: int) -> None:
    assert asked_heap(text, 8192) == mib


@pytest.mark.parametrize("text", ["lots", "64m", "2", "-1g", "900t", "1.5g", " ", "²g"])
def test_what_is_no_heap_is_refused_before_anything_starts(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        asked_heap(text, 8192)

    assert (caught.value.code, caught.value.exit_code) == ("POLYNYA-CFG-031", 2)
    assert "2g" in str(caught.value.fix)
