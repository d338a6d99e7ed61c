"""The arguments of commands, and what excludes what."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.cli.commands import build_app
from polynya.cli.remote import request_of
from polynya.model.errors import ConfigError
from polynya.server.operations.verbs import (
    VERBS,
    ReloadParameters,
    RunParameters,
    arguments,
    exclude_each_other,
)

LEAST: dict[str, Any] = {
    "task": "shop",
    "tasks": ["shop"],
    "dataset": "users",
    "unit": "shop",
    "node": "n1",
    "nodes": 3,
    "automation": "nightly",
}


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_parameter_is_one_of_the_command(name: str) -> None:
    """What the API makes of a request, the command reads as the same request."""
    verb = VERBS[name]
    fields = verb.parameters.model_fields
    required = {field: LEAST[field] for field in fields if field in LEAST}
    given = verb.parameters.model_validate(required)
    words = arguments(verb, given)
    assert request_of(build_app(words[:1]), words) == (verb, given)


def test_values_are_one_word_with_their_option_and_names_come_last() -> None:
    given = ReloadParameters(task="shop", dataset="a b", as_of="2026-01-02T03:04:05Z")
    assert arguments(VERBS["reload"], given) == [
        "reload",
        "--dataset=a b",
        "--mode=compare_and_apply_with_deleted_rows",
        "--from=landing",
        "--as-of=2026-01-02T03:04:05+00:00",
        "--",
        "shop",
    ]


def test_a_command_line_becomes_the_same_request() -> None:
    words = ["run", "shop", "--once", "--apply", "always"]
    verb, given = request_of(build_app(words[:1]), words)
    assert (verb.name, given) == ("run", RunParameters(tasks=["shop"], once=True, apply="always"))


@pytest.mark.parametrize("line", ["init", "run --owner me", "task stop shop --cluster c"])
def test_what_the_api_does_not_take_is_refused(line: str) -> None:
    words = line.split()
    with pytest.raises(ConfigError, match="cannot be given to a server"):
        request_of(build_app(words[:1]), words)


@pytest.mark.parametrize(
    ("one", "its", "other", "others", "excluded"),
    [
        ("run", ("shop",), "run", ("shop",), True),
        ("run", ("shop",), "run", ("crm",), False),
        ("run", ("sh*",), "run", ("shop",), True),
        ("run", (), "run", ("shop",), True),
        ("run", ("shop",), "reload", ("shop",), False),
        ("migrate", (), "reload", ("shop",), True),
        ("migrate", (), "task-stop", ("shop",), False),
        ("validate", (), "validate", (), False),
    ],
)
def test_what_excludes_what(
    one: str, its: tuple[str, ...], other: str, others: tuple[str, ...], *, excluded: bool
) -> None:
    assert exclude_each_other(VERBS[one], its, VERBS[other], others) is excluded
    assert exclude_each_other(VERBS[other], others, VERBS[one], its) is excluded
