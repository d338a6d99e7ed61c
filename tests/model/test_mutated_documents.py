"""Two thousand broken configurations: each error has a code, a place, a fix, and our own words."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polynya.model.checks import task_problems
from polynya.model.config.target import Project, choose_target
from polynya.model.config.task import StorageTask
from polynya.model.config.task_tests import TaskTests
from polynya.model.documents.files import DocumentFile, parse_file
from polynya.model.documents.problems import located
from polynya.model.documents.yaml import ListNode, MapNode, Node, ScalarNode, TextPosition
from polynya.model.error_catalogue.codes import ERROR_PAGES
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.loader import load_project
from tests.projects import USERS, write_project

MUTATIONS = 2000
#: Mutations of the text of files, which go through the reader of YAML too.
TEXTS = 60

TASK: dict[str, Any] = {
    "apiVersion": "polynya/v1",
    "kind": "storage",
    "name": "orders",
    "schema": "shop",
    "prefix": "x_",
    "internal_schema": "shop_internal",
    "landing": {"path": "orders", "format": "csv", "delimiter": ";", "header": True, "quote": "'",
                "skip_lines": 1, "encoding": "utf-8", "null_value": "NULL"},
    "defaults": {"history": True, "tombstone_retention": "30d", "changes_retention": "keep"},
    "apply": {"max_pending_rows": 10, "max_pending_bytes": "64MB", "max_pending_age": "1m",
              "min_fraction": 0.5},
    "batch": {"max_rows": 10, "max_bytes": 1000, "freshness": "5s"},
    "views": {"history": "__h", "headers": True},
    "datasets": [
        {"name": "orders", "keys": ["id"], "sequence_by": ["seq"], "path": "*.csv",
         "timestamp": "at", "apply_as_deletes": "op = 'D'", "except_columns": ["op"],
         "ignore_null_updates": ["note"], "mode": "merge", "delete_mode": "soft",
         "columns": {"amount": "decimal(12,2)", "at": "timestamp",
                     "price": {"type": "decimal", "precision": 9, "scale": 2}},
         "schema_evolution": {"add_column": {"root": "apply", "struct": "stop"},
                              "truncate": "suspend"},
         "on_bad_record": "suspend"},
        {"name": "prices", "keys": ["id"], "sequence_by": ["seq"], "path": "*/*",
         "extracts": {"each": "folder", "marker": "_OK", "time_in_name": "%Y", "absent": "keep",
                      "check_columns": ["price"]}},
    ],
}  # fmt: skip
PROJECT_FILE: dict[str, Any] = {
    "apiVersion": "polynya/v1",
    "kind": "project",
    "name": "shop",
    "defaults": {"history": True},
    "targets": {
        "local": {"landing": "./landing", "warehouse": "./warehouse",
                  "catalog": {"type": "jdbc", "uri": "jdbc:sqlite:x.db",
                              "properties": {"clients": "3"}}},
        "dev": {"landing": "s3://acme/in", "warehouse": "s3://acme/lake", "catalog": "glue",
                "config": "s3://acme/config", "aws": {"region": "eu-central-1",
                "kms_key": "arn:aws:kms:eu-central-1:123456789012:key/0-1", "endpoint": "http://127.0.0.1:5000"}},
    },
}  # fmt: skip
TESTS: dict[str, Any] = {
    "apiVersion": "polynya/v1",
    "kind": "tests",
    "tests": [
        {"name": "holds", "task": "orders", "dataset": "orders", "clock": "2026-01-01T00:00:00Z",
         "given": [{"events": [{"id": 1}], "load": True, "file": "a.json"}, {"lines": "a"}],
         "expect": {"current": [{"id": 1}], "quarantined": []}},
    ],
}  # fmt: skip
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "storage": (StorageTask, TASK),
    "project": (Project, PROJECT_FILE),
    "tests": (TaskTests, TESTS),
}
INSERTS = ("{", "]", '"', ": ", "- ", "\t", "&a ", "!!x ", "%", "*a ", "\n", "? ", "name: a\n")
VALUES = [
    None, True, False, 0, -1, 3, 1.5, 10**30, float("inf"), "", "x", "30", "é b", "a;b", "../x",
    "9a", "1y", "decimal(40,2)", "decimal(10", "varchar(20)", "number", "struct<a:int", "void",
    "s3://",
    "hdr__x", "x" * 5000, "\x00", [], [1], [None], ["a", "a"], [["a"]], [{}], {}, {"a": 1},
    {"a": None, "b)": None}, {"type": "decimal"}, {"a": {"a": {"a": []}}}, "%Q", "2026-01-01",
]  # fmt: skip
#: How the validation library speaks, and what only programmers know.
FOREIGN = re.compile(
    r"pydantic|input should|valid (string|integer|number|boolean|dictionary|list|tuple)|tuple"
    r"|instance of|dataclass|field required|extra inputs|nonetype|timedelta|primitive|errors?\.py"
    r"|<class|traceback|unable to (parse|interpret)|input_value|literal\b|keyword argument"
    r"|should (be|have|match)|validation|\bdict\b|\bstr\b|(?-i:\bNone\b)",
    re.IGNORECASE,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document."""
    yield path
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, one in inner:
        yield from places(one, (*path, key))


