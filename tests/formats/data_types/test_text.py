"""JSON and CSV, where the values tell the types."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from polynya.formats.batch import DatasetBatch
from tests.formats.data_types.page import A_UUID, LARGE, PAGE, Sample, check
from tests.formats.helpers import a_dataset, json_lines, read


def _json(values: list[str]) -> DatasetBatch:
    records = (f'{{"id":1,"n":1,"x":{value}}}'.encode() for value in values)
    return read(json_lines(*records))


def test_json() -> None:
    small = ["9223372036854775807", "-9223372036854775808", "null"]
    samples: dict[str, list[Sample]] = {
        "whole number up to 64 bits": [(small, "bigint", [2**63 - 1, -(2**63), None])],
        "whole number beyond 64 bits": [
            (["18446744073709551615"], "decimal(38,0)", [Decimal(2**64 - 1)])
        ],
        "number with fraction or exponent": [
            (["0.1", "-1.5e300", "-0.0"], "double", [0.1, -1.5e300, -0.0])
        ],
        "number with more digits than a double": [
            ([str(LARGE[0]), "1.5"], "decimal(38,18)", [LARGE[0], Decimal("1.5" + "0" * 17)])
        ],
        "`true`, `false`": [(["true", "false"], "boolean", [True, False])],
        "text, also of a time or UUID": [
            ([f'"{A_UUID}"', '"2026-01-01"', '""'], "string", [str(A_UUID), "2026-01-01", ""])
        ],
        "object": [(['{"a":1}', "{}", "null"], "struct<a:bigint>", [{"a": 1}, {"a": None}, None])],
        "array": [
            (["[1,null]", "[]", "[null]", "null"], "array<bigint>", [[1, None], [], [None], None])
        ],
        "`null` alone": [(["null"], "void", [None])],
    }
    check("JSON", samples, _json)


def test_csv() -> None:
    def reader(values: list[str]) -> DatasetBatch:
        rows = "".join(f"1,1,{value}\n" for value in values)
        return read(f"id,n,x\n{rows}".encode(), a_dataset("csv"))

    samples: dict[str, list[Sample]] = {
        "whole number up to 64 bits": [
            (["-9223372036854775808", ""], "bigint", [-(2**63), None]),
        ],
        "number that a double spells the same": [(["0.1", "-2"], "double", [0.1, -2.0])],
        "number with leading zeros or more digits": [
            (["007", str(LARGE[0])], "string", ["007", str(LARGE[0])])
        ],
        "`true`, `false`": [(["true", "false"], "boolean", [True, False])],
        "other text": [(["2026-01-01", "NaN"], "string", ["2026-01-01", "NaN"])],
        "empty alone": [(["", '""'], "void", [None, None])],
    }
    check("CSV", samples, reader)


def test_a_line_that_promises_another_type_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = PAGE.read_text().replace("| other text | `string` |", "| other text | `binary` |")
    assert wrong != PAGE.read_text()
    (tmp_path / "wrong.md").write_text(wrong)
    monkeypatch.setattr("tests.formats.data_types.page.PAGE", tmp_path / "wrong.md")

    with pytest.raises(AssertionError, match="other text"):
        test_csv()
