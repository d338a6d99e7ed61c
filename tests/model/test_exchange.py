"""What a push may overwrite and what a pull brings home, over all small histories."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polynya.model.bundle import InForce, Plain, content_hash, in_force, plan_pull, unseen_edits

paths = st.sampled_from(["a", "b"])
files = st.dictionaries(paths, st.sampled_from([b"1", b"2", b"3"]))


def bucket_of(pushed: dict[str, bytes], now: dict[str, bytes]) -> InForce:
    return in_force(pushed, {path: Plain("v", content) for path, content in now.items()}, {})


def hashes(of: dict[str, bytes]) -> dict[str, str]:
    return {path: content_hash(content) for path, content in of.items()}


@given(files, files)
def test_the_plain_files_are_in_force_and_each_difference_is_an_edit(pushed, now) -> None:
    found = bucket_of(pushed, now)

    assert found.files == now
    assert set(found.edits) == {p for p in {*pushed, *now} if pushed.get(p) != now.get(p)}
    # A file whose content could not be read counts as it was pushed.
    unread = in_force(pushed, dict.fromkeys(now, Plain("v", None)), {})
    assert unread.files.items() <= pushed.items()


@given(files, files, files, st.none() | files)
def test_a_push_loses_only_edits_that_were_seen(local, pushed, now, met) -> None:
    bucket = bucket_of(pushed, now)
    unseen = unseen_edits(local, bucket, None if met is None else hashes(met))

    for path in bucket.edits:
        lost = local.get(path) != now.get(path)
        seen = met is not None and met.get(path) == now.get(path)
        assert (path in unseen) == (lost and not seen)
    assert set(unseen) <= set(bucket.edits)


@given(files, files, files, st.none() | files)
def test_a_pull_overwrites_nothing_that_only_the_folder_has(local, pushed, now, met) -> None:
    bucket = bucket_of(pushed, now)
    plan = plan_pull(local, bucket, pushed, None if met is None else hashes(met))
    known = pushed if met is None else met

    for path, content in plan.writes.items():
        assert content == now.get(path)
        assert path not in local or local[path] == known.get(path)
    for path in {*local, *now}:
        mine, theirs = local.get(path), now.get(path)
        if mine == theirs or path in plan.writes:
            assert path not in plan.conflicts
        elif met is not None:
            # What only the folder changed stays, what both changed is for people.
            assert (path in plan.conflicts) == (theirs != met.get(path))


@given(files, files, files, st.none() | files)
def test_after_a_pull_nothing_is_left_to_pull_and_a_push_is_free(local, pushed, now, met) -> None:
    bucket = bucket_of(pushed, now)
    plan = plan_pull(local, bucket, pushed, None if met is None else hashes(met))
    taken = {**plan.writes, **{path: now.get(path) for path in plan.conflicts}}
    home = {p: c for p, c in {**local, **taken}.items() if c is not None}

    again = plan_pull(home, bucket, pushed, hashes(now))
    assert (again.writes, again.conflicts) == ({}, ())
    assert unseen_edits(home, bucket, hashes(now)) == ()
