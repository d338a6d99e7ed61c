"""A project as one archive to pass on: `.tar.gz` with its files, without bindings and secrets.

The same files give the same bytes. An archive that comes from elsewhere is hostile: it is unpacked
in memory, within limits, and only files that a project is made of are taken.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from polynya.model.automations import AUTOMATION_FOLDER, written_webhook_secrets
from polynya.model.bindings import BINDINGS_FOLDER
from polynya.model.bundle import MAX_BYTES, MAX_FILES
from polynya.model.config.aws import AwsAccess
from polynya.model.connection_kinds import CONNECTION_KINDS
from polynya.model.connections import written_secrets as connection_secrets
from polynya.model.documents.problems import Problem, located
from polynya.model.documents.yaml import MAX_FILE_BYTES, Node, ScalarNode, read_document
from polynya.model.error_catalogue.bindings import ARCHIVE_REFUSED, EXPORT_REFUSED
from polynya.model.error_catalogue.configuration import SECRET_IN_FILE
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.loader import PROJECT_FILES, TASK_FOLDER
from polynya.model.names import Location, S3Location, shown
from polynya.model.notifications import NOTIFICATION_FOLDER, written_channel_secrets
from polynya.model.project_inputs import PROJECT_FOLDER
from polynya.model.project_parts import (
    CONNECTION_FOLDER,
    entry,
    written_keys,
    written_passwords,
    written_properties,
    written_secrets,
    written_store_keys,
)
from polynya.store.configuration import FolderSource, is_project_file
from polynya.store.places import store_at

#: The header of a file takes one block, or three with a long name; the end of it fills a block.
_BLOCKS: Final = 4 * 512
#: The most bytes of an archive, packed and unpacked.
MAX_ARCHIVE_BYTES: Final = MAX_BYTES + MAX_FILES * _BLOCKS

#: What is a secret wherever it stands, also in a comment.
_ANYWHERE: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("a private key", re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")),
    ("a key of AWS", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    (
        "a password in an address",
        re.compile(r"""://[^\s/:@"'${}]{1,200}:[^\s/@"'${}]{1,200}@"""),
    ),
)
_OF_TASKS: Final[tuple[Callable[[Node], Iterator[Problem]], ...]] = (
    written_passwords,
    written_properties,
    written_store_keys,
    written_keys,
)


def _is_binding(path: str) -> bool:
    """Whether a file holds the bindings of the project, or of one that it reads."""
    return f"/{path}".rpartition("/")[0].endswith(f"/{BINDINGS_FOLDER}")


def export(project: Path, place: Location, access: AwsAccess) -> list[str]:
    """Write the archive of a project to a file or an object; return the names of its files.

    Raises:
        ConfigErrors: a file holds a secret, or cannot be read to look for one.
        ConfigError: there is a file of that name already, or none can be written
            (POLYNYA-CFG-054); the project cannot be read.
        PolynyaError: the bucket does not take it.
    """
    files = {
        path: content
        for path, content in FolderSource(project).read().files.items()
        if not _is_binding(path)
    }
    if errors := [error for path, one in files.items() for error in secrets_in(path, one)]:
        raise ConfigErrors(errors)
    if isinstance(place, S3Location) and not place.prefix:
        raise EXPORT_REFUSED("a bucket is not a name", where=str(place), fix="add a key")
    try:
        written = _written(place, packed(files), access)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise EXPORT_REFUSED(where=str(place), why=why, fix="name another place") from None
    if not written:
        message = "there is a file of this name already"
        raise EXPORT_REFUSED(message, where=str(place), fix="name another file, or remove this one")
    return sorted(files)


def _written(place: Location, data: bytes, access: AwsAccess) -> bool:
    """Write a file or an object with its folders; False where there is one already."""
    if isinstance(place, S3Location):
        folder, _, name = place.prefix.rpartition("/")
        return store_at(S3Location(place.bucket, folder), access).put_if_absent(name, data)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with place.open("xb") as out:
            out.write(data)
    except FileExistsError:
        return False
    return True


def secrets_in(path: str, content: bytes) -> list[ConfigError]:
    """The secrets that a file of a project holds, and what prevents looking for them."""
    text = content.decode("utf-8", "replace")
    errors = [
        SECRET_IN_FILE(
            what=what,
            where=f"{path}:{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}",
            fix="remove it, and write a reference where a setting needs it",
        )
        for what, pattern in _ANYWHERE
        for at in (match.start() for match in pattern.finditer(text))
    ]
    if path.endswith((".pem", ".sql")):
        return errors
    try:
        document, _ = read_document(text.removeprefix("\ufeff"), path)
    except ConfigError as error:
        return [*errors, error]
    return [*errors, *located(_written_in(path, document), document, path)]


