"""A first full load through the CLI, beside Spark's own read and `CREATE TABLE AS SELECT`.

Both are processes of their own, cold, one after the other on the same files of 10 columns; `main`
prints the seconds, rows a second and the ratio. `POLYNYA_BENCH_ROWS` sets the size,
`POLYNYA_BENCH_FORMATS` which formats.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "2000000"))
FORMATS = tuple(os.environ.get("POLYNYA_BENCH_FORMATS", "parquet,json").split(","))
#: Landed files of one load.
FILES = 4
_SLICE = 100_000
_START = 1_767_225_600_000_000

_PROJECT = """\
apiVersion: polynya/v1
kind: project
name: bench
targets:
  local: {landing: ./landing, warehouse: ./lake}
"""
_TASK = """\
apiVersion: polynya/v1
kind: storage
name: sales
schema: sales
landing: {{ path: orders, format: {format} }}
datasets:
  - name: orders
    keys: [id]
    sequence_by: [updated]
    initial_load: "load/*.{format}"
    path: "changes/*.{format}"
    columns: {{ updated: timestamp }}
"""


@dataclass(frozen=True, slots=True)
class Load:
    """Seconds of one load by us, by the peer, and how many rows both took in."""

    format: str
    rows: int
    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        """How fast we are as a fraction of the peer."""
        return self.peer / self.ours

    def line(self) -> str:
        """One line of the table that `main` prints."""
        return (
            f"{self.format:8} {self.rows:>10,} rows: ours {self.ours:6.1f} s "
            f"({self.rows / self.ours:>9,.0f}/s), read and CTAS {self.peer:6.1f} s "
            f"({self.rows / self.peer:>9,.0f}/s), {self.ratio:.2f} x"
        )


def orders(first: int, count: int) -> pa.Table:
    """Rows of ten ordinary columns; the same numbers give the same rows."""
    ids = pa.array(range(first, first + count), pa.int64())
    texts = ids.cast(pa.string())

    def of(modulus: int, factor: int = 1) -> pa.Array:
        spread = pc.multiply(ids, factor)
        return pc.subtract(spread, pc.multiply(pc.divide(spread, modulus), modulus))

    return pa.table(
        {
            "id": ids,
            "customer": _text("customer-", of(50_000, 31)),
            "city": _text("city-", of(300)),
            "status": pa.DictionaryArray.from_arrays(
                of(4).cast(pa.int32()), ["new", "paid", "sent", "done"]
            ).dictionary_decode(),
            "note": pc.binary_join_element_wise("order number", texts, " "),
            "amount": _money(of(1_000_000, 7919)),
            "weight": pc.divide(of(1_000_003, 17).cast(pa.float64()), 7.0),
            "pieces": of(40).cast(pa.int32()),
            "points": of(100_000, 13).cast(pa.int32()),
            "updated": pc.add(pc.multiply(ids, 1_000_001), _START).cast(pa.timestamp("us", "UTC")),
        }
    )  # fmt: skip


def _text(begin: str, numbers: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(begin, numbers.cast(pa.string()), "")


def _money(cents: pa.Array) -> pa.Array:
    text = pc.utf8_lpad(cents.cast(pa.string()), 3, "0")
    whole, rest = pc.utf8_slice_codeunits(text, 0, -2), pc.utf8_slice_codeunits(text, -2)
    return pc.binary_join_element_wise(whole, rest, ".").cast(pa.decimal128(12, 2))


def make_files(folder: Path, file_format: str, rows: int) -> None:
    """Write the landed files of a load."""
    folder.mkdir(parents=True)
    each = -(-rows // FILES)
    for number in range(FILES):
        first, last = number * each, min(rows, (number + 1) * each)
        slices = (orders(n, min(_SLICE, last - n)) for n in range(first, last, _SLICE))
        path = folder / f"{number}.{file_format}"
        (_write_parquet if file_format == "parquet" else _write_json)(path, slices)


def _write_parquet(path: Path, slices: object) -> None:
    with pq.ParquetWriter(path, orders(0, 1).schema) as writer:
        for table in slices:  # type: ignore[attr-defined]
            writer.write_table(table)


def _write_json(path: Path, slices: object) -> None:
    with path.open("w") as file:
        for table in slices:  # type: ignore[attr-defined]
            for row in table.to_pylist():
                stamp = row["updated"].isoformat().replace("+00:00", "Z")
                file.write(
                    f'{{"id":{row["id"]},"customer":"{row["customer"]}","city":"{row["city"]}",'
                    f'"status":"{row["status"]}","note":"{row["note"]}","amount":{row["amount"]},'
                    f'"weight":{row["weight"]!r},"pieces":{row["pieces"]},"points":{row["points"]},'
                    f'"updated":"{stamp}"}}\n'
                )


def measure(file_format: str, rows: int = ROWS) -> Load:
    """Load the same files by the CLI and by plain Spark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "polynya.yml").write_text(_PROJECT)
        (folder / "tasks").mkdir()
        (folder / "tasks" / "sales.yml").write_text(_TASK.format(format=file_format))
        landed = folder / "landing" / "orders" / "load"
        make_files(landed, file_format, rows)
        peer = _timed("-m", "bench.load", "ctas", file_format, str(landed), str(folder / "peer"))
        ours = _timed("-m", "polynya", "run", "--once", "-p", str(folder))
        return Load(file_format, rows, ours, peer)


def _timed(*arguments: str) -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, *arguments], check=True)
    return time.monotonic() - started


def ctas(file_format: str, landed: str, folder: str) -> None:
    """What the peer's process does: read the files and create an Iceberg table of them."""
    from polynya.lake.spark.api import SparkSession
    from polynya.lake.spark.jars import jar_paths
    from polynya.lake.spark.java import find_java

    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.driver.extraClassPath": os.pathsep.join(jar_paths()),
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.peer.type": "jdbc",
        "spark.sql.catalog.peer.uri": f"jdbc:sqlite:{folder}.db",
        "spark.sql.catalog.peer.warehouse": folder,
        "spark.sql.warehouse.dir": f"{folder}/default",
    }
    builder = SparkSession.builder.master("local[*]").appName("peer")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.read.format(file_format).load(landed).createOrReplaceTempView("landed")
    spark.sql("CREATE NAMESPACE peer.sales")
    spark.sql("CREATE TABLE peer.sales.orders USING iceberg AS SELECT * FROM landed")
    spark.stop()


def main() -> None:
    """Print one line for each format."""
    for file_format in FORMATS:
        print(measure(file_format).line())


if __name__ == "__main__":
    if sys.argv[1:2] == ["ctas"]:
        ctas(*sys.argv[2:])
    else:
        main()
