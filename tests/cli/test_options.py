"""Global flags: the same before and after the command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from polynya.cli.options import GlobalOptions, as_typed, flags, split_options
from polynya.model.errors import ConfigError


@pytest.mark.parametrize(
    "arguments",
    [
        ["--project", "shop", "-t", "prod", "--json", "validate"],
        ["validate", "--json", "-p", "shop", "--target=prod"],
        ["--json", "validate", "--project-dir=shop", "-t", "prod"],
    ],
)
def test_flags_are_accepted_before_and_after_the_command(monkeypatch, arguments):
    monkeypatch.delenv("NO_COLOR", raising=False)

    options, rest = split_options(arguments)

    assert options == GlobalOptions(project=Path("shop"), target="prod", json=True)
    assert rest == ["validate"]


def test_all_switches_are_understood(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    switches = [flag for flag in flags() if flag.value is None]

    options, rest = split_options([flag.names[0] for flag in switches])

    assert all(getattr(options, flag.field) for flag in switches)
    assert rest == []


def test_what_comes_after_two_dashes_belongs_to_the_command():
    options, rest = split_options(["query", "--", "--json"])

    assert not options.json
    assert rest == ["query", "--", "--json"]


def test_the_environment_can_switch_colours_off(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    assert split_options([])[0].no_color


@pytest.mark.parametrize("arguments", [["-p"], ["--project="], ["--target"], ["--json=maybe"]])
def test_a_flag_without_its_value_is_wrong_usage(arguments):
    with pytest.raises(ConfigError) as caught:
        split_options(arguments)

    assert (caught.value.code, caught.value.exit_code) == ("POLYNYA-CLI-001", 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--project", "", "run"], "the value of `--project` is empty"),
        (["run", "--target="], "the value of `--target` is empty"),
        (["-p", "  "], "the value of `-p` is empty"),
        (["run", ""], "the value after `run` is empty"),
        (["query", "--file="], "the value of `--file` is empty"),
        ([""], "the command is empty"),
    ],
)
def test_an_empty_value_is_told_as_such(arguments, said):
    with pytest.raises(ConfigError) as caught:
        split_options(arguments)

    assert (caught.value.code, caught.value.message) == ("POLYNYA-CLI-001", said)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_was_typed_is_utf8_whatever_the_locale(monkeypatch, encoding):
    typed = "SELECT 'Zo\u00eb \u03b1'"
    read = typed.encode().decode(encoding, "surrogateescape")
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode(encoding, "surrogateescape"))

    assert as_typed(read) == typed


def test_what_is_no_utf8_is_what_the_locale_says(monkeypatch):
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("latin-1"))

    assert as_typed("Zo\u00eb") == "Zo\u00eb"
