"""Conformance cases that are left out, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

_NO_DATA = "a rule without input and expected rows; "
NOT_COVERED: Mapping[str, str] = {
    "DBX-9-partial-update": "no rows given: X-DBX-9 is the case made of it",
    "DBX-10-change-feed-of-target": _NO_DATA + "change feed of the target is no part of this issue",
    "SPK2-33": "a property, not rows: tests/e2e/test_kills.py checks it with kill -9",
    "SPK-CONV": "a property, not rows: test_random_histories.py and test_fold.py check it",
    "PAI-7": _NO_DATA + "ties follow semantics.md section 4, not input order",
    "DBZ-2": _NO_DATA + "Debezium truncates are in the random histories",
    "DBZ-4": "one record, no rows: tests/engine/test_flattened.py lands it and reads the views",
    "DBZ-6": _NO_DATA + "`r` events as upserts are in the random histories",
    "DBZ-8": _NO_DATA + "LSNs that go backwards are in the random histories",
    "SNAP-1": "the gap is a delete of its own in our contract: X-SNAP-1 is the case with one",
    "HUDI-3": "a property, not rows: test_fold.py and test_random_histories.py check it",
    "DBT-2": "no rows given: X-DBT-2 is the case made of it",
    "QLIK-2": _NO_DATA + "X-DBX-2 lands a truncate and reads it back",
    "QLIK-4": _NO_DATA + "every case reads the live views",
    "KC-2": "a Kafka connector's own JSON mapping, which drops empty objects; ours keeps them",
    "REG-2": "no rows given: X-REG-2 is the case made of it",
    "REG-4": "user partitioning of tables is a later issue",
    "REG-6": "user partitioning of tables is a later issue",
    "REG-8": "no rows given: X-SPK2-20 is the case made of it",
    "REG-10": "compaction is a later issue",
    "REG-12": "compaction is a later issue",
    "REG-14": "no rows given: X-REG-14 is the case made of it",
    "REG-16": "unknown settings are an error: tests/model checks it",
    "REG-18": "a query on the peer's page; `hdr__deleted` is checked by the random histories",
    "FVT-4": "a default of a new column is not in the events: rows from before it hold NULL",
    "FVT-6": "expects that an update cannot create a row; semantics.md section 10 says it does: "
    "X-FVT-6 is the case with our rule",
    "SQM-3-absent-kept": "no rows given: X-SQM-3-kept and X-SQM-3-time are the cases made of it",
}
