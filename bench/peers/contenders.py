"""Who takes part, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass

#: The PySpark of a contender that none for the project's own version exists for.
OLDER_SPARK = "3.5.9"


@dataclass(frozen=True, slots=True)
class Contender:
    """One contender. `opens` is the function of a module in `bench.peers.tables` that starts it.

    `jars` is a group of the project's lock file or of `jars.lock.json` here. `spark` is a version
    of PySpark, None for that of the project. `history`: it keeps older versions of rows.
    """

    name: str
    what: str
    opens: str
    jars: str
    spark: str | None = None
    history: bool = False


POLYNYA = Contender("polynya", "Polynya", "polynya:fast", "core")
CONTENDERS = (
    POLYNYA,
    Contender("polynya-no-index", "Polynya, keys read each time", "polynya:no_index", "core"),
    Contender("polynya-plain", "Polynya, plain applier", "polynya:plain", "core"),
    Contender("iceberg-mor", "Iceberg `MERGE`, merge-on-read", "iceberg:merge_on_read", "core"),
    Contender("iceberg-cow", "Iceberg `MERGE`, copy-on-write", "iceberg:copy_on_write", "core"),
    Contender("delta", "Delta 4.4.0 `MERGE`", "delta:deletion_vectors", "delta"),
    Contender("hudi", "Hudi 1.1.1, simple index", "hudi:simple_index", "hudi", OLDER_SPARK),
    Contender("hudi-index", "Hudi 1.1.1, record index", "hudi:record_index", "hudi", OLDER_SPARK),
    Contender(
        "paimon", "Paimon 0.9.0, deletion vectors", "paimon:deletion_vectors", "paimon", OLDER_SPARK
    ),
    Contender(
        "paimon-mor", "Paimon 0.9.0, merge-on-read", "paimon:merge_on_read", "paimon", OLDER_SPARK
    ),
    Contender("polynya-history", "Polynya, history", "polynya:history", "core", history=True),
    Contender(
        "iceberg-scd2", "Iceberg `MERGE`, SCD2 by hand", "iceberg:scd2", "core", history=True
    ),
)
