"""The command line from outside: exit codes, help, and what each command says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import polynya
from polynya.cli import commands as commands_module
from polynya.cli.commands import COMMANDS, Command, build_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.main import main
from polynya.cli.options import split_options
from polynya.model import errors
from tests.projects import BANK, USERS, write_project

RUNTIME = Path(polynya.__file__).parent.parent
REFERENCE = RUNTIME.parent / "docs" / "reference" / "cli.md"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(RUNTIME)}


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def shop(tmp_path):
    return str(write_project(tmp_path, users=USERS, bank=BANK))


def test_validate_says_what_it_saw(shop, capsys):
    assert main(["validate", "--project", shop]) == 0

    assert capsys.readouterr().out == (
        "valid: project shop, target local, 2 tasks, 1 declared dataset\n"
    )


def test_validate_as_json_is_stable(shop, capsys):
    assert main(["--json", "validate", "-p", shop]) == 0

    version, result = json_lines(capsys.readouterr().out)
    assert version["type"] == "version"
    assert result == {
        "type": "validation",
        "valid": True,
        "errors": 0,
        "project": "shop",
        "target": "local",
        "tasks": ["bank", "users"],
        "datasets": 1,
        "tests": 0,
        "warnings": [],
    }


def test_validate_shows_every_error_with_its_place(tmp_path, capsys):
    text = USERS.replace("operation = 'DELETE'", "reflect('x')")
    write_project(tmp_path, users=text, broken=BANK.replace("format: debezium", "formt: x"))

    assert main(["validate", "-p", str(tmp_path)]) == 2

    shown = capsys.readouterr()
    assert "--> tasks/broken.yml:5:23" in shown.err
    assert "did you mean `format`?" in shown.err
    assert "--> tasks/users.yml:10:5" in shown.err
    assert "function `reflect` is not allowed" in shown.err
    assert shown.out == "3 errors; nothing was written\n"


def test_validate_as_json_gives_one_line_per_error(tmp_path, capsys):
    write_project(tmp_path, broken="kind: [")

    assert main(["validate", "-p", str(tmp_path), "--json"]) == 2

    _, error, result = json_lines(capsys.readouterr().out)
    assert (error["type"], error["code"]) == ("error", "POLYNYA-CFG-003")
    assert error["where"] == "tasks/broken.yml:1:8"
    assert (result["valid"], result["errors"]) == (False, 1)


def test_without_a_project_the_error_says_what_to_do(tmp_path, capsys):
    assert main(["validate", "-p", str(tmp_path)]) == 2

    assert "polynya init DIR" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["validat"], 'Did you mean "validate"?'),
        (["validate", "--jsn"], "did you mean `--json`?"),
        (["--projct=x", "validate"], "did you mean `--project`?"),
        (["run", "--onc"], "Did you mean --once?"),
        (["explain", "CFG-070"], "did you mean `POLYNYA-CFG-0"),
        (["schema", "exprt"], 'Did you mean "export"?'),
        (["validate", "extra"], "extra"),
    ],
)
def test_wrong_usage_is_exit_code_2_with_a_hint(arguments, message, capsys):
    assert main(arguments) == 2

    shown = capsys.readouterr()
    assert "error[POLYNYA-CLI-001]" in shown.err
    assert message in shown.err
    assert shown.out == ""


def test_wrong_usage_as_json_is_an_error_line(capsys):
    assert main(["validat", "--json"]) == 2

    assert json_lines(capsys.readouterr().out)[-1]["code"] == "POLYNYA-CLI-001"


def a_command_that(monkeypatch, action):
    """Replace all commands by one called `act`."""
    module = type(sys)("polynya_test_command")
    module.act = action
    monkeypatch.setitem(sys.modules, "polynya_test_command", module)
    command = Command("act", "polynya_test_command:act", "Act.")
    monkeypatch.setattr(commands_module, "COMMANDS", (command,))


def raising(error):
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.OperationError("X", "x"), 1),
        (errors.DataError("X", "x"), 1),
        (errors.ConfigError("X", "x"), 2),
        (errors.DependencyError("X", "x"), 4),
        (errors.ConflictError("X", "x"), 5),
        (errors.InternalError("X", "x"), 70),
        (ZeroDivisionError("division by zero"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_error_has_its_exit_code(monkeypatch, capsys, error, code):
    a_command_that(monkeypatch, raising(error))

    assert main(["act"]) == code
    assert code in set(ExitCode)
    assert "Traceback" not in capsys.readouterr().err


def test_a_bug_is_short_and_shows_its_traceback_with_debug_only(monkeypatch, capsys):
    a_command_that(monkeypatch, raising(ZeroDivisionError("by zero")))

    main(["act"])
    short = capsys.readouterr().err
    main(["act", "--debug"])
    long = capsys.readouterr().err

    assert "error[POLYNYA-BUG-001]: polynya itself failed: ZeroDivisionError: by zero" in short
    assert len(short.splitlines()) <= 4
    assert "Traceback" in long
    assert "raising" in long or "act" in long


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (3, 3), (ExitCode.FAILED, 1)])
def test_what_a_command_returns_is_the_exit_code(monkeypatch, returned, code):
    def act() -> int | None:
        return returned

    a_command_that(monkeypatch, act)

    assert main(["act"]) == code


def test_help_lists_every_command_and_the_flags_for_all(capsys):
    assert main(["--help"]) == 0

    shown = capsys.readouterr().out
    assert all(command.name in shown for command in COMMANDS)
    assert "--project" in shown
    assert "--json" in shown


def test_no_arguments_show_the_help(capsys):
    assert main([]) == 0

    assert "Usage: polynya COMMAND" in capsys.readouterr().out


def test_every_command_has_an_example_that_is_understood(capsys):
    """In the reference, which is the help of all commands."""
    sections = re.split(r"^#{3,4} polynya ", REFERENCE.read_text(), flags=re.MULTILINE)[1:]
    without = []
    for section in sections:
        name = section.partition("\n")[0]
        example = re.search(rf"^For example: `(polynya {name}.*)`\.$", section, re.MULTILINE)
        if example is None:
            without.append(name)
            continue
        _, tokens = split_options(shlex.split(example[1])[1:])
        build_app().parse_args(tokens, exit_on_error=False, print_error=False)

    assert len(sections) > 15
    assert without == [
        "cluster", "task", "connection", "landing", "dbt", "quarantine", "rules",
        "notification", "mirror", "flow", "automation", "mart", "dataset", "config", "catalog",
        "access", "schema",
    ]  # fmt: skip
    assert main(["run", "--help"]) == 0
    assert "For example: `polynya run" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["migrate", "apply"])
def test_a_command_is_called_by_its_new_and_by_its_former_name(name, shop, capsys):
    """A project without tables: there is something to do, and nobody to ask."""
    assert main([name, "-p", shop]) == 2

    shown = capsys.readouterr()
    assert "[polynya migrate]" in shown.out
    assert "nobody is there to ask" in shown.err


def test_explain_prints_the_page_of_a_code(capsys):
    assert main(["explain", "cfg-007"]) == 0

    assert capsys.readouterr().out.startswith("POLYNYA-CFG-007: unknown key\n\n")


def test_explain_prints_all_parts_of_an_error(capsys):
    assert main(["explain", "QUA-001"]) == 0

    assert capsys.readouterr().out.splitlines()[:6] == [
        "POLYNYA-QUA-001: no such quarantined record",
        "",
        "  message: no quarantined record has the id ID",
        "  state: nothing was changed",
        "  fix: run `polynya quarantine list` to see the ids",
        "",
    ]
    assert main(["explain", "QUA-001", "--json"]) == 0
    assert list(json_lines(capsys.readouterr().out)[-1]) == [
        "type", "code", "title", "text", "message", "state", "fix",
    ]  # fmt: skip


def test_explain_lists_all_codes(capsys):
    assert main(["explain", "--json"]) == 0

    codes = [line.get("code") for line in json_lines(capsys.readouterr().out)]
    assert "POLYNYA-EXP-004" in codes


def run_python(*arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=ENVIRONMENT,
    )


HEAVY = ("pyspark", "pyarrow", "py4j", "pyiceberg", "numpy", "pandas", "ruamel")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["validate"], ["--json", "validate"], ["explain"]]
)
def test_light_commands_load_no_engine(shop, arguments):
    """Neither Spark nor Arrow: they take seconds, and `validate` runs in editors and hooks."""
    program = (
        "import sys; from polynya.cli.main import main;"
        f"code = main({[*arguments, '-p', shop]!r});"
        f"sys.exit(code or len([m for m in {HEAVY!r} if m in sys.modules]) * 100)"
    )

    done = run_python("-c", program)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("modules", "unneeded"),
    [
        (
            "polynya.engine.session, polynya.lake.read.query",
            ("pyiceberg", "sqlalchemy", "boto3", "polynya.formats.batch", "polynya.lake.apply"),
        ),
        (
            "polynya.cli.query, polynya.engine.answers, polynya.engine.reader",
            ("pyspark", "sqlalchemy", "boto3", "pg8000", "fastapi", "polynya.lake.apply"),
        ),
        (
            "polynya.cli.query, polynya.engine.answers, polynya.lake.read.query",
            ("pyiceberg", "polynya.derived", "polynya.lake.table.dataset", "fastapi", "jinja2"),
        ),
        (
            "polynya.cli.status, polynya.engine.commands.captures, polynya.engine.inventory",
            ("pyspark", "sqlglot", "duckdb", "boto3", "pg8000", "fastapi", "polynya.lake.apply"),
        ),
        (
            "polynya.cli.status, polynya.engine.inventory, polynya.engine.maintenance_status",
            ("pyspark", "pyiceberg", "sqlglot", "duckdb", "boto3", "ruamel", "polynya.lake.apply"),
        ),
        (
            "polynya.cli.run, polynya.engine.idle",
            ("pyspark", "pyiceberg", "duckdb", "boto3", "polynya.lake.apply", "polynya.capture"),
        ),
        (
            "polynya.engine.collaborators, polynya.engine.runner",
            ("pyiceberg", "sqlalchemy", "boto3"),
        ),
    ],
)
def test_commands_load_no_more_than_they_need(modules, unneeded):
    """Libraries that a command does not use were up to a third of its start."""
    program = f"import sys, {modules}; print([m for m in {unneeded!r} if m in sys.modules])"

    done = run_python("-c", program)

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_python_m_polynya_is_the_command(shop):
    done = run_python("-m", "polynya", "validate", "-p", shop)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_is_no_error():
    program = f"{sys.executable} -m polynya explain --json | head -n 1"

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=ENVIRONMENT,
    )

    assert done.stderr == ""
    assert json.loads(done.stdout)["type"] == "version"


def test_usage_lines_of_the_reference_name_the_command_only():
    usage = [line for line in REFERENCE.read_text().splitlines() if line.startswith("polynya ")]

    assert len(usage) > 50
    assert [line for line in usage if " -m " in line] == []