def mutated(document: Any, chance: random.Random) -> Any:
    """The document with one or two things broken in it."""
    broken = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 2))):
        *path, last = chance.choice([place for place in places(broken) if place])
        holder = broken
        for part in path:
            holder = holder[part]
        deed = chance.choice(("replace", "replace", "replace", "drop", "rename", "add", "wrap"))
        if deed == "drop":
            del holder[last]
        elif deed == "rename" and isinstance(holder, dict):
            cut = chance.randrange(len(last) + 1)
            holder[f"{last[:cut]}{chance.choice('zé .')}{last[cut:]}"] = holder.pop(last)
        elif deed == "add" and isinstance(holder, dict):
            holder[chance.choice(("keyz", "a b", "decimal", "2)"))] = chance.choice(VALUES)
        elif deed == "wrap":
            holder[last] = chance.choice(([holder[last]], {"value": holder[last]}))
        else:
            holder[last] = copy.deepcopy(chance.choice(VALUES))
    return broken


def node(value: Any, line: int = 1) -> Node:
    """The document as the reader of YAML gives it; where its parts stand is made up."""
    place = TextPosition(line, 1)
    if isinstance(value, dict):
        entries = {
            key: (TextPosition(line + n, 3), node(one, line + n))
            for n, (key, one) in enumerate(value.items())
        }
        return MapNode(entries, place, 1)
    if isinstance(value, list):
        return ListNode(tuple(node(one, line) for one in value), place, 1)
    return ScalarNode(value, place)


def errors_of(kind: str, value: Any) -> list[ConfigError]:
    """What is wrong with a document of this kind."""
    model, _ = KINDS[kind]
    errors: list[ConfigError] = []
    file = DocumentFile("tasks/t.yml", node(value), value, sound=True)
    parsed = parse_file(file, model, kind, errors)
    if isinstance(parsed, StorageTask):
        errors += located(task_problems(parsed), file.document, file.shown_as)
    if isinstance(parsed, Project):
        for target in parsed.targets:
            try:
                choose_target(parsed, target, Path("/srv/shop"), "polynya.yml")
            except ConfigError as error:
                errors.append(error)
    return errors


