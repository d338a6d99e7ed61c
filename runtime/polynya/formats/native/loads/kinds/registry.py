"""From the name of a native format to how tasks load its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from polynya.formats.native.loads.kinds.avro import AVRO
from polynya.formats.native.loads.kinds.columns import ORC, PARQUET
from polynya.formats.native.loads.kinds.kind import Kind
from polynya.formats.native.loads.kinds.lines import CSV, JSON

KINDS: Final[Mapping[str, Kind]] = {
    "avro": AVRO,
    "csv": CSV,
    "json": JSON,
    "orc": ORC,
    "parquet": PARQUET,
}
