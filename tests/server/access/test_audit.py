"""The audit log: what is in it, and that a changed line is found."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from polynya.model.errors import DependencyError, OperationError
from polynya.server.access.audit import AuditEntry, AuditHead, AuditLog
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.server.access.served import ROLES, served

ENTRY = AuditEntry("ann@example.com", "token", "task.run", "POST", "/x", "10.0.0.1", 202)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of eight lines: each line is a write that waits for the disk."""
    monkeypatch.setattr("polynya.server.access.audit._LINES_OF_PART", 8)


def log_of(root: Path, lines: int = 0) -> AuditLog:
    log = AuditLog(LocalObjectStore(root), FakeClock())
    for _ in range(lines):
        log.write(ENTRY)
    return log


def parts(root: Path) -> list[Path]:
    return sorted((root / ".polynya" / "access" / "audit").iterdir())


def test_lines_are_chained_over_parts_and_paged_from_the_newest(tmp_path: Path):
    log = log_of(tmp_path, 12)

    assert log.verify().sequence == 12
    assert len(parts(tmp_path)) == 2
    page = log.page(None, 6)
    assert [page[0].sequence, page[-1].sequence] == [12, 7]
    assert [one.sequence for one in log.page(4, 100)] == [3, 2, 1]


def test_two_servers_keep_one_chain(tmp_path: Path):
    one, other = log_of(tmp_path), log_of(tmp_path)
    for _ in range(5):
        one.write(ENTRY)
        other.write(ENTRY)

    assert log_of(tmp_path).verify().sequence == 10


@pytest.mark.parametrize("fault", ["changed", "removed", "inserted", "swapped", "part"])
def test_a_planted_fault_is_found(tmp_path: Path, fault: str):
    log_of(tmp_path, 12)
    first = parts(tmp_path)[0]
    lines = first.read_bytes().splitlines(keepends=True)
    if fault == "part":
        first.unlink()
    else:
        if fault == "changed":
            lines[5] = lines[5].replace(b"ann@", b"eve@")
        elif fault == "removed":
            del lines[5]
        elif fault == "inserted":
            lines.insert(5, lines[5])
        else:
            lines[5], lines[6] = lines[6], lines[5]
        first.write_bytes(b"".join(lines))

    with pytest.raises(OperationError) as found:
        log_of(tmp_path).verify()

    assert found.value.code == "POLYNYA-ACC-060"


def test_a_cut_off_end_is_found_against_a_head_that_was_noted(tmp_path: Path):
    log = log_of(tmp_path, 6)
    noted = log.verify()
    [part] = parts(tmp_path)
    part.write_bytes(b"".join(part.read_bytes().splitlines(keepends=True)[:-2]))

    assert log_of(tmp_path).verify().sequence == 4
    with pytest.raises(OperationError):
        log_of(tmp_path).verify(noted)
    assert log_of(tmp_path).verify(AuditHead()).sequence == 4


def test_retention_removes_whole_parts_and_the_chain_begins_at_its_anchor(tmp_path: Path):
    clock = FakeClock()
    log = AuditLog(LocalObjectStore(tmp_path), clock)
    for number in range(20):
        clock.advance(timedelta(days=1) if number == 10 else timedelta(seconds=1))
        log.write(ENTRY)

    assert log.retain(timedelta(hours=12)) == 8
    assert log.verify().sequence == 20
    assert log.page(None, 500)[-1].sequence == 9


def test_changes_and_refusals_are_lines_and_reads_are_none(tmp_path: Path):
    server = served(tmp_path)
    vera = server.token("vera@example.com")
    server.client.get("/api/v1/project", headers=vera)
    server.client.get("/api/v1/access", headers=vera)
    server.client.get("/api/v1/project?code=secret")
    made = server.client.post(
        "/api/v1/access/tokens", json={"actions": ["project.view"], "note": "a note"}, headers=vera
    )

    lines = list(reversed(server.control.audit.page(None, 10)))

    assert [(one.who, one.action, one.method, one.status, one.code) for one in lines] == [
        ("vera@example.com", "access.view", "GET", 403, "POLYNYA-ACC-002"),
        ("anonymous", "project.view", "GET", 401, "POLYNYA-ACC-001"),
        ("vera@example.com", "token.own", "POST", 201, ""),
    ]
    text = "".join(one.text() for one in lines)
    for secret in ("code=secret", "a note", made.json()["token"], vera["Authorization"][7:]):
        assert secret not in text


def test_a_change_whose_line_cannot_be_written_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    server = served(tmp_path)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    vera = server.token("vera@example.com")
    monkeypatch.setattr(LocalObjectStore, "put_if_unchanged", full)
    monkeypatch.setattr(server.control.audit, "_try", full)
    answer = server.client.post(
        "/api/v1/access/tokens", json={"actions": ["project.view"]}, headers=vera
    )

    assert answer.status_code == 503
    assert answer.json()["code"] == "POLYNYA-ACC-061"
    assert "polynya_" not in answer.text


def test_hostile_texts_of_a_request_stay_on_their_line(tmp_path: Path):
    log = log_of(tmp_path)
    log.write(AuditEntry("a\nb", "none", "", "GET", "/x\x1b[2J\r\n{}", "::1", 401))

    [part] = parts(tmp_path)
    [line] = part.read_text().splitlines()
    assert json.loads(line)["path"] == "/x?[2J??{}"


def test_a_log_that_cannot_be_written_is_an_error_by_name(tmp_path: Path):
    class Full(LocalObjectStore):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            raise PermissionError("read-only")

    with pytest.raises(DependencyError) as found:
        AuditLog(Full(tmp_path), FakeClock()).write(ENTRY)

    assert found.value.code == "POLYNYA-ACC-061"


def test_roles_are_changed_by_a_patch_of_an_owner(tmp_path: Path):
    server = served(tmp_path)
    ann, max_ = server.session("ann@example.com"), server.session("max@example.com")
    was = server.client.get("/api/v1/access", headers=ann)
    text = was.json()["text"].replace("vera@example.com", "vera@example.com, zoe@example.com")
    change = {"json": {"text": text}}

    stale = server.client.put("/api/v1/access", headers={**ann, "If-Match": '"old"'}, **change)
    other = server.client.put(
        "/api/v1/access", headers={**max_, "If-Match": was.headers["etag"]}, **change
    )
    done = server.client.put(
        "/api/v1/access", headers={**ann, "If-Match": was.headers["etag"]}, **change
    )
    lone = server.client.put(
        "/api/v1/access",
        headers={
            **ann,
            "If-Match": server.client.get("/api/v1/access", headers=ann).headers["etag"],
        },
        json={"text": text.replace("owner: [ann@example.com]", "owner: []")},
    )

    assert [one.status_code for one in (stale, other, done, lone)] == [412, 403, 200, 422]
    assert "+  can_view: [vera@example.com, zoe@example.com]" in done.json()["diff"]
    assert "zoe@example.com" in (tmp_path / "access.yml").read_text()
    assert ROLES.splitlines()[1] in (tmp_path / "access.yml").read_text()
