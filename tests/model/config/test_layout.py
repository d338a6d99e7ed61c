"""Terms of a layout: read, written, and refused with a way out."""

from __future__ import annotations

import re

import pytest

from polynya.model.config.layout import PartitionTerm, SortTerm, parse_partition, parse_sort
from polynya.model.types import parse_type


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("country", PartitionTerm("identity", "country")),
        (" identity( country ) ", PartitionTerm("identity", "country")),
        ("day(created_at)", PartitionTerm("day", "created_at")),
        ("HOUR(at)", PartitionTerm("hour", "at")),
        ("bucket(16, id)", PartitionTerm("bucket", "id", 16)),
        ("truncate(4,code)", PartitionTerm("truncate", "code", 4)),
        ("day(`a, (b)`)", PartitionTerm("day", "a, (b)")),
        ("`one``two`", PartitionTerm("identity", "one`two")),
        ("größe", PartitionTerm("identity", "größe")),
    ],
)
def test_a_partition_term_is_read_and_written(text: str, term: PartitionTerm) -> None:
    assert parse_partition(text) == term
    assert parse_partition(str(term)) == term


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("days(at)", "did you mean `day(at)`?"),
        ("dya(at)", "did you mean `day(at)`?"),
        ("lower(name)", "there are identity, bucket"),
        ("bucket(id)", "write `bucket(N, column)`"),
        ("bucket(0, id)", "from 1 to 10,000"),
        ("bucket(99999, id)", "from 1 to 10,000"),
        ("bucket(16, id, more)", "put an unusual name in back-quotes"),
        ("day()", "a column name is empty"),
        ("", "a column name is empty"),
        ("hdr__partition", "reserved"),
        ("day(a) or 1=1", "put an unusual name in back-quotes"),
        ("a\nb", "control character"),
        ("x" * 500, "longer than"),
    ],
)
def test_what_is_no_partition_term_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_partition(text)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("name", SortTerm(("name",))),
        ("name asc", SortTerm(("name",))),
        ("created_at DESC", SortTerm(("created_at",), "desc")),
        ("desc", SortTerm(("desc",))),
        ("`a desc`", SortTerm(("a desc",))),
        ("zorder(a, `b, c`)", SortTerm(("a", "b, c"), "zorder")),
    ],
)
def test_a_sort_term_is_read_and_written(text: str, term: SortTerm) -> None:
    assert parse_sort(text) == term
    assert parse_sort(str(term)) == term


@pytest.mark.parametrize("text", ["zorder(a)", "zorder(a, a)", "hilbert(a, b)", "a, b"])
def test_what_is_no_sort_term_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"zorder|back-quotes"):
        parse_sort(text)


@pytest.mark.parametrize(
    ("term", "kind", "fits"),
    [
        ("day(x)", "timestamp", True),
        ("day(x)", "date", True),
        ("hour(x)", "date", False),
        ("day(x)", "string", False),
        ("x", "double", False),
        ("x", "decimal(10,2)", True),
        ("bucket(4, x)", "boolean", False),
        ("bucket(4, x)", "decimal(10,2)", True),
        ("truncate(4, x)", "timestamp", False),
        ("x", "struct<a:int>", False),
        ("x", "array<int>", False),
    ],
)
def test_types_decide_which_transforms_are_for_a_column(term: str, kind: str, fits: bool) -> None:
    refusal = parse_partition(term).refusal(parse_type(kind))

    assert (refusal is None) == fits
