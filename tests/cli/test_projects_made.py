"""`init`, `schema export` and `doctor`: what they write, and what they refuse."""

from __future__ import annotations

import json
import subprocess

import pytest

from polynya.cli import doctor
from polynya.cli.main import main
from polynya.cli.options import flags
from polynya.cli.reference import PAGES, outdated
from polynya.cli.reference import main as reference
from polynya.model.errors import DependencyError
from tests.projects import USERS, write_project


def test_a_new_project_is_valid_and_wired_for_editors(tmp_path, capsys):
    folder = tmp_path / "my shop"

    assert main(["init", str(folder)]) == 0
    assert main(["validate", "-p", str(folder)]) == 0

    assert "project my_shop, target local, 1 task, 1 declared dataset" in capsys.readouterr().out
    settings = json.loads((folder / ".vscode/settings.json").read_text())
    assert all((folder / schema).is_file() for schema in settings["yaml.schemas"])
    modeline = (folder / "tasks/users.yml").read_text().splitlines()[0]
    schema = modeline.removeprefix("# yaml-language-server: $schema=")
    assert (folder / "tasks" / schema).is_file()
    events = (folder / "landing/users/0001.json").read_text().splitlines()
    assert all(json.loads(event)["userId"] for event in events)


def test_init_takes_the_folder_from_the_global_flag_too(tmp_path):
    assert main(["init", "--project", str(tmp_path / "a"), "--name", "b", "--yes"]) == 0

    assert "name: b\n" in (tmp_path / "a/polynya.yml").read_text()


def test_init_never_overwrites_a_project(tmp_path, capsys):
    write_project(tmp_path, users=USERS)
    before = (tmp_path / "polynya.yml").read_text()

    assert main(["init", str(tmp_path)]) == 2

    assert "files are in the way: polynya.yml, tasks/users.yml" in capsys.readouterr().err
    assert (tmp_path / "polynya.yml").read_text() == before
    assert not (tmp_path / ".vscode").exists()


def test_init_leaves_files_of_a_repository_as_they_are(tmp_path, capsys):
    (tmp_path / ".gitignore").write_text("mine\n")

    assert main(["init", str(tmp_path)]) == 0

    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert "left as they were: .gitignore" in capsys.readouterr().err


def test_init_refuses_a_hostile_name(tmp_path, capsys):
    assert main(["init", str(tmp_path / "x"), "--name", "a; b"]) == 2

    assert "is not usable" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_schema_export_writes_and_checks(tmp_path, capsys):
    folder = str(tmp_path / "schema")

    assert main(["schema", "export", folder, "--check"]) == 1
    assert main(["schema", "export", folder]) == 0
    assert main(["schema", "export", "--check", folder]) == 0
    (tmp_path / "schema/task.v1.json").write_text("{}")
    capsys.readouterr()
    assert main(["schema", "export", folder, "--check"]) == 1

    assert "out of date or missing: task.v1.json" in capsys.readouterr().err


@pytest.fixture
def without_java(monkeypatch):
    """Java and jars are checked by the lake's own tests."""
    monkeypatch.setattr(doctor, "_java", lambda: doctor.Check("java", "ok", "17"))
    monkeypatch.setattr(doctor, "_jars", lambda _: doctor.Check("jars", "ok", "2"))


@pytest.mark.usefixtures("without_java")
def test_doctor_checks_each_thing_and_names_a_fix(tmp_path, capsys):
    write_project(tmp_path, users=USERS)

    assert main(["doctor", "-p", str(tmp_path), "--json"]) == 4

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    checks = {line["name"]: line for line in lines if line["type"] == "check"}
    assert {name: check["status"] for name, check in checks.items()} == {
        "java": "ok",
        "memory": "ok",
        "output": "ok",
        "jars": "ok",
        "project": "ok",
        "landing": "fail",
        "landing of users": "warn",
        "warehouse": "ok",
        "catalog": "ok",
    }
    assert checks["landing"]["fix"].startswith("mkdir -p ")
    assert lines[-1] == {"type": "doctor", "ok": False, "failed": 1}


