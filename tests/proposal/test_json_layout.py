"""Where the records of JSON files are, out of their text."""

from __future__ import annotations

import json

import pytest

from polynya.proposal.json_layout import NotJsonError, json_layout, sample_document

ROWS = [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize(
    ("document", "path", "count"),
    [
        (ROWS, "$", 2),
        ({"results": ROWS}, "$.results", 2),
        ({"type": "FeatureCollection", "features": [{"type": "Feature"}]}, "$.features", 1),
        ({"meta": {"page": 1}, "data": {"orders": ROWS, "next": None}}, "$.data.orders", 2),
        ({"warnings": [{"a": 1}], "items": ROWS, "total": 2}, "$.items", 2),
        ({"people": ROWS}, "$.people", 2),
        ({"id": 7, "address": {"city": "Leon"}}, "$", 1),
        ({"id": 7, "tags": ["a", "b"], "results": []}, "$", 1),
    ],
)
def test_records_of_a_document(document: object, path: str, count: int) -> None:
    layout = json_layout(json.dumps(document, indent=1))

    assert layout.record_path is not None
    assert (layout.record_path.value, len(layout.records)) == (path, count)


def test_fields_beside_the_records_are_named_in_the_reason() -> None:
    layout = json_layout(json.dumps({"count": 2, "next": "…", "results": ROWS}))

    assert layout.record_path is not None
    assert layout.others == ("count", "next")
    assert "2 other fields are not read" in layout.record_path.reason


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1}\n{"id": 2}\n',
        '{"id": 1}\n{"id": \n',
        '{"id": 1, "lines": [{"sku": "a"}, {"sku": "b"}]}',
        '\ufeff\n{"id": 1}\n',
    ],
)
def test_lines_need_no_path(text: str) -> None:
    assert json_layout(text).record_path is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "empty array"),
        ("[1, 2]", "other values than objects"),
        ("7", "single value"),
        ('{\n"a": 1\n}\n{\n"a": ', "not JSON at character"),
        ('[{"a": 1},]', "not JSON at character"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_why_a_file_has_no_records_that_are_read(text: str, why: str) -> None:
    with pytest.raises(NotJsonError, match=why):
        json_layout(text)


def test_records_over_several_lines_each() -> None:
    layout = json_layout('{\n"a": 1\n}\n{\n"a": 2\n}\n')

    assert layout.record_path is not None
    assert (layout.record_path.value, layout.records) == ("$", ({"a": 1}, {"a": 2}))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('[\n{"id": 1},\n{"id": 2},\n{"id": "cut o', "$"),
        ('{\n"id": 1}\n{\n"id": 2}\n{\n"id": "cu', "$"),
        (
            '{"type": "FeatureCollection", "crs": {"a": [1]},\n"features": [{"id": 1}, {"id',
            "$.features",
        ),
    ],
)
def test_a_document_that_was_read_in_part_gives_its_whole_records(text: str, path: str) -> None:
    layout = json_layout(text, is_whole=False)

    assert layout.record_path is not None
    assert layout.record_path.value == path
    again = json_layout(sample_document(layout).decode())
    assert again.records == layout.records
