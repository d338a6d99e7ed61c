"""`plan` and `apply` before anything was run: no Java, nothing written without a yes."""

from __future__ import annotations

import io
import json
import sys

from polynya.cli.main import main
from tests.projects import BANK, PROJECT, USERS, write_project


class Terminal(io.StringIO):
    """Somebody who can be asked."""

    def isatty(self) -> bool:
        return True


def test_a_new_project_is_all_new(tmp_path, capsys):
    project = str(write_project(tmp_path, users=USERS, bank=BANK))

    assert main(["plan", "-p", project]) == 3
    shown = capsys.readouterr().out
    assert "new dataset: shop_internal.users_internal" in shown
    assert "new task bank" in shown

    assert main(["plan", "-p", project, "--json"]) == 3
    dataset, task, whole = [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert (dataset["dataset"], dataset["changes"][0]["kind"]) == ("shop.users", "new_dataset")
    assert (task["type"], task["task"]) == ("plan.task", "bank")
    # The fingerprint is that of the files, for whoever applies exactly this plan.
    assert len(whole.pop("fingerprint")) == 64
    assert whole == {
        "type": "plan", "changes": True, "datasets": 1, "to_decide": 0, "destructive": 0,
    }  # fmt: skip
    assert not (tmp_path / "warehouse").exists()


def test_a_task_that_is_to_move_to_another_cluster_is_a_change(tmp_path, capsys):
    shared = PROJECT.replace("./warehouse}", "./warehouse, config: ./pushed}") + "cluster: main\n"
    project = write_project(tmp_path, project=shared, bank=BANK)
    assert main(["config", "push", "-p", str(project)]) == 0
    capsys.readouterr()

    write_project(tmp_path, project=shared, bank=f"{BANK}cluster: big\n")

    assert main(["plan", "-p", str(project)]) == 3
    assert "task bank moves from cluster main to big" in capsys.readouterr().out
    assert main(["plan", "-p", str(project), "--json"]) == 3
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    moved = [one for one in said if one.get("kind") == "moved_task"]
    assert [(one["task"], one["from"], one["to"]) for one in moved] == [("bank", "main", "big")]


def test_apply_asks_and_takes_no_for_an_answer(tmp_path, capsys, monkeypatch):
    project = str(write_project(tmp_path, users=USERS))

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["apply", "-p", project]) == 2
    assert "use `--yes`" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert main(["apply", "-p", project]) == 0
    assert "nothing was done" in capsys.readouterr().err
    assert not (tmp_path / "warehouse").exists()


def test_a_project_with_an_error_has_no_plan(tmp_path, capsys):
    project = write_project(tmp_path, users=USERS, bank=BANK.replace("debezium", "debezum"))

    assert main(["plan", "-p", str(project)]) == 2
    assert "did you mean `debezium`?" in capsys.readouterr().err


def test_an_empty_project_changes_nothing(tmp_path, capsys):
    assert main(["plan", "-p", str(write_project(tmp_path))]) == 0
    assert "nothing changes" in capsys.readouterr().out
