"""`polynya functions`: what it shows, and what it says of a wrong name."""

from __future__ import annotations

import json

import pytest

from polynya.cli.main import main
from polynya.transform.functions.table import FUNCTIONS


def test_one_function_is_shown_with_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "SUBSTRING"]) == 0

    shown = capsys.readouterr().out
    assert "polynya.substring(text, start[, end])" in shown
    assert "polynya.substring('Hello', -3, -2) gives \"ll\"" in shown


def test_all_are_listed_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "--json"]) == 0

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    listed = [line for line in lines if line["type"] == "function"]
    assert [line["name"] for line in listed] == list(FUNCTIONS)


def test_a_wrong_name_gets_a_proposal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "substrng"]) == 2

    assert "did you mean `substring`?" in capsys.readouterr().err


def test_snippets_have_places_for_what_a_call_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "--snippets"]) == 0

    snippets = json.loads(capsys.readouterr().out)
    split = snippets["split(text, 'delimiter')"]
    assert split["body"] == "split(${1:text}, ${2:'delimiter'})"
