"""Readers that know nothing of Polynya see the same committed rows."""

from __future__ import annotations

import pytest

from tests.lab.lab import Feed, Lab, clear, drop, put
from tests.oracle.packs.read_back import READERS


@pytest.fixture(scope="module")
def users(module_lab: Lab) -> Feed:
    """A table whose files have position deletes, with a pending change; nobody changes it."""
    users = module_lab.feed()
    users.apply(*(put(key, key, name=f"n{key}") for key in range(1, 6)))
    users.apply(put(1, 10, name="new"), drop(2, 11), put(3, 2, name="late"))
    users.apply(clear(4), put(9, 12, name="nine"))
    users.copy(put(1, 20, name="pending"))
    return users


@pytest.mark.parametrize("reader", READERS)
def test_they_agree_with_spark(users: Feed, reader: str) -> None:
    namespace, _, table = users.internal.partition(".")
    names = ("id", "name", "hdr__operation", "hdr__change_identifier")

    for partition in ("current", "prior", "changes"):
        condition = f"hdr__partition = '{partition}'"
        rows = READERS[reader](users.lab.project, namespace, table, names, condition)
        found = sorted((tuple(row[name] for name in names) for row in rows), key=repr)
        assert found == users.stored(partition, *names)
        assert found
