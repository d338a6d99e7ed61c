"""`polynya config`: push, pull and compare the project in its configuration bucket."""

from __future__ import annotations

import getpass
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Literal, TypeAlias

from polynya.cli.context import CommandContext, Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.output import Output
from polynya.engine.commands.validate import project_errors
from polynya.model.bundle import content_hash, plan_pull
from polynya.model.documents.yaml import MAX_FILE_BYTES
from polynya.model.error_catalogue.cluster import (
    CONFIGURATION_MISSING,
    CONFIGURATION_PULL_CONFLICT,
)
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from polynya.model.names import S3Location
from polynya.model.project_inputs import PROJECT_FOLDER
from polynya.store.clock import Retry, SystemClock
from polynya.store.config_bucket import (
    ConfigBucket,
    Origin,
    commit_of,
    recalled,
    remember,
    snapshot_of,
)
from polynya.store.configuration import BucketState, ConfigurationSnapshot, FolderSource, write_to
from polynya.store.object_store import LocalObjectStore
from polynya.store.places import store_at
from polynya.store.project_archive import secrets_in

Change: TypeAlias = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class FileDifference:
    """How one file differs; `text` is a unified diff."""

    path: str
    change: Change
    text: str


def differences(
    before: Mapping[str, bytes], after: Mapping[str, bytes], names: tuple[str, str]
) -> Iterator[FileDifference]:
    """How files change from `before` to `after`, which people call by `names`."""
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        change: Change = "added" if old is None else "removed" if new is None else "changed"
        here, there = (
            f"{name}/{path}" if content is not None else "/dev/null"
            for name, content in zip(names, (old, new), strict=True)
        )
        lines = unified_diff(_lines_of_file(old), _lines_of_file(new), here, there, lineterm="")
        yield FileDifference(path, change, "\n".join(map(_plain, lines)))


def _lines_of_file(content: bytes | None) -> list[str]:
    if content is None:
        return []
    if len(content) > MAX_FILE_BYTES:
        return [f"(larger than {MAX_FILE_BYTES} bytes)"]
    # Lines end as they do in a file: form feeds and the like are part of a line.
    lines = content.decode("utf-8", "backslashreplace").split("\n")
    # A last line without its end is another one than with it.
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]} (no end of line)"]


def _plain(line: str) -> str:
    return "".join(
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in line
    )


@dataclass(frozen=True, slots=True)
class Meeting:
    """A project folder and the configuration bucket of its target."""

    project: LoadedProject
    local: ConfigurationSnapshot
    bucket: ConfigBucket

    @property
    def name(self) -> str:
        """The bucket's place, as people write it."""
        return self.bucket.name

    @property
    def met(self) -> Mapping[str, str] | None:
        """See `model/bundle.py`."""
        return recalled(self.project.directory, self.name)

    def remember(self, files: Mapping[str, bytes]) -> None:
        """The folder has seen that the bucket has these files."""
        hashes = {path: content_hash(content) for path, content in files.items()}
        remember(
            self.project.directory,
            self.name,
            {path: file_hash for path, file_hash in hashes.items() if file_hash},
        )

    def origin(self) -> Origin:
        """Who we are. On AWS that is for AWS to say."""
        place, access = self.project.target.config, self.project.target.aws
        if isinstance(place, S3Location):
            # Start-up time: the AWS SDK.
            from polynya.store.aws.account import identity

            who = identity(access, Retry())
        else:
            who = f"{getpass.getuser()}@{socket.gethostname()}"
        return Origin(who, SystemClock().now(), commit_of(self.project.directory))


def meet(context: CommandContext) -> Meeting:
    """The project, whatever is wrong with its tasks, and its bucket.

    Raises:
        ConfigError: the target names no place for the configuration (POLYNYA-BKT-006).
        ConfigErrors: the project file is broken.
    """
    project = context.load(tolerant=True)
    place = project.target.config
    if place is None:
        raise CONFIGURATION_MISSING(
            f"the target {project.target.name} has no setting `config`",
            fix=f"set `targets.{project.target.name}.config` to `s3://BUCKET/PREFIX` or a folder",
        )
    store = store_at(place, project.target.aws)
    local = FolderSource(project.directory).read()
    return Meeting(project, local, ConfigBucket(store, str(place)))


def errors_of(snapshot: ConfigurationSnapshot, target: str) -> list[ConfigError]:
    """Everything that is wrong with files, as `polynya validate` says it.

    The very bytes are checked, in a folder of their own: a file that is saved meanwhile is
    not pushed unchecked.
    """
    with tempfile.TemporaryDirectory(prefix="polynya-") as scratch:
        folder = Path(scratch) / "project"
        write_to(snapshot, folder)
        # Loading looks for secrets in the files of the project itself.
        foreign = [path for path in snapshot.files if path.startswith(f"{PROJECT_FOLDER}/")]
        found = [one for path in foreign for one in secrets_in(path, snapshot.files[path])]
        if found:
            return found
        try:
            return project_errors(load_project(folder, target, tolerant=True))[0]
        except ConfigErrors as errors:
            return list(errors.errors)


def show_status(
    output: Output, name: str, reading: BucketState, broken: Sequence[ConfigError]
) -> None:
    """Say a reading of the bucket `name`, and the errors in what is in force."""
    bucket, pointer = reading.bucket, reading.pointer
    files = [
        {
            "file": path,
            "from": bucket.edits.get(path, "pushed"),
            "size_bytes": len(bucket.files.get(path, b"")),
            "sha256": content_hash(bucket.files.get(path)),
        }
        for path in sorted(bucket.files.keys() | bucket.edits.keys())
    ]
    data = {
        "bucket": name,
        "revision": pointer and pointer.revision,
        "pushed_by": pointer and pointer.pushed_by,
        "pushed_at": pointer and pointer.pushed_at,
        "commit": pointer and pointer.commit,
        "files": files,
        "edited": dict(bucket.edits),
        "left_over": bucket.left_over,
        "broken": [error.as_dict() for error in broken],
        "not_used": [error.as_dict() for error in reading.refused],
    }
    output.result("config.status", data, "\n".join(_status_lines(name, reading, broken)))


