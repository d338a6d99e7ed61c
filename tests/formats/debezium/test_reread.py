"""A quarantined line of a capture can be read again from its raw bytes alone."""

from __future__ import annotations

import json
from typing import Any

from polynya.formats.batch import Rejected
from tests.formats.debezium.builders import reread_capture, reread_line
from tests.formats.helpers import column, types


def test_a_change_event_is_read_again() -> None:
    source: dict[str, Any] = {
        "connector": "postgresql",
        "schema": "w",
        "table": "t",
        "lsn": 5,
        "sequence": None,
    }
    value = {"op": "c", "before": None, "after": {"id": 1}, "source": source, "transaction": None}
    raw = json.dumps({"key": {"id": 1}, "value": value}).encode()

    batch = reread_line(raw, known={"w.t": types(id="int")}, offset=3)

    assert column(batch.datasets["w.t"], "id") == [1]
    assert column(batch.datasets["w.t"], "__offset") == [3]


def test_several_lines_of_a_capture_are_read_again_as_one_batch() -> None:
    records = [Rejected("f", 1, "r", "e", b"bad"), Rejected("f", 2, "r", "e", b'{"value":null}')]

    batch = reread_capture(records)

    assert (batch.unrouted.rows_in, batch.unrouted.rows_filtered) == (2, 1)