def _written_in(path: str, document: Node) -> Iterator[Problem]:
    while path.startswith(f"{PROJECT_FOLDER}/"):
        # A file of another project, as that project calls it.
        path = path.split("/", 2)[2]
    folder = path.rpartition("/")[0]
    if path in PROJECT_FILES:
        yield from written_secrets(document)
    elif folder == TASK_FOLDER:
        for check in _OF_TASKS:
            yield from check(document)
    elif folder == AUTOMATION_FOLDER:
        yield from written_webhook_secrets(document)
    elif folder == NOTIFICATION_FOLDER:
        yield from written_channel_secrets(document)
    elif folder == CONNECTION_FOLDER:
        type_ = entry(document, "type")
        kind = CONNECTION_KINDS.get(str(type_.value)) if isinstance(type_, ScalarNode) else None
        # Without a type that is known, what would be a secret of any kind is one.
        for one in (kind,) if kind is not None else dict.fromkeys(CONNECTION_KINDS.values()):
            yield from connection_secrets(one, document)


def packed(files: Mapping[str, bytes]) -> bytes:
    """The archive of files: the same bytes for the same files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            member = tarfile.TarInfo(path)
            member.size = len(files[path])
            archive.addfile(member, io.BytesIO(files[path]))
    return gzip.compress(plain.getvalue(), mtime=0)


def unpacked(data: bytes, where: str) -> dict[str, bytes]:
    """The files of an archive by their path.

    Raises:
        ConfigError: it is no archive of a project, or one that could do harm (POLYNYA-CFG-053).
    """
    files: dict[str, bytes] = {}
    taken: set[str] = set()
    try:
        with tarfile.open(fileobj=io.BytesIO(_plain(data, where)), mode="r:") as archive:
            for member in archive:
                content = _content(archive, member, where)
                if member.name.casefold() in taken:
                    raise _refused(f"{shown(member.name)} occurs twice", where)
                taken.add(member.name.casefold())
                files[member.name] = content
                if len(files) > MAX_FILES:
                    raise _refused(f"more than {MAX_FILES} files", where)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise _refused(f"not an archive: {str(error)[:200]}", where) from None
    if sum(path in PROJECT_FILES for path in files) != 1:
        raise _refused("it does not have exactly one polynya.yml", where)
    return files


def _plain(data: bytes, where: str) -> bytes:
    """The archive without its compression, however little it says of its size."""
    try:
        with gzip.open(io.BytesIO(data)) as opened:
            plain = opened.read(MAX_ARCHIVE_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise _refused("it is not compressed with gzip, or is damaged", where) from None
    if len(plain) > MAX_ARCHIVE_BYTES:
        raise _refused(f"more than {MAX_ARCHIVE_BYTES} bytes", where)
    return plain


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, where: str) -> bytes:
    name = member.name
    if member.type not in {tarfile.REGTYPE, tarfile.AREGTYPE} or member.issparse():
        raise _refused(f"{shown(name)} is not a plain file", where)
    if not is_project_file(name) or _is_binding(name):
        raise _refused(f"{shown(name)} is not a file of a project", where)
    if member.size > MAX_FILE_BYTES:
        raise _refused(f"{shown(name)} is larger than {MAX_FILE_BYTES} bytes", where)
    opened = archive.extractfile(member)
    assert opened is not None, "a plain file has content"
    content = opened.read()
    if len(content) != member.size:
        raise _refused(f"{shown(name)} is cut off", where)
    return content


def _refused(message: str, where: str) -> ConfigError:
    return ARCHIVE_REFUSED(message, where=where, fix="export the project again")


def unpack(file: Path, folder: Path) -> list[str]:
    """Unpack an archive to a folder that is new or empty; return the names of its files.

    The folder is there with all files, or as it was.

    Raises:
        ConfigError: the archive is refused, or the folder has anything in it (POLYNYA-CFG-053).
    """
    try:
        with file.open("rb") as source:
            data = source.read(MAX_ARCHIVE_BYTES + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ARCHIVE_REFUSED(
            "it cannot be read", where=str(file), why=why, fix="name the file of an export"
        ) from None
    if len(data) > MAX_ARCHIVE_BYTES:
        raise _refused(f"more than {MAX_ARCHIVE_BYTES} bytes", str(file))
    files = unpacked(data, str(file))
    target = folder.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            complete = Path(scratch) / "project"
            for path, content in files.items():
                place = complete / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            # It takes the place of an empty folder, and of nothing else.
            complete.rename(target)
    except OSError as error:
        raise ARCHIVE_REFUSED(
            "the folder cannot be written, or it is not empty",
            where=str(folder),
            why=error.strerror or type(error).__name__,
            fix="name a folder that does not exist",
        ) from None
    return sorted(files)
