"""`polynya test` on the real engine: what passes, what fails and how it says so."""

from __future__ import annotations

import json

from polynya.cli.main import main
from tests.lab.events import upsert
from tests.oracle.emit import debezium_lines
from tests.projects import BANK

#: Wrong in each way: a value, a row that is not there, one too many, a column.
WRONG = """\
apiVersion: polynya/v1
kind: tests
tests:
  - name: wrong rows
    task: bank
    dataset: accounts
    clock: 2026-05-01T00:00:00Z
    given:
      - events: %s
      - lines: "what is this"
    expect:
      current:
        - {id: 1, owner: Anna}
        - {id: 2, owner: Ben}
        - {id: 9}
      changes:
        - {ownr: Ben}
      history:
        - {id: 1, hdr__store: CHANGES}
        - {id: 2}
        - {id: 3}
      quarantined:
        - {file: bank/0002.jsonl, rule: bad_json, raw: what is this}
"""
EVENTS = (
    "["
    + ", ".join(
        json.dumps(line)
        for line in debezium_lines(
            [upsert(1, 1, owner="Ana"), upsert(2, 2, owner="Ben"), upsert(3, 3, owner="Eve")],
            "w",
            "accounts",
            ["id"],
        )
    )
    + "]"
)


def test_tests_of_users_pass_fail_readably_and_leave_the_project_alone(
    spark, tmp_path, capsys, monkeypatch
) -> None:
    # The one session of this process; a command of its own starts one in a temporary warehouse.
    monkeypatch.setattr("polynya.engine.session.start_spark", lambda project: spark)
    assert main(["init", str(tmp_path / "shop")]) == 0
    project = tmp_path / "shop"
    (project / "tasks/bank.yml").write_text(BANK)
    landed = sorted((project / "landing").rglob("*"))

    assert main(["test", "-p", str(project), "users"]) == 0
    assert "2 passed, 0 failed" in capsys.readouterr().out

    (project / "tests/wrong.yml").write_text(WRONG % EVENTS)
    assert main(["test", "-p", str(project), "-k", "WRONG"]) == 1
    said = capsys.readouterr().out
    assert 'owner: expected "Anna", found "Ana"' in said
    assert '    missing     {"id": 9}  (tests/wrong.yml:15:11)' in said
    assert '    unexpected  {"id": 3, "owner": "Eve"}' in said
    assert "there is no column `ownr`; did you mean `owner`?" in said
    assert "history" not in said
    assert "quarantined" not in said

    wrong_type = BANK.replace("{history: true}", "{history: true, columns: {id: date}}")
    (project / "tasks/bank.yml").write_text(wrong_type)
    assert main(["test", "-p", str(project), "bank", "--json"]) == 1
    result = json.loads(capsys.readouterr().out.splitlines()[1])
    assert (result["type"], result["ok"], result["where"]) == ("test", False, "tests/wrong.yml:4:5")

    assert sorted((project / "landing").rglob("*")) == landed
    assert not (project / "warehouse").exists()


def test_broken_files_and_empty_choices_are_wrong_usage(tmp_path, capsys) -> None:
    project = tmp_path / "shop"
    assert main(["init", str(project)]) == 0

    assert main(["test", "-p", str(project), "user"]) == 2
    assert "did you mean `users`?" in capsys.readouterr().err
    assert main(["test", "-p", str(project), "-k", "nothing like it"]) == 2
    file = project / "tests/users.yml"
    file.write_text(file.read_text().replace("current: []", "current: {}"))
    assert main(["test", "-p", str(project)]) == 2
    assert "--> tests/users.yml:" in capsys.readouterr().err
    assert main(["validate", "-p", str(project)]) == 2

    file.unlink()
    assert main(["test", "-p", str(project)]) == 0
    assert "there are no tests to run" in capsys.readouterr().err
