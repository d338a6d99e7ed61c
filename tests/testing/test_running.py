"""`polynya test` on the real engine: what passes, what fails and how it says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

from polynya.cli.main import main
from tests.projects import BANK

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
#: Wrong in each way: a value, a row that is not there, one too many, a column, a failing task.
WRONG = """\
apiVersion: polynya/v1
kind: tests
tests:
  - name: wrong rows
    task: bank
    dataset: accounts
    clock: 2026-05-01T00:00:00Z
    given:
      - events:
          - {op: c, after: {id: 1, owner: Ana}, source: &s {schema: w, table: accounts, lsn: 1, ts_ms: 1}}
          - {op: c, after: {id: 2, owner: Ben}, source: {schema: w, table: accounts, lsn: 2, ts_ms: 2}}
          - {op: c, after: {id: 3, owner: Eve}, source: {schema: w, table: accounts, lsn: 3, ts_ms: 3}}
      - lines: "what is this"
    expect:
      current:
        - {id: 1, owner: Anna}
        - {id: 2, owner: Ben}
        - {id: 9}
      changes:
        - {hdr__inserted_timestamp: "2026-05-01T02:00:00+02:00"}
        - {ownr: Ben}
      quarantined:
        - {file: bank/0002.jsonl, rule: bad_json, raw: what is this}
"""


def blocks() -> dict[str, str]:
    """The files that the page shows, by their path."""
    return dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL))


def test_tests_of_users_pass_fail_readably_and_leave_the_project_alone(
    spark, tmp_path, capsys
) -> None:
    assert main(["init", str(tmp_path / "shop")]) == 0
    project = tmp_path / "shop"
    for name, text in blocks().items():
        (project / name).write_text(text)
    (project / "tasks/bank.yml").write_text(BANK)
    landed = sorted((project / "landing").rglob("*"))

    assert main(["test", "-p", str(project), "users", "orders"]) == 0
    assert "4 passed, 0 failed" in capsys.readouterr().out

    (project / "tests/wrong.yml").write_text(WRONG)
    assert main(["test", "-p", str(project), "-k", "WRONG"]) == 1
    said = capsys.readouterr().out
    assert 'owner: expected "Anna", found "Ana"' in said
    assert '    missing     {"id": 9}  (tests/wrong.yml:18:11)' in said
    assert '    unexpected  {"id": 3, "owner": "Eve"}' in said
    assert "there is no column `ownr`; did you mean `owner`?" in said
    assert "quarantined" not in said

    (project / "tests/wrong.yml").write_text(WRONG.replace("lsn: 1", "lsn: []"))
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
