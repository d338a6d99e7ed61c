"""Java objects for the files of a table, made with few calls through py4j.

A call costs about as much as writing a hundred rows, and releasing the returned object costs as
much again. So `JavaFiles` asks once for what does not change while a table is open, and passes a
file without metrics as one JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from polynya.lake.iceberg.deletion_vectors import Blob
from polynya.lake.iceberg.files import DataFile, FilePartition, data_file
from polynya.lake.iceberg.partitions import LAID_OUT, Parting, Spec
from polynya.lake.iceberg.wanted import SortOrder
from polynya.model.headers import PARTITION, Partition

_NAMES = ("0.parquet", "1.parquet")
#: A Parquet file begins and ends with these bytes; the length of its footer stands before the end.
_MAGIC, _LENGTH = b"PAR1", 4


@dataclass(frozen=True, slots=True)
class _Orders:
    """The sort order of a table, the Java `Map` of all of its orders, whether one has a column."""

    now: SortOrder
    java: Any
    any_ever: bool


class _Footers:
    """Reads Parquet footers as Iceberg's own reader does.

    `ParquetUtil.fileMetrics` would ask Hadoop's configuration for the defaults of its options, and
    that reads and parses its XML for each file: 8 ms of 9 ms.
    """

    def __init__(self, iceberg: Any) -> None:
        self._iceberg = iceberg

    def metrics(self, footer: bytes, config: Any) -> Any:
        """The Java `Metrics` of a file with this footer, as `footer_of` gives it."""
        content = footer[len(_MAGIC) : -len(_MAGIC) - _LENGTH]
        stream = self._iceberg.inmemory.InMemoryInputFile(bytearray(content)).newStream()
        converter, everything = self._converter
        decryptor, is_encrypted = None, False
        read = converter.readParquetMetadata(
            stream, everything, decryptor, is_encrypted, len(content)
        )
        return self._iceberg.parquet.ParquetUtil.footerMetrics(read, self._none.stream(), config)

    @cached_property
    def _converter(self) -> tuple[Any, Any]:
        """What reads a footer, and its filter that keeps all row groups."""
        parquet = self._iceberg.shaded.org.apache.parquet
        options = parquet.ParquetReadOptions.builder(parquet.conf.PlainParquetConfiguration())
        made = parquet.format.converter.ParquetMetadataConverter
        return made(options.build()), made.NO_FILTER

    @cached_property
    def _none(self) -> Any:
        return self._iceberg.relocated.com.google.common.collect.ImmutableList.of()


class JavaFiles:
    """Makes files of a table, as its settings are now.

    `newest` is the partition spec that Current and Prior are written with, and `plain` the one of
    all else.
    """

    def __init__(self, iceberg: Any, table: Any, columns: Sequence[Mapping[str, Any]]) -> None:
        self._iceberg = iceberg
        self._table = table
        self._specs = table.specs()
        self._columns = columns
        self.newest = Spec.of(str(iceberg.PartitionSpecParser.toJson(table.spec())))
        self.plain = self.newest if self.newest.is_plain else self._plain_spec()
        self._plain_java = self._specs.get(self.plain.number)
        #: Whether files may have more than one spec, or one of several fields.
        self.has_several = len(self._specs) > 1 or not self.plain.is_plain
        self._others: dict[int, tuple[Spec, Any] | None] = {}
        self._parting: Parting | None = None
        self._orders: _Orders | None = None
        self._metrics = iceberg.MetricsConfig.forTable(table)
        self._footers = _Footers(iceberg)
        self._mapper = iceberg.util.JsonUtil.mapper()
        self._texts: Any = None
        self._conditions: dict[tuple[Partition, ...], Any] = {}
        self._locations = table.locationProvider()
        places = [str(self._locations.newDataLocation(name)) for name in _NAMES]
        folders = {place.removesuffix(name) for place, name in zip(places, _NAMES, strict=True)}
        #: Where new files go, with a `/` at the end; None when each file has a folder of its own.
        self._folder = folders.pop() if len(folders) == 1 else None

    @property
    def is_laid_out(self) -> bool:
        """Whether Current and Prior are partitioned by more than `PARTITION`."""
        return not self.newest.is_plain

    @property
    def parting(self) -> Parting:
        """How rows of Current and Prior are partitioned."""
        if self._parting is None:
            self._parting = Parting.by(self.newest, self._columns)
        return self._parting

    def parts_of(self, partition: str) -> bool:
        """Whether rows of this value of `PARTITION` are partitioned by more than that."""
        return not (self.plain if partition not in LAID_OUT else self.newest).is_plain

    @property
    def order(self) -> SortOrder:
        """The sort order of the table."""
        return self._known_orders().now

    def location(self, name: str) -> str:
        """Where a new data file of this name goes."""
        if self._folder is not None:
            return self._folder + name
        return str(self._locations.newDataLocation(name))

    def known(self, java: Any, partition: Partition | None = None) -> DataFile:
        """A data file of Iceberg with its figures; `partition` is where it was found."""
        other = self._other(int(java.specId())) if self.has_several else None
        order = self._order_of(java)
        if other is None:
            where = partition or self._partition_value(java)
            return data_file(java, FilePartition(str(where)), order)
        spec, kind = other
        values = json.loads(self._iceberg.SingleValueParser.toJson(kind, java.partition()))
        listed = [json.dumps(values.get(str(field.number))) for field in spec.fields]
        return data_file(java, spec.slot(f"[{','.join(listed)}]"), order)

    def measured(self, file: DataFile, footer: bytes) -> Any:
        """A Java `DataFile` with metrics: what Iceberg's own reader finds in a Parquet footer.

        It need not ask S3 for the file.
        """
        metrics = self._footers.metrics(footer, self._metrics)
        builder = (
            self._iceberg.DataFiles.builder(self.spec_of(file))
            .withPath(file.path)
            .withFileSizeInBytes(file.size_bytes)
            .withMetrics(metrics)
        )
        if file.sort_order is not None:
            builder = builder.withSortOrder(self._known_orders().java.get(file.sort_order))
        if file.values is None:
            builder = builder.withPartitionPath(f"{PARTITION}={file.partition}")
        else:
            builder = builder.withPartition(self._read("data", file, {}).partition())
        return builder.build()

    def of(self, file: DataFile) -> Any:
        """The Java `DataFile` of a file, without metrics unless it was made with them."""
        return file.java if file.java is not None else self._read("data", file, {})

    def position_deletes(self, file: DataFile, touched: tuple[str, ...]) -> Any:
        """A Java `DeleteFile` of position deletes that refer to these data files."""
        only = {"referenced-data-file": touched[0]} if len(touched) == 1 else {}
        return self._read("position-deletes", file, only)

    def vector(self, path: str, size: int, blob: Blob, slot: FilePartition) -> Any:
        """A Java `DeleteFile` of a deletion vector in a Puffin file of this size in bytes."""
        file = DataFile(None, path, slot.partition, blob.rows, size, slot.spec, slot.values)
        more = {
            "file-format": "puffin",
            "referenced-data-file": blob.data_file,
            "content-offset": blob.offset,
            "content-size-in-bytes": blob.size,
        }
        return self._read("position-deletes", file, more)

    def spec_of(self, file: DataFile) -> Any:
        """The Java `PartitionSpec` of a file."""
        number = self.spec_id(file.slot)
        # Files of a small step are of this one: it takes no call.
        return self._plain_java if number == self.plain.number else self._specs.get(number)

    def within(self, *partitions: Partition) -> Any:
        """The Java `Expression` of being in one of the partitions."""
        if partitions not in self._conditions:
            made = self._iceberg.expressions.Expressions
            either = getattr(made, "or")  # the name of the Java method is a keyword of Python
            tests = [made.equal(PARTITION, str(partition)) for partition in partitions]
            self._conditions[partitions] = reduce(either, tests)
        return self._conditions[partitions]

    def texts(self, values: Sequence[str]) -> Any:
        """A `java.util.List` of texts."""
        if self._texts is None:
            types = self._mapper.getTypeFactory()
            self._texts = types.constructFromCanonical("java.util.ArrayList<java.lang.String>")
        return self._mapper.readValue(json.dumps(values), self._texts)

    def spec_id(self, slot: FilePartition) -> int:
        """Id of the partition spec of a partition of Iceberg."""
        return self.plain.number if slot.spec is None else slot.spec

    def _known_orders(self) -> _Orders:
        if self._orders is None:
            text = str(self._iceberg.SortOrderParser.toJson(self._table.sortOrder()))
            now, java = SortOrder.of_text(text), self._table.sortOrders()
            self._orders = _Orders(now, java, any_ever=bool(now.fields) or len(java) > 1)
        return self._orders

    def _order_of(self, java: Any) -> int | None:
        """Id of the sort order of a file, None for none."""
        if not self._known_orders().any_ever:
            return None
        # 0 is that of rows in no order.
        return int(java.sortOrderId() or 0) or None

    def _partition_value(self, java: Any) -> str:
        """The value of `PARTITION` of a file of the plain spec."""
        return str(self._plain_java.partitionToPath(java.partition())).split("=", 1)[1]

    def _plain_spec(self) -> Spec:
        """The spec by `PARTITION` alone; the newest one if that was removed."""
        (source,) = (field.source for field in self.newest.fields if field.name == PARTITION)
        for java in self._specs.values():
            spec = Spec.of(str(self._iceberg.PartitionSpecParser.toJson(java)))
            if spec.is_plain and spec.fields[0].source == source:
                return spec
        return self.newest

    def _other(self, number: int) -> tuple[Spec, Any] | None:
        """A spec of several fields and the Java type of its values; None for the plain one."""
        if number not in self._others:
            java = self._specs.get(number)
            spec = Spec.of(str(self._iceberg.PartitionSpecParser.toJson(java)))
            self._others[number] = None if spec.is_plain else (spec, java.partitionType())
        return self._others[number]

    def _read(self, content: str, file: DataFile, more: Mapping[str, Any]) -> Any:
        text = {
            "spec-id": self.spec_id(file.slot),
            "content": content,
            "file-path": file.path,
            "file-format": "parquet",
            "partition": [file.partition] if file.values is None else json.loads(file.values),
            "file-size-in-bytes": file.size_bytes,
            "record-count": file.rows,
            **more,
        }
        node = self._mapper.readTree(json.dumps(text))
        return self._iceberg.ContentFileParser.fromJson(node, self._specs)
