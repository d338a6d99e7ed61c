"""Where a project of Qlik comes from: a folder, a ZIP archive of an export, or a JSON file."""

from __future__ import annotations

import os
import stat
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from polynya.formats.errors import UnreadableFileError
from polynya.formats.zip_members import DAMAGED_ZIP, opened_archive
from polynya.model.documents.yaml import MAX_FILE_BYTES
from polynya.model.error_catalogue.qlik import SOURCE_REFUSED
from polynya.model.errors import ConfigError
from polynya.model.names import shown

PROJECT_FILE: Final = "qtcp_project.yaml"
#: Replicate exports all tasks of a server to one file.
MAX_JSON_BYTES: Final = 64 * 1024 * 1024
_MAX_FILES: Final = 20_000
_MAX_BYTES: Final = 256 * 1024 * 1024
_DOCUMENTS: Final = (".yaml", ".yml", ".json")


@dataclass(slots=True)
class QlikFiles:
    """The files of a project by their path, and those that were left out with the reason."""

    files: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    total: int = 0

    def add(self, path: str, content: bytes, limit: int) -> None:
        """Add a file. Raises ConfigError beyond the limits."""
        self.total += len(content)
        if self.total > _MAX_BYTES or len(self.files) + len(self.left_out) >= _MAX_FILES:
            raise _refused(f"more than {_MAX_FILES} files or {_MAX_BYTES} bytes", path)
        if len(content) > limit:
            self.left_out[path] = f"larger than {limit} bytes"
        else:
            self.files[path] = content


def read_source(place: Path) -> QlikFiles:
    """The files of a folder, a ZIP archive or a JSON file.

    A folder above the project, as GitHub puts it into its archives, is taken off.

    Raises:
        ConfigError: POLYNYA-QLK-001: it cannot be read, could do harm, or holds no project.
    """
    try:
        if place.is_dir():
            found = _folder(place)
        elif place.suffix.lower() == ".json":
            found = QlikFiles()
            with place.open("rb") as file:
                content = file.read(MAX_JSON_BYTES + 1)
            if len(content) > MAX_JSON_BYTES:
                raise _refused(f"larger than {MAX_JSON_BYTES} bytes", str(place))
            found.add(place.name, content, MAX_JSON_BYTES)
            return found
        else:
            found = _archive(place)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise SOURCE_REFUSED("it cannot be read", where=str(place), why=why) from None
    return _without_folder(found, str(place))


def _folder(place: Path) -> QlikFiles:
    found = QlikFiles()
    for folder, names, files in os.walk(place):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in list(names):
            if (Path(folder) / name).is_symlink():
                path = (Path(folder) / name).relative_to(place).as_posix()
                found.left_out[path] = "a link, which is not followed"
                names.remove(name)
        for name in sorted(files):
            file_path = Path(folder) / name
            shown_as = file_path.relative_to(place).as_posix()
            status = file_path.lstat()
            if not stat.S_ISREG(status.st_mode):
                found.left_out[shown_as] = "not a plain file, which is not read"
            elif not name.lower().endswith(_DOCUMENTS):
                found.left_out[shown_as] = "not a YAML or JSON file"
            else:
                limit = MAX_JSON_BYTES if name.lower().endswith(".json") else MAX_FILE_BYTES
                with file_path.open("rb") as file:
                    found.add(shown_as, file.read(limit + 1), limit)
    return found


def _archive(place: Path) -> QlikFiles:
    found = QlikFiles()
    try:
        with place.open("rb") as file, opened_archive(file) as archive:
            for member in archive.infolist():
                if member.is_dir():
                    continue
                name = member.filename
                is_known = name in found.files or name in found.left_out
                _refuse_harm(member, "occurs twice" if is_known else "", str(place))
                if not name.lower().endswith(_DOCUMENTS):
                    found.left_out[name] = "not a YAML or JSON file"
                    continue
                # What is read counts, not what the archive says of itself.
                with archive.open(member) as opened:
                    found.add(name, opened.read(MAX_FILE_BYTES + 1), MAX_FILE_BYTES)
    except UnreadableFileError as error:
        raise _refused(str(error), str(place)) from None
    except DAMAGED_ZIP as error:
        raise _refused(f"a damaged archive: {type(error).__name__}", str(place)) from None
    return found


def _refuse_harm(member: zipfile.ZipInfo, known: str, place: str) -> None:
    """Refuse a member that could do harm. Raises ConfigError."""
    reason = known or _harm(member.filename, member.external_attr >> 16, member.flag_bits)
    if reason:
        raise _refused(f"{shown(member.filename)} {reason}", place)


def _harm(name: str, mode: int, flags: int) -> str:
    """Why a member is refused, "" if it is not."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or "\\" in name or ":" in name or ".." in parts or "\x00" in name:
        return "leaves the folder of the archive"
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        return "is a link or a device"
    return "has a password" if flags & 1 else ""


def _without_folder(found: QlikFiles, place: str) -> QlikFiles:
    roots = sorted(
        (path.rpartition("/")[0] for path in found.files if _is_project(path)),
        key=lambda root: (root.count("/"), root),
    )
    if not roots:
        if any(path.endswith(".json") for path in found.files):
            return found
        raise _refused(f"it has no {PROJECT_FILE}, and no JSON file of Replicate", place)
    if len(roots) > 1:
        listed = ", ".join(shown(root or ".") for root in roots[:5])
        raise _refused(f"it has several projects: {listed}", place)
    root = f"{roots[0]}/" if roots[0] else ""
    inside = {path.removeprefix(root): content for path, content in found.files.items()
              if path.startswith(root)}  # fmt: skip
    outside = {path: "outside of the project" for path in found.files if not path.startswith(root)}
    left_out = {path.removeprefix(root): why for path, why in found.left_out.items()}
    return QlikFiles(inside, left_out | outside, found.total)


def _is_project(path: str) -> bool:
    return path.rpartition("/")[2] == PROJECT_FILE


def _refused(message: str, where: str) -> ConfigError:
    return SOURCE_REFUSED(message, where=where)