def _status_lines(name: str, reading: BucketState, broken: Sequence[ConfigError]) -> list[str]:
    bucket, pointer = reading.bucket, reading.pointer
    lines = [name]
    if pointer is None:
        lines.append("  revision  none: nothing was pushed, the files were put there by hand")
    else:
        commit = f", commit {pointer.commit}" if pointer.commit else ""
        lines += [
            f"  revision  {pointer.revision[:12]}{commit}",
            f"  pushed    {pointer.pushed_at:%Y-%m-%d %H:%M:%S} UTC by {pointer.pushed_by}",
        ]
    edited = f", {len(bucket.edits)} edited by hand" if bucket.edits else ""
    lines.append(f"  in force  {len(bucket.files)} files{edited}")
    lines += [f"  edited    {path}: {kind} by hand" for path, kind in bucket.edits.items()]
    lines += [f"  pending   {path}: the next push writes it" for path in bucket.left_over]
    lines += [f"  broken    {error}" for error in broken]
    if broken:
        lines.append("  nodes keep the last good content of what is broken")
    lines += [f"  not used  {error}" for error in reading.refused]
    return lines


app = command_group("config", "The project in its configuration bucket.")


@app.command
def push(*, overwrite_edits: bool = False, context: Context) -> int:
    """Check the project and put it in force.

    The bucket gets the whole project or nothing of it. Manual edits that this folder never pulled
    are not overwritten.

    For example: `polynya config push --target dev`.

    Args:
        overwrite_edits: overwrite manual edits, too.
    """
    met = meet(context)
    if errors := errors_of(met.local, met.project.target.name):
        raise ConfigErrors(errors)
    done = met.bucket.push(
        met.local.files, met.origin(), met=met.met, overwrite_edits=overwrite_edits
    )
    met.remember(met.local.files)
    text = f"{done.revision[:12]} is in force: {len(met.local.files)} files in {met.name}"
    if done.overwritten:
        text += f"; edits by hand were overwritten: {', '.join(done.overwritten)}"
    data = {
        "bucket": met.name,
        "revision": done.revision,
        "changed": done.changed,
        "before": done.before,
        "files": sorted(met.local.files),
        "overwritten": done.overwritten,
    }
    context.output.result("config.pushed", data, text if done.changed else f"{text} already")
    return ExitCode.OK


@app.command
def pull(*, overwrite_local: bool = False, context: Context) -> int:
    """Fetch the configuration in force, including manual edits.

    A file that only this folder changed since the last push or pull stays as it is.

    For example: `polynya config pull --target dev`.

    Args:
        overwrite_local: use the bucket's files even if both sides changed.
    """
    met = meet(context)
    reading = met.bucket.read()
    snapshot = snapshot_of(reading, met.name)
    plan = plan_pull(met.local.files, reading.bucket, reading.pushed, met.met)
    if plan.conflicts and not overwrite_local:
        raise CONFIGURATION_PULL_CONFLICT(where=met.name, files=", ".join(plan.conflicts))
    folder = LocalObjectStore(met.project.directory)
    writes = {**plan.writes, **{path: snapshot.files.get(path) for path in plan.conflicts}}
    # The files of another project are its own: this folder may only have a link to them.
    foreign = sorted(path for path in writes if path.startswith(f"{PROJECT_FOLDER}/"))
    writes = {path: content for path, content in writes.items() if path not in foreign}
    if foreign:
        context.output.note(f"not written, since another project has it: {', '.join(foreign)}")
    for path, content in sorted(writes.items()):
        if content is None:
            folder.delete(path)
        else:
            folder.put(path, content)
        done = "removed" if content is None else "written"
        context.output.result("config.file", {"file": path, "status": done}, f"{done}: {path}")
    met.remember(snapshot.files)
    data = {"bucket": met.name, "revision": snapshot.revision, "files": sorted(writes)}
    context.output.result("config.pulled", data, None if writes else "everything is here already")
    return ExitCode.OK


@app.command
def diff(*, context: Context) -> int:
    """Show what a push would change: `-` is in force, `+` is here. Exit code 3 for differences.

    For example: `polynya config diff --target dev`.
    """
    met = meet(context)
    reading = met.bucket.read()
    changes = list(differences(reading.bucket.files, met.local.files, ("bucket", "here")))
    for change in changes:
        data = {"file": change.path, "change": change.change, "diff": change.text}
        context.output.result("config.difference", data, change.text)
    edits = [
        path for path in reading.bucket.edits if any(change.path == path for change in changes)
    ]
    if edits:
        context.output.note(f"edited by hand in the bucket: {', '.join(edits)}")
    context.output.result(
        "config.diff",
        {"bucket": met.name, "changes": len(changes), "edited": edits},
        None if changes else "no difference",
    )
    return ExitCode.CHANGES if changes else ExitCode.OK


@app.command
def status(*, context: Context) -> int:
    """Show the revision in force, its author, manual edits and broken files.

    Exit code 2 when a file in force is broken.

    For example: `polynya config status --json`.
    """
    met = meet(context)
    reading = met.bucket.read()
    broken = errors_of(snapshot_of(reading, met.name), met.project.target.name)
    show_status(context.output, met.name, reading, broken)
    return ExitCode.USAGE if broken else ExitCode.OK
