"""Plain JSON messages of a stream as Arrow columns.

The messages are joined to lines and read by `polynya.formats.json_columns`. The rows are those of
the exact reader; a property test compares both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import TIMESTAMP_UTC
from polynya.formats.json_columns import is_met, reads, typed_objects
from polynya.formats.landed import Messages
from polynya.formats.stream.order import own_places, places_in_columns
from polynya.formats.values.columns import Faults
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.stream_content import AutoContent, Content, JsonContent, LandedContent
from polynya.model.headers import TIME_HEADERS
from polynya.model.types import DataType


@dataclass(frozen=True, slots=True)
class MessageRows:
    """Rows of messages that follow each other, each of which is one record.

    Attributes:
        rows: service columns and those of the source, header columns among them.
        refused: file, offset, rule and error of the records that are no rows.
        met: columns that the messages really have.
    """

    rows: pa.Table
    refused: tuple[tuple[str, int, str, str], ...]
    met: frozenset[str]

    def since(self, offset: int) -> MessageRows:
        """Without the records before an offset of the file."""
        wanted = pc.greater_equal(self.rows.column("__offset"), offset)
        refused = tuple(record for record in self.refused if record[1] >= offset)
        return replace(self, rows=self.rows.filter(wanted), refused=refused)


def may_be_columns(
    content: Content | LandedContent, schema: Mapping[str, DataType], dataset: ResolvedDataset
) -> bool:
    """Whether it is worth to try. `schema` has the columns so far, without those of headers."""
    if not isinstance(content, JsonContent | AutoContent):
        return False
    if not schema or not all(key in schema for key in dataset.events.keys):
        return False
    return reads(schema, dataset.events.columns)


def piece_of(
    messages: Messages,
    begin: int,
    count: int,
    first: int,
    *,
    schema: Mapping[str, DataType],
    dataset: ResolvedDataset,
    load: bool,
    odd: list[int],
) -> MessageRows | None:
    """The rows of some messages, None when they have to be read exactly.

    Args:
        messages: of the landed batch.
        begin: the first of them.
        count: how many they are.
        first: offset of its record in the file.
        schema: the columns so far, without those of headers.
        dataset: the settings.
        load: they are read for a reload.
        odd: gets the index of the message that is to blame among them, where that is known.
    """
    values = messages.values.slice(begin, count)
    text = _lines(values) if _are_lines(values) else None
    columns = None if text is None else typed_objects(values, text, schema, odd)
    if text is None or columns is None:
        odd += _not_plain(values)
        return None
    met = frozenset(name for name, column in columns.items() if is_met(name, column, text))
    headers = {name: one.slice(begin, count) for name, one in messages.headers.items()}
    own = own_places(messages.file, first, count)
    everything = {**columns, **headers}
    places = places_in_columns(
        everything, {**schema, **messages.types}, dataset, own, _taken(messages, headers), load=load
    )
    service = {
        "__file": pa.repeat(pa.scalar(messages.file), count),
        "__offset": pa.arange(first, first + count),
        "__op": pa.repeat(pa.scalar("L" if load else None, pa.string()), count),
        "__ci": places.identifiers,
        "__tail": places.tails,
        "__position": own,
        "__ts": places.times.cast(TIMESTAMP_UTC),
    }
    rows = pa.table({**service, **everything})
    return MessageRows(*_parted(rows, places.faults, messages.file, first), met)


def _parted(
    rows: pa.Table, faults: Faults, file: str, first: int
) -> tuple[pa.Table, tuple[tuple[str, int, str, str], ...]]:
    """The good rows, and the others."""
    if not faults:
        return rows, ()
    good = [index not in faults for index in range(rows.num_rows)]
    refused = ((file, first + at, rule, error) for at, (rule, error) in sorted(faults.items()))
    return rows.filter(pa.array(good, pa.bool_())), tuple(refused)


def _lines(values: pa.Array) -> pa.Buffer:
    """The values with a line end between them: no object goes on in the next value then."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    return pc.binary_join(whole, b"\n")[0].as_buffer()


def _are_lines(values: pa.Array) -> bool:
    """Whether each value is a line that begins with a brace and ends with one."""
    if values.null_count:
        return False
    ends = (pc.starts_with(values, "{"), pc.ends_with(values, "}"))
    if not all(pc.all(end).as_py() for end in ends):
        return False
    # This way of looking for it takes a tenth of the time of others.
    return not pc.any(pc.match_substring_regex(values, r"\n")).as_py()


def _not_plain(values: pa.Array) -> list[int]:
    """The index of the first message that is surely no line with an object, if there is one."""
    for index, value in enumerate(values.to_pylist()):
        if value is None or value[:1] != b"{" or value[-1:] != b"}" or b"\n" in value:
            return [index]
    return []


def _taken(messages: Messages, headers: Mapping[str, pa.Array]) -> pa.Array:
    """When the source took each message, in microseconds."""
    name = TIME_HEADERS.get(messages.source)
    count = len(next(iter(headers.values())))
    return pa.nulls(count, pa.int64()) if name is None else headers[name].view(pa.int64())
