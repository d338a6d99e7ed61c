"""Changing `access.yml` through the API: checked, with a diff, in the folder and in the bucket."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML

from polynya.model.access import access_file, parse_access
from polynya.model.config.access import ACCESS_FILES, AccessDocument, Role
from polynya.model.documents.yaml import MAX_FILE_BYTES
from polynya.model.error_catalogue.access import (
    ACCESS_CHANGE_REFUSED,
    ACCESS_CHANGED_MEANWHILE,
)
from polynya.server.access.actions import Action
from polynya.server.access.roles import Person, actions_of, refused_change
from polynya.store.configuration import plain_path
from polynya.store.object_store import Content, LocalObjectStore, ObjectStore

_FILE: Final = ACCESS_FILES[0]
#: The version of a file that does not exist.
NO_FILE: Final = '"none"'


@dataclass(frozen=True, slots=True)
class AccessFile:
    """The access file as it is: its name, its text and its ETag."""

    name: str
    text: str
    etag: str


def current_file(directory: Path) -> AccessFile:
    """The access file of a project folder; an empty text if there is none."""
    path = access_file(directory)
    if path is None:
        return AccessFile(_FILE, "", NO_FILE)
    data = path.read_bytes()
    return AccessFile(path.name, data.decode("utf-8", "replace"), _etag(data))


@dataclass(frozen=True, slots=True)
class Effect:
    """What a person or a group may do after a change and not before, and the other way round."""

    name: str
    gained: tuple[Action, ...]
    lost: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class AccessChange:
    """A change that the person may make: the difference as a unified diff, and its effects."""

    diff: str
    effects: tuple[Effect, ...]


def change_access(
    directory: Path,
    text: str,
    etag: str,
    person: Person,
    *,
    before: AccessDocument | None,
    bucket: ObjectStore | None = None,
    write: bool = True,
) -> AccessChange:
    """Replace the access file by a text; without `write` only say what that would do.

    Args:
        directory: the project folder.
        text: the whole new file.
        etag: the version that the change was made for.
        person: the person who makes it.
        before: the document that decides whether they may.
        bucket: the configuration bucket of the target, if it has one.
        write: whether to replace the file.

    Raises:
        ConfigErrors: the text is wrong.
        RefusedError: the person may not, or the file was changed meanwhile (POLYNYA-ACC-050, 051).
    """
    data = text.encode()
    if len(data) > MAX_FILE_BYTES:
        raise ACCESS_CHANGE_REFUSED(reason=f"it has more than {MAX_FILE_BYTES:,} bytes").by(413)
    was = current_file(directory)
    if etag != was.etag:
        raise ACCESS_CHANGED_MEANWHILE(where=was.name).by(412)
    with tempfile.TemporaryDirectory(prefix="polynya-") as scratch:
        path = Path(scratch) / was.name
        path.write_bytes(data)
        after = parse_access(path)
    if (reason := refused_change(person, before, after)) is not None:
        raise ACCESS_CHANGE_REFUSED(where=was.name, reason=reason).by(403)
    if write:
        if bucket is not None:
            _write(bucket, plain_path(was.name), data, was)
        _write(LocalObjectStore(directory), was.name, data, was)
    lines = unified_diff(
        was.text.splitlines(), text.splitlines(), f"a/{was.name}", f"b/{was.name}", lineterm=""
    )
    return AccessChange("\n".join(lines), tuple(_effects(before, after)))


def _effects(before: AccessDocument | None, after: AccessDocument) -> Iterator[Effect]:
    named = {name for one in (before, after) if one is not None for name in people_of(one)}
    for name in sorted(named):
        had = frozenset[Action]() if before is None else actions_of([name], before)
        has = actions_of([name], after)
        if had != has:
            yield Effect(name, tuple(sorted(has - had)), tuple(sorted(had - has)))


def people_of(document: AccessDocument) -> dict[str, list[Role]]:
    """The roles of each person and group that a document names."""
    found: dict[str, list[Role]] = {}
    for role in Role:
        for name in getattr(document.roles, role.value):
            found.setdefault(name, []).append(role)
    return found


def with_role(text: str, person: str, role: Role | None) -> str:
    """The text of an access file in which a person has this one role, or none; comments stay."""
    yaml = YAML()
    yaml.preserve_quotes = True
    values = yaml.load(text)
    roles = values["roles"]
    for name in list(roles):
        kept = [one for one in roles[name] if one != person]
        if len(kept) == len(roles[name]):
            continue
        roles[name].remove(person)
        if not kept:
            del roles[name]
    if role is not None:
        if role.value not in roles:
            roles[role.value] = []
        roles[role.value].append(person)
    written = io.StringIO()
    yaml.dump(values, written)
    return written.getvalue()


def _write(store: ObjectStore, path: str, data: bytes, was: AccessFile) -> None:
    """Replace what was read, and nothing else. Raises ACCESS_CHANGED_MEANWHILE."""
    known = _read(store, path)
    if known is None:
        # A bucket that nothing was pushed to yet.
        written = store.put_if_absent(path, data)
    else:
        same = _etag(known.data) == was.etag
        written = same and store.put_if_unchanged(path, data, known.version)
    if not written:
        raise ACCESS_CHANGED_MEANWHILE(where=path).by(412)


def _read(store: ObjectStore, path: str) -> Content | None:
    try:
        return store.read(path, MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None


def _etag(data: bytes) -> str:
    return f'"{sha256(data).hexdigest()[:32]}"'
