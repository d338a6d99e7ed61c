"""`items[]` in expressions: what becomes a column, which array it is of, what is refused."""

from __future__ import annotations

import pytest

from polynya.model.errors import ConfigError
from polynya.transform.expressions import path_of
from polynya.transform.mapping import array_of, columns_read, flattened


@pytest.mark.parametrize(
    ("text", "flat", "paths"),
    [
        ("items[].sku", "`|element1`.`sku`", ["items[]"]),
        ("items[ ]", "`|element1`", ["items[]"]),
        ("user.items[].sku", "`|element1`.`sku`", ["user.items[]"]),
        ("a.`b c`[].order[].x + 1", "`|element2`.`x` + 1", ["a.b c[].order[]"]),
        ("grid[][]", "`|element2`", ["grid[][]"]),
        ("ordinal(items[])", "`|ordinal1`", ["items[]"]),
        ("ORDINAL( items[].parts[] ) * 2", "`|ordinal2` * 2", ["items[].parts[]"]),
        ("concat(a[].b, a[].c)", "concat(`|element1`.`b`, `|element1`.`c`)", ["a[]"]),
        ("concat('items[]', name)", "concat('items[]', name)", []),
        ("items[0].sku", "items[0].sku", []),
        ("items[].tags[1]", "`|element1`.`tags`[1]", ["items[]"]),
    ],
)
def test_an_element_is_a_column(text: str, flat: str, paths: list[str]) -> None:
    found = flattened(text)
    assert found.text == flat
    assert [str(path) for path in found.paths] == paths


@pytest.mark.parametrize("text", ["items[0].parts[]", "f(x)[].y", "[]", "ordinal(items[].sku)"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        flattened(text, "task.yml:1:2")
    assert caught.value.code == "POLYNYA-EXP-008"
    assert caught.value.where == "task.yml:1:2"


def test_the_columns_that_an_expression_reads() -> None:
    assert columns_read("concat(user.items[].sku, name, ordinal(user.items[]))") == {"user", "name"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("user", ("user",)),
        ("(user.id)", ("user", "id")),
        ("a.b.c.d.e.f", ("a", "b", "c", "d", "e", "f")),
        ("`a b`.c", ("a b", "c")),
        ("user.id + 1", None),
        ("items[0]", None),
        ("upper(a)", None),
        ("'text'", None),
    ],
)
def test_what_only_names_a_column_or_a_field(text: str, path: tuple[str, ...] | None) -> None:
    assert path_of(text) == path


def test_one_array_makes_rows_and_the_arrays_in_its_elements() -> None:
    texts = ["orders[].id", "orders[].lines[].sku", "name"]
    found = array_of([(text, flattened(text)) for text in texts])
    assert str(found) == "orders[].lines[]"


def test_two_arrays_are_refused_with_both_places() -> None:
    texts = {"one.yml:3": "items[].sku", "one.yml:5": "tags[]"}
    with pytest.raises(ConfigError, match=r"`tags\[\]` .* than `items\[\]` at one.yml:3") as caught:
        array_of([(place, flattened(text)) for place, text in texts.items()])
    assert (caught.value.code, caught.value.where) == ("POLYNYA-MAP-001", "one.yml:5")
