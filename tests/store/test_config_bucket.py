"""The configuration bucket: pushes, edits by hand, kills, competitors; on every kind of store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polynya.model.bundle import MAX_FILES, content_hash, decode, encode, revision_of
from polynya.model.documents.yaml import MAX_FILE_BYTES
from polynya.model.errors import ConfigError, ConflictError, OperationError
from polynya.store import configuration as bucket_reader
from polynya.store.config_bucket import BucketSource, ConfigBucket, Origin
from polynya.store.object_store import ObjectStore
from polynya.testing.fakes import MemoryObjectStore

ME = Origin("ana@laptop", datetime(2026, 11, 22, 12, tzinfo=UTC))
PROJECT, USERS, ORDERS = "polynya.yml", "tasks/users.yml", "tasks/orders.yml"
ONE = {PROJECT: b"p", USERS: b"u1"}
TWO = {PROJECT: b"p", USERS: b"u2", ORDERS: b"o2"}


def push(store: ObjectStore, files: dict[str, bytes], **options):
    return ConfigBucket(store, "there").push(files, ME, **options)


def in_force(store: ObjectStore) -> dict[str, bytes]:
    return dict(BucketSource(store, "there").read().files)


def plain(store: ObjectStore) -> dict[str, bytes]:
    return {i.path.removeprefix("current/"): store.get(i.path) for i in store.list("current")}


def test_a_push_is_in_force_and_the_same_push_again_changes_nothing(store: ObjectStore) -> None:
    source = BucketSource(store, "there")
    with pytest.raises(ConfigError, match="no configuration"):
        source.read()

    first = push(store, ONE)
    again = push(store, ONE)
    snapshot = source.read()

    assert (first.changed, again.changed) == (True, False)
    assert snapshot.files == plain(store) == ONE
    assert (snapshot.revision, snapshot.edited) == (first.revision, ())
    assert decode(store.get(f"bundles/{first.revision}.json"), first.revision) == ONE

    push(store, TWO)
    push(store, ONE)  # takes a file away
    assert source.read().identity == snapshot.identity
    assert plain(store) == ONE


def test_an_edit_by_hand_counts_until_it_comes_home_or_is_given_up(store: ObjectStore) -> None:
    push(store, ONE)
    source = BucketSource(store, "there")
    before = source.read()
    store.put(f"current/{USERS}", b"by hand")
    store.put(f"current/{ORDERS}", b"new by hand")

    edited = source.read()
    with pytest.raises(ConflictError) as refused:
        push(store, TWO)

    assert edited.files == ONE | {USERS: b"by hand", ORDERS: b"new by hand"}
    assert edited.edited == (ORDERS, USERS)
    assert edited.identity != before.identity
    assert refused.value.code == "POLYNYA-BKT-002"
    assert f"{ORDERS}, {USERS}" in refused.value.message

    # Somebody who has seen both may go on with files of his own.
    seen = {path: content_hash(content) for path, content in edited.files.items()}
    assert push(store, TWO, met=seen).overwritten == ()
    store.delete(f"current/{ORDERS}")
    assert source.read().edited == (ORDERS,)
    assert push(store, TWO, overwrite_edits=True).overwritten == (ORDERS,)
    assert plain(store) == TWO


def test_the_second_of_two_pushes_at_once_is_told_who_won(store: ObjectStore) -> None:
    push(store, ONE)
    loser = ConfigBucket(store, "there", token=lambda: (push(store, TWO), "t")[1])

    with pytest.raises(ConflictError) as overtaken:
        loser.push({PROJECT: b"mine"}, ME)

    assert overtaken.value.code == "POLYNYA-BKT-001"
    assert f"ana@laptop pushed {revision_of(encode(TWO))[:12]}" in overtaken.value.message
    assert in_force(store) == plain(store) == TWO


def test_nothing_is_fetched_that_did_not_change(store: ObjectStore) -> None:
    push(store, TWO)
    counted = Counting(store)
    source = BucketSource(counted, "there")
    source.read()
    counted.read_paths.clear()

    source.read()
    assert counted.read_paths == ["pushed.json"]
    store.put(f"current/{USERS}", b"by hand")
    counted.read_paths.clear()
    source.read()
    assert counted.read_paths == [f"current/{USERS}", "pushed.json"]


def test_hostile_objects_are_named_and_the_others_count(store: ObjectStore) -> None:
    push(store, ONE)
    store.put(f"current/{ORDERS}", b"x" * (MAX_FILE_BYTES + 9_999))
    store.put(f"current/{USERS}", b"\xff\xfe")
    for name in ("tasks/a\x07b.yml", "tasks/deeper/c.yml", "notes.txt", *map(str, range(30))):
        store.put(f"current/{name}", b"x")

    snapshot = BucketSource(store, "there").read()

    # What reads the files says what is wrong with them, by line and column.
    assert set(snapshot.files) == {PROJECT, USERS, ORDERS}
    assert len(snapshot.files[ORDERS]) == MAX_FILE_BYTES + 1
    assert {error.code for error in snapshot.refused} == {"POLYNYA-BKT-005"}
    named = [error.where for error in snapshot.refused]
    assert (len(named), named[-1]) == (21, "current")
    assert any("13 more objects" in error.message for error in snapshot.refused)
    assert not any("\x07" in where for where in named)


def test_keys_that_are_no_paths_are_refused_by_name(access, place) -> None:
    from polynya.store.aws.s3 import S3ObjectStore
    from tests.aws import client

    store = S3ObjectStore(place, access)
    push(store, ONE)
    for name in ("../x.yml", "tasks//x.yml", "/etc/passwd", "tasks/../../x.yml", "a\\b.yml"):
        client("s3", access.endpoint).put_object(
            Bucket=place.bucket, Key=place.key(f"current/{name}"), Body=b"x"
        )

    snapshot = BucketSource(store, "there").read()

    assert snapshot.files == ONE
    assert len(snapshot.refused) == 5


def test_more_objects_than_a_project_has_leave_the_pushed_ones_in_force(monkeypatch) -> None:
    store = MemoryObjectStore()
    push(store, TWO)
    for number in range(MAX_FILES):
        store.put(f"current/tasks/a{number}.yml", b"x")
    source = BucketSource(store, "there")

    snapshot = source.read()
    assert TWO.items() <= snapshot.files.items()
    assert len(snapshot.files) == MAX_FILES
    assert [error.where for error in snapshot.refused] == ["current/tasks/a997.yml"]

    monkeypatch.setattr(bucket_reader, "MAX_LISTED_OBJECTS", 10)
    snapshot = source.read()
    assert TWO.items() <= snapshot.files.items()
    assert any("more than 10 objects" in error.message for error in snapshot.refused)


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b'{"format": 2}', b"\xff", b"x" * 5_000_000])
def test_a_damaged_bucket_is_an_error_with_a_way_out(garbage: bytes) -> None:
    store = MemoryObjectStore()
    revision = push(store, ONE).revision
    long_lived = BucketSource(store, "there")
    long_lived.read()
    for path in ("pushed.json", f"bundles/{revision}.json"):
        kept = store.get(path)
        store.put(path, garbage)
        with pytest.raises(OperationError) as caught:
            in_force(store)
        assert caught.value.code == "POLYNYA-BKT-004"
        if path == "pushed.json":
            with pytest.raises(OperationError):
                long_lived.read()
        store.put(path, kept)
        assert long_lived.read().files == ONE
    store.delete("pushed.json")
    push(store, ONE, overwrite_edits=True)
    assert in_force(store) == ONE


# ---- every interleaving of a push with one kill, one edit or one other push ----


class Killed(BaseException):
    """The process is gone; nothing catches that."""


@dataclass
class Counting(ObjectStore):
    """A store that lets something happen before a certain call, or right after it."""

    store: ObjectStore
    act: object = None
    at: int = -1
    after: bool = False
    calls: int = 0
    read_paths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in (
            "list", "get", "put", "put_if_absent", "put_if_unchanged", "delete_if_unchanged",
        ):  # fmt: skip
            setattr(self, name, self._watched(getattr(self.store, name)))

    def read(self, path: str, limit: int):
        self.read_paths.append(path)
        return self._watched(self.store.read)(path, limit)

    def _watched(self, call):
        def watched(*arguments):
            mine, self.calls = self.calls, self.calls + 1
            if mine == self.at and not self.after:
                self.act()
            result = call(*arguments)
            if mine == self.at and self.after:
                self.act()
            return result

        return watched


contents = st.sampled_from([b"a", b"b", b"c"])
paths = st.sampled_from([PROJECT, USERS, ORDERS])
projects = st.dictionaries(paths, contents).map(lambda files: {PROJECT: b"p"} | files)
edits = st.tuples(paths, st.none() | contents)


def edit(store: MemoryObjectStore, path: str, content: bytes | None) -> None:
    store.delete(f"current/{path}") if content is None else store.put(f"current/{path}", content)


@settings(max_examples=200, deadline=None)
@given(projects, projects, st.integers(0, 40), st.booleans())
def test_a_killed_push_leaves_the_old_or_the_new_whole(old, new, at, after) -> None:
    store = MemoryObjectStore()
    push(store, old)

    def kill() -> None:
        raise Killed

    done = False
    try:
        push(Counting(store, kill, at, after), new)
        done = True
    except Killed:
        pass

    source = BucketSource(store, "there")
    found = source.read()
    assert found.files in ((new,) if done else (old, new))
    assert found.edited == ()
    # An edit over what was left counts, and another push finishes and finds nothing in its way.
    edit(store, USERS, b"by hand")
    assert source.read().files == {**found.files, USERS: b"by hand"}
    push(store, new, overwrite_edits=True)
    assert in_force(store) == plain(store) == new


@settings(max_examples=200, deadline=None)
@given(projects, projects, edits, st.integers(0, 40))
def test_an_edit_in_the_middle_of_a_push_is_never_lost(old, new, by_hand, at) -> None:
    store = MemoryObjectStore()
    push(store, old)
    path, content = by_hand
    watched = Counting(store, lambda: edit(store, path, content), at)

    try:
        push(watched, new)
        pushed = True
    except ConflictError:
        pushed = False

    happened = watched.calls > at
    found = in_force(store)
    if happened and content not in {old.get(path), new.get(path)}:
        assert found.get(path) == plain(store).get(path) == content
    if pushed:
        assert all(found.get(p) == new.get(p) for p in {*new, *found} - {path})
        assert BucketSource(store, "there").read().edited in ((), (path,))
    else:
        assert content != old.get(path)
        assert {p: c for p, c in found.items() if p != path} == {
            p: c for p, c in old.items() if p != path
        }


@settings(max_examples=300, deadline=None)
@given(projects, projects, projects, st.integers(0, 40), st.booleans())
@example(
    {PROJECT: b"p"}, {PROJECT: b"p", USERS: b"a"}, {PROJECT: b"p"}, 12, False
)  # writes too late
def test_two_pushes_leave_the_files_of_one(old, mine, theirs, at, after) -> None:
    store = MemoryObjectStore()
    push(store, old)
    watched = Counting(store, lambda: push(store, theirs), at, after)

    try:
        push(watched, mine)
        wins = [mine, theirs]
    except ConflictError as error:
        assert error.code == "POLYNYA-BKT-001"
        wins = [theirs]

    found = BucketSource(store, "there").read()
    assert found.files in wins
    assert found.edited == ()
    # What the loser wrote too late counts for nothing, and the next push does away with it.
    push(store, dict(found.files))
    assert in_force(store) == plain(store) == found.files


@settings(max_examples=150, deadline=None)
@given(projects, projects, st.integers(0, 12))
def test_a_reader_never_sees_a_mixture(old, new, at) -> None:
    store = MemoryObjectStore()
    push(store, old)
    reader = BucketSource(Counting(store, lambda: push(store, new), at), "there")

    for _ in range(4):
        found = reader.read()
        assert found.files in (old, new)
        assert found.edited == ()
