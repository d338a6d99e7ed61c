"""The YAML and JSON reader: values, positions, and limits that hostile files meet early."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from polynya.model.documents import yaml
from polynya.model.documents.references import interpolate, plain_value
from polynya.model.documents.yaml import (
    MAX_FILE_BYTES,
    dotted,
    position_of,
    read_document,
    read_text,
)
from polynya.model.errors import ConfigError


def value_of(text, file="x.yml"):
    node, errors = read_document(text, file)
    assert not errors
    return plain_value(node, {})[0]


def test_values_are_those_of_yaml_1_2():
    text = "a: [1, -2, 2.5, 1e3, 0x1F, 0o17, true, no, ~, null, '1', \"x\\n\"]\nb:\n"

    expected = [1, -2, 2.5, 1000.0, 31, 15, True, "no", None, None, "1", "x\n"]

    assert value_of(text) == {"a": expected, "b": None}


def test_json_with_tabs_and_escaped_pairs_is_read():
    assert value_of('{\n\t"a": "\\ud83d\\ude00"\n}', "x.json") == {"a": "😀"}


def test_places_are_those_of_keys_and_items():
    node, _ = read_document("a:\n  - x\n  - b: 1\n    c: 2\n", "x.yml")

    place = position_of(node, ("a", 1, "c"))

    assert (place.line, place.column) == (4, 5)
    assert dotted(("a", 1, "c")) == "a[1].c"
    # A path that goes on where the document ends points at what there is.
    assert position_of(node, ("a", 1, "c", "nothing", 3)) == place


def test_duplicate_keys_are_reported_with_the_first_line():
    node, errors = read_document("a: 1\nb: 2\na: 3\n", "x.yml")

    assert [str(error) for error in errors] == [
        "x.yml:3:1: duplicate key `a`; it is already on line 1; remove one of them"
    ]
    assert plain_value(node, {})[0] == {"a": 1, "b": 2}


def test_tags_construct_nothing():
    _, errors = read_document("a: !!python/object/apply:os.system ['true']\n", "x.yml")

    assert [error.code for error in errors] == ["POLYNYA-CFG-003"]
    assert "is not allowed" in errors[0].message


@pytest.mark.parametrize("text", ["1: x", "[a]: x", "null: x", "true: x"])
def test_keys_that_are_no_text_are_reported(text):
    _, errors = read_document(text, "x.yml")

    assert [error.message for error in errors] == ["a key must be text; put it in quotes"]


def bomb():
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for above, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{','.join([f'*{above}'] * 9)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (bomb(), "POLYNYA-CFG-004", "expand to more than"),
        ("a: &a [*a]", "POLYNYA-CFG-003", "unknown anchor"),
        ("[" * 100_000, "POLYNYA-CFG-004", "nested deeper"),
        ("{" * 100_000, "POLYNYA-CFG-004", "nested deeper"),
        ("- " * 100_000, "POLYNYA-CFG-004", "nested deeper"),
        ("? " * 100_000, "POLYNYA-CFG-004", "nested deeper"),
        ("[" + "a," * 400_000, "POLYNYA-CFG-004", "more than 20000 values"),
        ("- {a: 1}\n" * 50_000, "POLYNYA-CFG-004", "more than 20000 values"),
        ("a: 1\n---\nb: 2", "POLYNYA-CFG-003", "more than one document"),
        ("a: [1", "POLYNYA-CFG-003", "not valid YAML"),
        ("a: \0", "POLYNYA-CFG-003", "not valid YAML"),
        ("a: 'x", "POLYNYA-CFG-003", "not valid YAML"),
    ],
)
def test_hostile_documents_end_in_a_clear_error_and_soon(text, code, message):
    started = time.monotonic()

    with pytest.raises(ConfigError) as caught:
        read_document(text, "x.yml")

    assert caught.value.code == code
    assert message in caught.value.message
    # Measured below 1 s on 2 cores; ruamel alone takes minutes for 10^5 brackets.
    assert time.monotonic() - started < 15


def test_thousands_of_duplicate_keys_stop_early():
    with pytest.raises(ConfigError, match="duplicate key"):
        read_document("a: 1\n" * 5000, "x.yml")


def test_a_file_that_is_too_large_or_no_text_is_an_error_with_its_place(tmp_path):
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    latin = tmp_path / "latin.yml"
    latin.write_bytes(b"a: 1\nb: \xe9\n")

    with pytest.raises(ConfigError, match="larger than 1000000 bytes"):
        read_text(large, "large.yml")
    with pytest.raises(ConfigError, match=r"latin\.yml:2:4: the file is not UTF-8"):
        read_text(latin, "latin.yml")
    with pytest.raises(ConfigError, match="cannot read the file"):
        read_text(tmp_path / "missing.yml", "missing.yml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${env:A}", "1"),
        ("x${env:A}y${env:A}", "x1y1"),
        ("${env:EMPTY}", ""),
        ("${env:EMPTY:-d}", "d"),
        ("${env:NONE:-}", ""),
        ("${env:NONE:-a:-b}", "a:-b"),
        ("$${env:A}", "${env:A}"),
        ("$A {A} ${A}", "$A {A} ${A}"),
    ],
)
def test_environment_variables_fill_values(text, expected):
    assert interpolate(text, {"A": "1", "EMPTY": ""}) == (expected, [])


def test_what_a_variable_holds_is_not_read_again():
    """A variable cannot add references, keys or structure."""
    node, _ = read_document("a: '${env:A}'", "x.yml")

    assert plain_value(node, {"A": "${env:B}\nb: 2", "B": "x"})[0] == {"a": "${env:B}\nb: 2"}


@pytest.mark.parametrize("text", ["${env:NONE}", "${secret:x}", "${env:1A}", "${env:}"])
def test_references_that_cannot_be_resolved_are_named(text):
    value, messages = interpolate(text, {})

    assert value == text
    assert len(messages) == 1


ROOT = Path(__file__).resolve().parents[3]
VALUES = (
    "a", "b c", "1", '"x: y"', "'it''s'", "http://x:8/y?z#f", "a#b", "x #c", "${env:A}", "*.json",
    "&n v", "*n", "~", "", "null", "[a, b]", '[a, "b", {c: d}]', '{a: 1, "b":2}', "{}", "a: b",
    "- c", "[a", "{a:b}", "[? a : b]", "@x", "a, b", "!!str 1", "! x", '"\\u00e9\\/"', "é😀",
    '"\\ud83d\\ude00"', "a\n      goes on", '"two\n      lines"', "|\n      a\n\n      b",
    ">-\n\n      a", "|+\n        \n      b", "|2\n       c", "# d", "a\tb", "\u2028", "\ufeff",
)  # fmt: skip
LINES = (
    "{0}: {1}", "{0}:\n    - {1}\n    - {2}", "{0}:\n  {1}: {2}", "{0}:\n- {1}\n-\n", "'{0}': {1}",
    "? {1}\n: {2}", "# {1}", "---", "{0}:\n    - x: {1}\n      y: {2}", "{0}: {{a: {1}, b: [{2}]}}",
)  # fmt: skip


@pytest.fixture
def by_ruamel(monkeypatch):
    """Reads a text as ruamel alone would."""

    def read(text):
        with monkeypatch.context() as patch:
            patch.setattr(yaml, "_FAST", None)
            try:
                return read_document(text, "x.yml")
            except ConfigError as error:
                return error.render()

    return read


def test_the_fast_reader_reads_what_ruamel_reads(by_ruamel):
    draw = random.Random(7)

    def document():
        lines = (draw.choice(LINES) for _ in range(draw.randint(1, 5)))
        values = (draw.choices(VALUES, k=2) for _ in range(5))
        names = iter("abcde")
        return "\n".join(
            line.format(next(names), *two) for line, two in zip(lines, values, strict=False)
        )

    texts = [document() for _ in range(1500)]
    read = {text: yaml._plain_document(text) for text in texts}
    plain = {text: node for text, node in read.items() if node is not None}

    assert len(plain) > 100
    assert {text for text, node in plain.items() if by_ruamel(text) != (node, [])} == set()


def test_the_fast_reader_reads_the_documents_of_the_examples(by_ruamel):
    texts = [path.read_text() for path in (ROOT / "examples").rglob("*.yml")]

    read = [yaml._plain_document(text) for text in texts]

    assert None not in read
    assert [(node, []) for node in read] == [by_ruamel(text) for text in texts]


def test_without_libyaml_ruamel_reads(monkeypatch):
    monkeypatch.setattr(yaml, "_FAST", None)

    assert value_of("a: [1, b]\n") == {"a": [1, "b"]}
