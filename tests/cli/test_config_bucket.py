"""`polynya config`: two people and a hand in the bucket, on a folder and on S3."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from polynya.cli.main import main
from polynya.model.config.aws import AwsAccess
from polynya.model.names import S3Location
from polynya.store.places import store_at
from tests.aws import REGION, aws_server
from tests.projects import PROJECT, USERS, write_project


@pytest.fixture(scope="module")
def endpoint():
    with aws_server("acme-config") as address:
        yield address


@pytest.fixture(params=["folder", "s3"])
def place(request, tmp_path):
    """The place as a project writes it, and a store that stands for a hand in it."""
    if request.param == "folder":
        bucket = tmp_path / "bucket"
        return f"config: {bucket}", store_at(bucket, AwsAccess())
    address = request.getfixturevalue("endpoint")
    prefix = f"{tmp_path.name}/shop"
    access = AwsAccess(region=REGION, endpoint=address)
    return (
        f'config: "s3://acme-config/{prefix}", aws: {{region: {REGION}, endpoint: "{address}"}}',
        store_at(S3Location("acme-config", prefix), access),
    )


@pytest.fixture
def said(capsys):
    def run(folder: Path, *words: str):
        code = main(["config", *words, "--json", "--project", str(folder)])
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()][1:]
        return code, lines

    return run


def copy_of(folder: Path, place: str) -> Path:
    project = PROJECT.replace("./warehouse}", f"./warehouse, {place}}}")
    return write_project(folder, project=project, users=USERS)


def test_two_people_and_a_hand_in_the_bucket(place, said, tmp_path) -> None:
    setting, hand = place
    ana, ben = copy_of(tmp_path / "ana", setting), copy_of(tmp_path / "ben", setting)
    assert said(ana, "status")[1][0]["code"] == "POLYNYA-BKT-006"

    code, [pushed] = said(ana, "push")
    assert (code, pushed["changed"], pushed["files"]) == (
        0,
        True,
        ["polynya.yml", "tasks/users.yml"],
    )
    assert said(ben, "push")[1][0]["changed"] is False

    by_hand = USERS.replace("keys: [userId]", "keys: [userId, region]")
    hand.put("current/tasks/users.yml", by_hand.encode())
    code, [state] = said(ana, "status")
    assert (code, state["edited"], state["broken"]) == (0, {"tasks/users.yml": "changed"}, [])
    assert state["revision"] == pushed["revision"]
    code, [difference, total] = said(ana, "diff")
    assert (code, total["changes"], total["edited"]) == (3, 1, ["tasks/users.yml"])
    assert "-    keys: [userId, region]\n+    keys: [userId]" in difference["diff"]

    # Ben does not lose it unseen, and brings it home beside a change of his own.
    write_project(ben, project=(ben / "polynya.yml").read_text() + "# ben\n")
    code, [refused] = said(ben, "push")
    assert (code, refused["code"]) == (5, "POLYNYA-BKT-002")
    assert "tasks/users.yml" in refused["message"]
    code, [written, _] = said(ben, "pull")
    assert (code, written["file"]) == (0, "tasks/users.yml")
    assert (ben / "tasks/users.yml").read_text() == by_hand
    assert said(ben, "push")[0] == 0
    assert said(ben, "diff")[0] == 0

    # Ana has changed the same file: nothing of hers goes without her word.
    write_project(ana, project=(ana / "polynya.yml").read_text(), users=USERS + "# ana\n")
    code, [conflict] = said(ana, "pull")
    assert (code, conflict["code"]) == (5, "POLYNYA-BKT-003")
    assert (ana / "tasks/users.yml").read_text().endswith("# ana\n")
    assert said(ana, "pull", "--overwrite-local")[0] == 0
    assert said(ana, "diff")[0] == 0


def test_nothing_broken_is_pushed_and_what_is_broken_there_is_named(said, tmp_path) -> None:
    hand = store_at(tmp_path / "bucket", AwsAccess())
    folder = copy_of(tmp_path / "ana", f"config: {tmp_path / 'bucket'}")
    assert said(folder, "push")[0] == 0
    before = list(hand.list())

    write_project(folder, project=(folder / "polynya.yml").read_text(), bad="kind: [")
    code, errors = said(folder, "push")
    assert code == 2
    assert [error["where"].partition(":")[0] for error in errors] == ["tasks/bad.yml"]
    assert [(info.path, info.version) for info in hand.list()] == [
        (info.path, info.version) for info in before
    ]

    hand.put("current/tasks/users.yml", b"kind: storage\nname: \xff\n")
    hand.put("current/tasks/extra.yml", b"nme: x\n")
    hand.put("current/readme.txt", b"")
    hand.delete("current/polynya.yml")
    code, [state] = said(folder, "status")
    assert code == 2
    assert state["edited"] == {
        "polynya.yml": "deleted", "tasks/users.yml": "changed", "tasks/extra.yml": "added",
    }  # fmt: skip
    assert state["not_used"][0]["where"] == "current/readme.txt"
    hand.put("current/polynya.yml", (folder / "polynya.yml").read_bytes())
    broken = {error["where"] for error in said(folder, "status")[1][0]["broken"]}
    assert {"tasks/users.yml:2:7", "tasks/extra.yml:1:1"} <= broken


def test_the_commit_is_written_down_and_a_hostile_difference_stays_text(tmp_path, capsys) -> None:
    folder = copy_of(tmp_path / "ana", f"config: {tmp_path / 'bucket'}")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout

    main(["config", "push", "-p", str(folder)])
    (tmp_path / "bucket/current/tasks/users.yml").write_bytes(b"\x1b]0;owned\x07\r\xe2\x80\xae\xff")
    main(["config", "status", "-p", str(folder)])
    shown = capsys.readouterr().out
    assert f"commit {commit.strip()}\n" in shown
    main(["config", "diff", "-p", str(folder)])

    shown = capsys.readouterr().out
    assert "\\x1b]0;owned\\x07\\r\\u202e\\xff" in shown
    assert not {"\x1b", "\x07", "\r"} & set(shown)


def test_a_target_without_a_place_says_what_to_set(said, tmp_path) -> None:
    code, [error] = said(write_project(tmp_path, users=USERS), "push")

    assert (code, error["code"]) == (2, "POLYNYA-BKT-006")
    assert "targets.local.config" in error["fix"]
