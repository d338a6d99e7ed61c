"""`polynya init`: a small project that runs as it is, wired for editors. Never overwrites."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.cli.project.proposal.sample import read_sample, task_text
from polynya.cli.project.templates import ESSENTIAL, project_files
from polynya.model.contract.identifiers import check_name
from polynya.model.errors import ConfigError
from polynya.model.reading.loader import PROJECT_FILES


def init(
    folder: Path | None = None,
    *,
    name: str | None = None,
    empty: bool = False,
    from_file: Annotated[Path | None, Parameter(name="--from")] = None,
    yes: bool = False,  # noqa: ARG001 - accepted so that scripts can say it to every verb
    context: Context,
) -> int:
    """Create a project with one task, sample data, and completion for editors.

    With `--from` the task is for files like that one: Polynya proposes keys, order, time, deletes
    and types from its first 1,000 records, each with its reason in the task file, and copies the
    file to the task's landing folder. It may be JSON lines, CSV or Parquet.

    For example: `polynya init shop --from orders.csv`.

    Args:
        folder: folder of the project; default `--project`, else here. Created if it is missing.
        name: name of the project; default the folder's name.
        empty: no task and no data.
        from_file: a landed file to propose a task from.
        yes: answer every question with yes; there are none.
        context: given by `main`.
    """
    target = folder or context.options.project
    project = check_name(name, what="project name") if name else _name_of(target)
    if empty and from_file is not None:
        raise usage_error("`--empty` and `--from` exclude each other")
    files = project_files(project, example=not empty and from_file is None)
    copied: Path | None = None
    if from_file is not None:
        task, copied = _task_of(from_file, project)
        files = {"polynya.yml": files.pop("polynya.yml"), **task, **files}
    essential = [file for file in files if file.split("/")[0] in ESSENTIAL]
    _refuse_overwriting(target, [*essential, *([str(copied)] if copied else [])])
    # A repository has a .gitignore and editor settings of its own: those stay as they are.
    kept = [file for file in files if (target / file).exists()]
    written = [file for file in files if file not in kept]
    _write(target, {file: files[file] for file in written})
    if from_file is not None and copied is not None:
        _copy(from_file, target / copied)
        written.append(str(copied))
    context.output.result(
        "project",
        {"name": project, "directory": target.resolve(), "files": written, "kept": kept},
        f"created project {project} in {target} ({len(written)} files)",
    )
    if kept:
        context.output.note(f"left as they were: {', '.join(kept)}")
    place = "" if target == Path() else f" --project {target}"
    context.output.note(f"next: polynya validate{place}, then polynya run --once{place}")
    return ExitCode.OK


def proposed_project(file: Path, folder: Path) -> None:
    """Write the project that is proposed for a file into a folder, without the file."""
    project = _name_of(file.parent)
    task, _ = _task_of(file, project)
    _write(folder, {"polynya.yml": project_files(project, example=False)["polynya.yml"], **task})


def _task_of(file: Path, schema: str) -> tuple[dict[str, str], Path]:
    """The task that is proposed for a file, and where the file goes, below the project."""
    name = _name_of(Path(file.stem))
    text = task_text(read_sample(file), name, schema, f"*{file.suffix}")
    return {f"tasks/{name}.yml": text}, Path("landing", name, file.name)


def _copy(file: Path, to: Path) -> None:
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)
    except OSError as error:
        raise _not_written(to.parent, error) from error


def _name_of(folder: Path) -> str:
    """Make a project name of a folder's name: other characters become `_`."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", folder.resolve().name).strip("_") or "project"
    return (f"_{name}" if name[0].isdigit() else name)[:128]


def _refuse_overwriting(folder: Path, files: list[str]) -> None:
    present = [file for file in [*files, *PROJECT_FILES] if (folder / file).exists()]
    if present:
        shown = ", ".join(dict.fromkeys(present))
        raise ConfigError(
            "POLYNYA-CLI-002",
            f"files are in the way: {shown}",
            where=str(folder),
            state="nothing was written",
            fix="choose another folder, or remove them",
        )


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            # "x": what appears between the check and here is not overwritten either.
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise _not_written(folder, error) from error


def _not_written(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(
        "POLYNYA-CLI-002",
        f"cannot write {error.filename}: {error.strerror}",
        where=str(folder),
        fix="choose a folder that you may write to",
    )
