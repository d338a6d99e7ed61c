"""The table of the security suite names tests that exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.security.items import ITEMS, all_tests

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ITEMS)
def test_each_item_has_tests_that_exist(name: str) -> None:
    assert ITEMS[name].tests
    for one in ITEMS[name].tests:
        file, _, test = one.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert any(known.startswith("test_") for known in found), one
        assert not test or test in found, one


def test_every_file_of_the_suite_is_in_the_table() -> None:
    here = {f"tests/security/{one.name}" for one in Path(__file__).parent.glob("test_*.py")}
    named = {test.partition("::")[0] for item in ITEMS.values() for test in item.tests}

    assert here - named == {"tests/security/test_items.py"}
    assert all_tests()[0] == "tests/security"
