"""`polynya config`: the project in the configuration bucket from which nodes take it."""

from __future__ import annotations

from polynya.cli.context import Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.project.config_bucket import errors_of, meet
from polynya.cli.project.config_diff import differences
from polynya.cli.project.config_status import show_status
from polynya.model.bucket.exchange import homecoming
from polynya.model.errors import ConfigErrors, ConflictError
from polynya.store.bucket.config_bucket import snapshot_of
from polynya.store.object_store import LocalObjectStore

app = verb_app("config", "The project in its configuration bucket.")


@app.command
def push(*, overwrite_edits: bool = False, context: Context) -> int:
    """Check the project and put it in force.

    The bucket gets the whole project or nothing of it. Manual edits that this folder never pulled
    are not overwritten.

    For example: `polynya config push --target dev`.

    Args:
        overwrite_edits: overwrite manual edits, too.
        context: given by `main`.
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
        context: given by `main`.
    """
    met = meet(context)
    reading = met.bucket.read()
    snapshot = snapshot_of(reading, met.name)
    plan = homecoming(met.local.files, reading.bucket, reading.pushed, met.met)
    if plan.conflicts and not overwrite_local:
        raise ConflictError(
            "POLYNYA-BKT-003",
            f"changed here and in the bucket: {', '.join(plan.conflicts)}",
            where=met.name,
            state="nothing was written",
            fix="`polynya config diff` shows both; `--overwrite-local` takes the bucket's",
        )
    folder = LocalObjectStore(met.project.directory)
    writes = {**plan.writes, **{path: snapshot.files.get(path) for path in plan.conflicts}}
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
    found = list(differences(reading.bucket.files, met.local.files, ("bucket", "here")))
    for one in found:
        data = {"file": one.path, "change": one.change, "diff": one.text}
        context.output.result("config.difference", data, one.text)
    edits = [path for path in reading.bucket.edits if any(one.path == path for one in found)]
    if edits:
        context.output.note(f"edited by hand in the bucket: {', '.join(edits)}")
    context.output.result(
        "config.diff",
        {"bucket": met.name, "changes": len(found), "edited": edits},
        None if found else "no difference",
    )
    return ExitCode.CHANGES if found else ExitCode.OK


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
