"""Tables of a thousand columns and of forty levels, with names of every case and shape."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.lab import Lab, put

_COLUMNS = 1000
_LEVELS = 40


def _deep(value: Any) -> Any:
    """The value below structs and arrays in turn, each with a dotted and a mixed-case name."""
    for level in range(_LEVELS // 2, 0, -1):
        value = {f"Level.{level}": [value], f"sibLing {level}": level}
    return value


def _path() -> str:
    steps = [f"`Level.{level}`[0]" for level in range(1, _LEVELS // 2 + 1)]
    return ".".join(["`De.Ep`", *steps])


def test_a_deep_table_goes_through_copy_apply_and_views(lab: Lab) -> None:
    """A field that is new forty levels below is added there, and older versions have it NULL."""
    users = lab.feed()

    def row(seq: int, **leaf: Any) -> dict[str, Any]:
        return put(1, seq, **{"De.Ep": _deep(leaf), "MiXed": seq})

    users.apply(row(1, Leaf=1))
    users.copy(row(3, More=True), row(2, Leaf=2), row(4, Leaf="no number"))
    looks = ("MiXed", f"{_path()}.Leaf", f"{_path()}.More")
    live = users.history(*looks), users.current(*looks)
    users.apply()

    assert (users.history(*looks), users.current(*looks)) == live
    assert live[1] == [(3, None, True)]
    assert [version[:3] for version in live[0]] == [(1, 1, None), (2, 2, None), (3, None, True)]
    assert [rule for _, _, rule in users.rejected()] == ["type_mismatch"]
    assert users.columns() == ["id", "De.Ep", "MiXed"]


@pytest.mark.slow
def test_a_wide_table_goes_through_copy_apply_and_views(lab: Lab) -> None:
    """Minutes, not seconds: Spark analyses and compiles a plan of a thousand columns each time."""
    users = lab.feed()
    names = [f"Col.{number} Ä" if number % 2 else f"cOl{number}" for number in range(_COLUMNS)]
    wide = {name: number for number, name in enumerate(names)}

    users.apply(put(1, 1, **wide))
    users.copy(put(1, 2, **wide | {"cOl998": -1}), put(2, 1, **wide | {"cOl0": "no number"}))

    assert users.columns() == ["id", *names]
    assert users.current("*") == [(1, *range(998), -1, 999)]
    assert users.history("`Col.999 Ä`", "cOl998") == [
        (999, -1, "U", 2.0, None),
        (999, 998, "I", 1.0, 2.0),
    ]
    assert [rule for _, _, rule in users.rejected()] == ["type_mismatch"]
