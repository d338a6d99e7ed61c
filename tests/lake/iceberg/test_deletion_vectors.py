"""Deletion vectors as bytes: what is written is read back, here and by PyIceberg."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from polynya.lake.iceberg.deletion_vectors import decoded, encoded, puffin

#: Around the ends of the containers of a bitmap, and past what 32 bits hold.
POSITIONS = st.sets(
    st.integers(0, 200_000) | st.integers(2**32 - 3, 2**32 + 3) | st.just(2**39), max_size=40
)


def positions(numbers: set[int]) -> pa.Array:
    """Positions as the engine has them."""
    return pa.array(sorted(numbers), pa.int64())


@given(st.lists(POSITIONS.filter(bool), min_size=1, max_size=4))
def test_every_reader_finds_what_was_written(given_: list[set[int]]) -> None:
    vectors = [(f"file:/data/ü{n}.parquet", positions(one)) for n, one in enumerate(given_)]

    content, blobs = puffin(vectors)

    for (path, rows), blob in zip(vectors, blobs, strict=True):
        assert (blob.data_file, blob.rows) == (path, len(rows))
        assert decoded(content[blob.offset : blob.offset + blob.size]).equals(rows)
    read = PuffinFile(content)
    described = [(one.offset, one.length) for one in read.footer.blobs]
    assert described == [(one.offset, one.size) for one in blobs]
    # PyIceberg makes a bitmap for each four billion positions, and 2**39 would take 128 of them.
    assert [one.referenced_data_file for one in deletion_vectors_from_puffin_file(read)] == [
        path for path, _ in vectors
    ]


def test_pyiceberg_reads_the_same_positions() -> None:
    rows = positions({0, 1, 2, 70_000, *range(100_000, 108_000), 2**32 + 5})

    (vector,) = deletion_vectors_from_puffin_file(PuffinFile(puffin([("/a", rows)])[0]))

    assert vector.to_vector().to_pylist() == rows.to_pylist()


def test_a_slice_is_written_as_it_is() -> None:
    rows = positions({1, 5, 9, 2**33})

    assert decoded(encoded(rows.slice(1, 2))).to_pylist() == [5, 9]


@pytest.mark.parametrize("at", [0, 5, 20, -1])
def test_a_damaged_vector_is_not_read(at: int) -> None:
    blob = bytearray(encoded(positions({1, 5, 9})))
    blob[at] ^= 1

    with pytest.raises(pa.ArrowInvalid):
        decoded(bytes(blob))
