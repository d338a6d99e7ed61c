"""Nothing of an export is dropped without a line: keys at random places are each reported."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.qlik.importing import imported
from tests.qlik.exports import FILES, REPLICATE, write_export, write_replicate

DOCUMENTS = {path: yaml.safe_load(text) for path, text in FILES.items()}


def mappings(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [one for item in inner for one in mappings(item)]
    return [value, *found] if isinstance(value, dict) else found


def planted(document: Any, number: int, name: str, value: Any) -> Any:
    changed = copy.deepcopy(document)
    places = mappings(changed)
    places[number % len(places)][name] = value
    return changed


names = st.from_regex(r"\Axq[a-z]{2,6}\Z")
values = st.sampled_from([1, True, "text", None, [], {"inner": 1}, ["a", {"b": 2}]])


places = st.sampled_from(sorted(FILES)), st.integers(0, 500), names, values


@settings(max_examples=4, deadline=None)
@given(*places)
def test_a_key_that_nobody_knows_is_named(tmp_path_factory, path, number, name, value):
    check(tmp_path_factory, path, number, name, value)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(*places)
def test_a_key_at_any_place_is_named(tmp_path_factory, path, number, name, value):
    check(tmp_path_factory, path, number, name, value)


def check(tmp_path_factory, path, number, name, value):
    folder = tmp_path_factory.mktemp("export")
    document = planted(DOCUMENTS[path], number, name, value)
    text = json.dumps(document) if path.endswith(".json") else yaml.safe_dump(document)

    report = imported(write_export(folder, **{path: text})).report

    named = [line for line in report.lines if name in line.what]
    assert named, (path, name, value)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 500), names, values)
def test_a_key_of_replicate_that_nobody_knows_is_named(tmp_path_factory, number, name, value):
    file = tmp_path_factory.mktemp("export") / "hr.json"

    report = imported(write_replicate(file, planted(REPLICATE, number, name, value))).report

    assert [line for line in report.lines if name in line.what]


def test_every_setting_of_the_fixtures_has_a_line_or_only_identifies(tmp_path):
    report = imported(write_export(tmp_path)).report

    lines = {line.where for line in report.lines}
    assert "qtcp_tasks/orders/task.yaml:6:23" in lines
    assert not [line for line in report.lines if line.code == "POLYNYA-QLK-010"]


def test_an_unused_value_is_a_loss_the_check_of_the_check(tmp_path, monkeypatch):
    """A translator that forgets a setting is found: the setting is a loss, not silence."""
    import polynya.qlik.landing as landing

    monkeypatch.setattr(landing, "_defaults", lambda root: {})

    report = imported(write_export(tmp_path)).report

    forgotten = [line for line in report.lines if line.what.endswith("historyEnabled")]
    assert [line.verdict for line in forgotten] == ["lost"]


def scalars(value: Any) -> list[tuple[Any, Any]]:
    """Each value that is no mapping and no list, as its container and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, inner in items:
        found += scalars(inner) if isinstance(inner, dict | list) else [(value, key)]
    return found


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(DOCUMENTS)), st.integers(0, 500), values)
def test_a_value_of_another_type_stops_nothing(tmp_path_factory, path, number, value):
    folder = tmp_path_factory.mktemp("export")
    document = copy.deepcopy(DOCUMENTS[path])
    places = scalars(document)
    container, key = places[number % len(places)]
    container[key] = value
    text = json.dumps(document) if path.endswith(".json") else yaml.safe_dump(document)

    made = imported(write_export(folder, **{path: text}))

    assert made.report.lines
    assert made.files()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 500), values)
def test_a_value_of_another_type_in_replicate_stops_nothing(tmp_path_factory, number, value):
    document = copy.deepcopy(REPLICATE)
    places = scalars(document)
    container, key = places[number % len(places)]
    container[key] = value

    made = imported(write_replicate(tmp_path_factory.mktemp("export") / "hr.json", document))

    assert made.report.lines
