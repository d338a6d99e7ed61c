"""`polynya init`: a small project that runs as it is, wired for editors. Never overwrites."""

from __future__ import annotations

import re
from pathlib import Path

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.project.templates import ESSENTIAL, project_files
from polynya.model.contract.identifiers import check_name
from polynya.model.errors import ConfigError
from polynya.model.reading.loader import PROJECT_FILES


def init(
    folder: Path | None = None,
    *,
    name: str | None = None,
    yes: bool = False,  # noqa: ARG001 - accepted so that scripts can say it to every verb
    context: Context,
) -> int:
    """Create a project with one task, sample data, and completion for editors.

    For example: `polynya init shop`.

    Args:
        folder: where to; default `--project`, else here. Created when missing.
        name: name of the project; default the name of the folder.
        yes: answer every question with yes; there are none.
        context: given by `main`.
    """
    target = folder or context.options.project
    project = check_name(name, what="project name") if name else _name_of(target)
    files = project_files(project)
    _refuse_overwriting(target, list(ESSENTIAL))
    # A repository has a .gitignore and editor settings of its own: those stay as they are.
    kept = [file for file in files if (target / file).exists()]
    written = [file for file in files if file not in kept]
    _write(target, {file: files[file] for file in written})
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
        raise ConfigError(
            "POLYNYA-CLI-002",
            f"cannot write {error.filename}: {error.strerror}",
            where=str(folder),
            fix="choose a folder that you may write to",
        ) from error
