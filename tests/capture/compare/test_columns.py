"""Which columns are compared, and what is said of the others."""

from __future__ import annotations

from polynya.capture.compare.digest import ComparedColumn, SkippedColumn, TextForm, layout_of
from polynya.model.types import BIGINT, INT, STRING, Decimal

ID = ComparedColumn("id", TextForm.WHOLE)
NAME = ComparedColumn("name", TextForm.TEXT)


def test_columns_of_both_sides_are_compared_in_the_order_of_the_source():
    layout = layout_of([ID, NAME], {"name": STRING, "id": BIGINT}, key=("id",))

    assert layout.columns == (("id", TextForm.WHOLE), ("name", TextForm.TEXT))
    assert layout.key == ("id",)
    assert layout.left_out == ()


def test_what_is_left_out_has_a_reason():
    source = [
        ID,
        NAME,
        ComparedColumn("age", TextForm.WHOLE),
        ComparedColumn("span", None, "no text"),
    ]
    current = {"id": INT, "name": STRING, "span": STRING, "gone": INT}

    layout = layout_of(source, current, key=("id",), masked={"name"})

    assert layout.columns == (("id", TextForm.WHOLE),)
    assert layout.left_out == (
        SkippedColumn("name", "it is masked"),
        SkippedColumn("age", "Current has no such column yet: no event has told it"),
        SkippedColumn("span", "no text"),
        SkippedColumn("gone", "the source has no such column any more"),
    )


def test_a_masked_key_compares_whole_rows():
    layout = layout_of([ID, NAME], {"id": STRING, "name": STRING}, key=("id",), masked={"id"})

    assert layout.key == ()
    assert layout.columns == (("name", TextForm.TEXT),)


def test_types_without_a_common_text_are_not_compared():
    layout = layout_of([ID, NAME], {"id": STRING, "name": STRING}, key=())

    assert [one.column for one in layout.left_out] == ["id"]


def test_decimals_hold_numbers_and_those_without_a_scale_whole_ones():
    columns = [ComparedColumn("n", TextForm.NUMBER), ComparedColumn("w", TextForm.WHOLE)]

    held = layout_of(columns, {"n": Decimal(9, 2), "w": Decimal(20, 0)}, key=())
    other = layout_of(columns, {"n": STRING, "w": Decimal(20, 1)}, key=())

    assert [name for name, _ in held.columns] == ["n", "w"]
    assert [name for name, _ in other.columns] == ["n"]
