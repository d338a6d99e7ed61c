"""`polynya schema export`: the JSON Schema of project and task files."""

from __future__ import annotations

from pathlib import Path

from polynya.cli.context import Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.model.errors import OperationError
from polynya.model.reading.json_schema import SCHEMA_FILES, outdated_schemas, write_schemas

DEFAULT_FOLDER = Path(".polynya") / "schema"

app = verb_app("schema", "JSON Schema of project and task files.")


@app.command
def export(folder: Path | None = None, *, check: bool = False, context: Context) -> int:
    """Write the JSON Schemas, for editors and other tools.

    For example: `polynya schema export --check`.

    Args:
        folder: where to; default `.polynya/schema` in the project.
        check: write nothing; fail when a file is missing or out of date.
        context: given by `main`.
    """
    target = folder or context.options.project / DEFAULT_FOLDER
    if check:
        _check(target)
        paths = [target / file for file in SCHEMA_FILES]
    else:
        paths = write_schemas(target)
    for path in paths:
        verb = "up to date" if check else "written"
        context.output.result("schema", {"path": path, "status": verb}, f"{verb}: {path}")
    return ExitCode.OK


def _check(folder: Path) -> None:
    outdated = outdated_schemas(folder)
    if outdated:
        raise OperationError(
            "POLYNYA-CLI-003",
            f"out of date or missing: {', '.join(path.name for path in outdated)}",
            where=str(folder),
            fix="run `polynya schema export` without `--check`",
        )