def faults(error: ConfigError) -> list[str]:
    """What is wrong with an error itself."""
    text = error.render()
    found = [] if error.code in ERROR_PAGES else [f"the code {error.code} has no page"]
    found += [] if error.where else ["it has no place"]
    found += [] if error.fix else ["it has no fix"]
    # What the file itself says is quoted.
    own = re.sub(r'`[^`]*`|"[^"]*"', "", text)
    found += [f"it says {foreign[0]!r}"] if (foreign := FOREIGN.search(own)) else []
    found += ["it is long"] if len(text) > 3000 else []
    return [f"{what}:\n{text}" for what in found]


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_documents_are_right_before_they_are_broken(kind: str) -> None:
    assert [error.render() for error in errors_of(kind, KINDS[kind][1])] == []


def test_two_thousand_broken_configurations_are_told_in_our_own_words() -> None:
    chance = random.Random(14)
    wrong, broken = [], 0
    for number in range(MUTATIONS):
        kind = ("storage", "storage", "project", "tests")[number % 4]
        document = mutated(KINDS[kind][1], chance)
        errors = errors_of(kind, document)
        broken += bool(errors)
        wrong += [fault for error in errors for fault in faults(error)]

    assert broken > MUTATIONS * 0.7
    assert not wrong, f"{len(wrong)} of them, such as\n" + "\n\n".join(dict.fromkeys(wrong[:12]))


def test_broken_text_is_told_in_our_own_words(tmp_path: Path) -> None:
    chance = random.Random(14)
    wrong, broken = [], 0
    for number in range(TEXTS):
        text, cut = USERS, chance.randrange(len(USERS))
        text = text[:cut] + chance.choice(INSERTS) + text[cut:]
        folder = write_project(tmp_path / str(number), users=text)
        try:
            load_project(folder)
        except ConfigErrors as error:
            broken += 1
            wrong += [fault for one in error.errors for fault in faults(one)]

    assert broken > TEXTS * 0.5
    assert not wrong, "\n\n".join(dict.fromkeys(wrong))


def test_a_planted_fault_is_found() -> None:
    leaky = ConfigError("POLYNYA-CFG-009", "a: Input should be a valid tuple", where="t.yml:1:1")

    assert [fault.partition(":")[0] for fault in faults(leaky)] == [
        "it has no fix", "it says 'Input should'"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "message", "fix"),
    [
        ("{b: decimal(40,2)}", "needs quotes inside { }", 'quote it: `b: "decimal(40,2)"`'),
        ("{a: int, s: struct<x:int,y:map<int,int>>}", "needs quotes inside { }",
         '`s: "struct<x:int,y:map<int,int>>"`'),
        ("{b: varchar(20)}", "unknown type `varchar`", "write `string`"),
        ("{b: datetime}", "unknown type `datetime`", "write `timestamp`"),
        ("{b: number}", "unknown type `number`", "write `decimal(38,10)`"),
        ("{b: bigit}", "unknown type `bigit`", "did you mean `bigint`?"),
        ("{b: 3}", "`3` is not a type", "types: bigint"),
        ("{b: {type: decimal}}", "this mapping is not a type", "precision: 12, scale: 2}"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_one_error_with_what_to_write(
    tmp_path: Path, columns: str, message: str, fix: str
) -> None:
    folder = write_project(tmp_path, users=USERS + f"    columns: {columns}\n")

    with pytest.raises(ConfigErrors) as caught:
        load_project(folder)

    (error,) = caught.value.errors
    assert error.code == "POLYNYA-CFG-020"
    assert message in error.message
    assert fix in (error.fix or "")


def test_a_decimal_may_be_written_as_a_mapping(tmp_path: Path) -> None:
    both = "b: {type: decimal, precision: 12, scale: 2}, c: {type: decimal, precision: 9}"
    text = f"{USERS}    columns: {{{both}}}\n"

    project = load_project(write_project(tmp_path, users=text))

    types = next(project.datasets()).events.columns
    assert {name: str(kind) for name, kind in types.items()} == {
        "b": "decimal(12,2)",
        "c": "decimal(9,0)",
    }
    assert (
        json.loads(project.tasks[0].model_dump_json())["datasets"][0]["columns"]["b"]
        == "decimal(12,2)"
    )
