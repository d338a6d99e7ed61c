"""Java objects for the files of a table, in few calls through py4j.

A call costs about as much as writing a hundred rows, and so does it to release the object that it
returned. So what does not change while a table is open is asked for once, and a file that has no
metrics crosses as one JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from typing import Any

from polynya.lake.iceberg.files import DataFile
from polynya.model.contract.headers import PARTITION, Partition

_NAMES = ("0.parquet", "1.parquet")


class JavaFiles:
    """Makes files of a table, as its settings are now."""

    def __init__(self, iceberg: Any, table: Any) -> None:
        self._iceberg = iceberg
        self._spec, self._specs = table.spec(), table.specs()
        self.spec_id = int(self._spec.specId())
        self._metrics = iceberg.MetricsConfig.forTable(table)
        self._mapper = iceberg.util.JsonUtil.mapper()
        self._texts: Any = None
        self._conditions: dict[tuple[Partition, ...], Any] = {}
        self._locations = table.locationProvider()
        places = [str(self._locations.newDataLocation(name)) for name in _NAMES]
        folders = {place.removesuffix(name) for place, name in zip(places, _NAMES, strict=True)}
        #: Where new files go, with a `/` at the end; None when each file has a folder of its own.
        self._folder = folders.pop() if len(folders) == 1 else None

    def location(self, name: str) -> str:
        """Where a new data file of this name goes."""
        if self._folder is not None:
            return self._folder + name
        return str(self._locations.newDataLocation(name))

    def measured(self, file: DataFile, footer: bytes) -> Any:
        """A Java `DataFile` with metrics: what Iceberg's own reader finds in a Parquet footer.

        It looks at no byte but the footer, so that it need not ask S3 for the file.
        """
        content = self._iceberg.inmemory.InMemoryInputFile(bytearray(footer))
        metrics = self._iceberg.parquet.ParquetUtil.fileMetrics(content, self._metrics)
        return (
            self._iceberg.DataFiles.builder(self._spec)
            .withPath(file.path)
            .withPartitionPath(f"{PARTITION}={file.partition}")
            .withFileSizeInBytes(file.size_bytes)
            .withMetrics(metrics)
            .build()
        )

    def of(self, file: DataFile) -> Any:
        """The Java `DataFile` of a file, without metrics unless it was made with them."""
        return file.java if file.java is not None else self._read("data", file, {})

    def position_deletes(self, file: DataFile, touched: tuple[str, ...]) -> Any:
        """A Java `DeleteFile` of position deletes that refer to these data files."""
        only = {"referenced-data-file": touched[0]} if len(touched) == 1 else {}
        return self._read("position-deletes", file, only)

    def within(self, *partitions: Partition) -> Any:
        """The Java `Expression` of being in one of the partitions."""
        if partitions not in self._conditions:
            made = self._iceberg.expressions.Expressions
            either = getattr(made, "or")  # the name of the Java method is a keyword of Python
            each = [made.equal(PARTITION, str(one)) for one in partitions]
            self._conditions[partitions] = reduce(either, each)
        return self._conditions[partitions]

    def texts(self, values: Sequence[str]) -> Any:
        """A `java.util.List` of texts."""
        if self._texts is None:
            types = self._mapper.getTypeFactory()
            self._texts = types.constructFromCanonical("java.util.ArrayList<java.lang.String>")
        return self._mapper.readValue(json.dumps(values), self._texts)

    def _read(self, content: str, file: DataFile, more: dict[str, str]) -> Any:
        text = {
            "spec-id": self.spec_id if file.spec is None else file.spec,
            "content": content,
            "file-path": file.path,
            "file-format": "parquet",
            "partition": [file.partition],
            "file-size-in-bytes": file.size_bytes,
            "record-count": file.rows,
            **more,
        }
        node = self._mapper.readTree(json.dumps(text))
        return self._iceberg.ContentFileParser.fromJson(node, self._specs)