@pytest.mark.usefixtures("without_java")
def test_doctor_is_content_with_a_new_project(tmp_path, capsys):
    main(["init", str(tmp_path / "shop")])

    assert main(["doctor", "-p", str(tmp_path / "shop")]) == 0

    assert capsys.readouterr().out.splitlines()[-1] == "everything is in place"


@pytest.mark.usefixtures("without_java")
def test_doctor_reports_a_broken_project_as_configuration(tmp_path, capsys):
    write_project(tmp_path, users="kind: [")
    (tmp_path / "landing").mkdir()

    assert main(["doctor", "-p", str(tmp_path)]) == 2

    assert "polynya validate" in capsys.readouterr().out


def test_doctor_reports_a_missing_java_with_its_fixes(tmp_path, capsys, monkeypatch):
    def no_java():
        raise DependencyError("POLYNYA-DEP-001", "no Java 17 or 21 was found", fix="install one")

    monkeypatch.setattr(doctor, "_java", no_java)
    monkeypatch.setattr(doctor, "_jars", lambda _: doctor.Check("jars", "ok", "2"))
    main(["init", str(tmp_path / "shop")])

    assert main(["doctor", "-p", str(tmp_path / "shop")]) == 4

    shown = capsys.readouterr().out
    assert "fail java" in shown
    assert "fix: install one" in shown


def test_reference_pages_are_written_and_checked(tmp_path):
    assert reference([str(tmp_path), "--check"]) == 1
    assert reference([str(tmp_path)]) == 0
    assert reference(["--check", str(tmp_path)]) == 0
    (tmp_path / "cli.md").write_text("stale")

    assert outdated(tmp_path) == ["cli.md"]
    assert reference([]) == 2


def test_the_task_reference_explains_every_key(tmp_path):
    page = PAGES["task.md"]()

    assert "| `sequence_by` | list of text |" in page
    assert "Default: `30d`." in page
    assert "`regexp_replace`" in PAGES["functions.md"]()


def test_git_leaves_data_alone_and_keeps_the_project(tmp_path):
    main(["init", str(tmp_path)])
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for file in ("warehouse/catalog.db", "landing/users/0002.json", ".polynya/agent/state.json",
                 ".polynya/bucket.json", "run.log", ".env"):  # fmt: skip
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("data")

    listed = ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-standard"]
    kept = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()

    assert set(kept) == {
        ".gitignore", ".vscode/extensions.json", ".vscode/settings.json", "landing/users/0001.json",
        "polynya.yml", "tasks/users.yml", "tests/users.yml", ".polynya/schema/project.v1.json",
        ".polynya/schema/connection.v1.json", ".polynya/schema/task.v1.json",
        ".polynya/schema/automation.v1.json", ".polynya/schema/notification.v1.json",
        ".polynya/schema/tests.v1.json", ".polynya/schema/bindings.v1.json",
        ".polynya/schema/access.v1.json",
    }  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_what_completes_commands(shell, tmp_path, capsys):
    assert main(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert "quarantine" in script
    assert "fail-on" in script
    if shell == "bash":
        file = tmp_path / "polynya.bash"
        asked = 'COMP_WORDS=(polynya quar); COMP_CWORD=1; _polynya; echo "${COMPREPLY[@]}"'
        file.write_text(f"{script}\n{asked}\n")
        done = subprocess.run(["bash", str(file)], check=True, capture_output=True, text=True)
        assert done.stdout == "quarantine\n"


_ASK = """source "$1"
COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_polynya; printf '%s\\n' "${COMPREPLY[@]}"
"""


def test_global_flags_complete_before_and_after_the_verb(tmp_path, capsys):
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "polynya.bash"
    script.write_text(capsys.readouterr().out)

    def offered(*words):
        asked = ["bash", "-c", _ASK, "bash", str(script), "polynya", *words]
        return set(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split())

    names = {name for flag in flags() for name in flag.names if name.startswith("--")}
    assert names <= offered("--")
    assert names | {"--once"} <= offered("run", "--")
    # A value is no verb, and a switch has none.
    assert offered("--project", "shop", "--json", "mir") == {"mirror"}
    assert offered("run", "--json", "--on") == {"--once"}
