"""`polynya explain`, `functions`, `schema` and `completion`: reference that works offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from polynya.cli.context import Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import global_flags
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.codes import ERROR_PAGES
from polynya.model.error_catalogue.configuration import PUBLISHED_FILES_OUTDATED, WRONG_USAGE
from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.json_schema import SCHEMA_FILES, outdated_schemas, write_schemas

if TYPE_CHECKING:
    from polynya.transform.functions.core import Function


def functions(name: str | None = None, *, snippets: bool = False, context: Context) -> None:
    """Show the functions of Polynya that expressions may call; with a name, all about one.

    For completion in an editor that knows the snippets of VS Code, send those of `--snippets` to
    the file `.vscode/polynya.code-snippets`.

    For example: `polynya functions substring`.

    Args:
        name: a function, with or without `polynya.` before it.
        snippets: print them as snippets for an editor.
    """
    chosen = _chosen(name)
    if snippets:
        content = _snippets(chosen)
        context.output.result("snippets", {"snippets": content}, json.dumps(content, indent=2))
        return
    for function in chosen:
        data = {
            "name": function.name,
            "call": function.written,
            "signature": function.signature,
            "family": function.family,
            "about": function.about,
            "examples": [
                {"call": example.call, "gives": example.gives} for example in function.examples
            ],
        }
        text = (
            f"{function.signature}  {_first(function)}"
            if name is None
            else _function_text(function)
        )
        context.output.result("function", data, text)


def _chosen(name: str | None) -> list[Function]:
    # Start-up time.
    from polynya.transform.functions.table import FUNCTIONS, QUALIFIER

    if name is None:
        return list(FUNCTIONS.values())
    wanted = name.strip().lower().removeprefix(f"{QUALIFIER}.")
    if wanted not in FUNCTIONS:
        hint = (suggest(wanted, list(FUNCTIONS)) or "").partition(" allowed here:")[0]
        raise WRONG_USAGE(
            f"Polynya has no function `{name[:60]}`",
            fix=hint if hint.startswith("did") else "`polynya functions` lists all",
        )
    return [FUNCTIONS[wanted]]


def _snippets(functions: list[Function]) -> dict[str, Any]:
    """Snippets in the form of VS Code: the parameters are the places to fill in."""
    return {
        function.signature: {
            "prefix": sorted({function.name, function.written}),
            "scope": "yaml,json",
            "body": f"{function.written}({_holes(function)})",
            "description": function.about,
        }
        for function in functions
    }


def _holes(function: Function) -> str:
    needed = [parameter for parameter in function.parameters if not parameter.endswith("?")]
    return ", ".join(
        f"${{{at}:{parameter.rstrip('+')}}}" for at, parameter in enumerate(needed, start=1)
    )


def _first(function: Function) -> str:
    """The first sentence about a function."""
    return function.about.partition(". ")[0].rstrip(".") + "."


def _function_text(function: Function) -> str:
    lines = [f"{function.signature}   ({function.family})", "", function.about]
    if function.examples:
        lines += ["", *(f"  {example.call} gives {example.gives}" for example in function.examples)]
    return "\n".join(lines)


DEFAULT_FOLDER = Path(".polynya") / "schema"

app = command_group("schema", "JSON Schema of project and task files.")


@app.command
def export(folder: Path | None = None, *, check: bool = False, context: Context) -> int:
    """Write the JSON Schemas, for editors and other tools.

    For example: `polynya schema export --check`.

    Args:
        folder: where to; default `.polynya/schema` in the project.
        check: write nothing; fail when a file is missing or out of date.
    """
    target = folder or context.options.project / DEFAULT_FOLDER
    if check:
        _check(target)
        paths = [target / file for file in SCHEMA_FILES]
    else:
        paths = write_schemas(target)
    for path in paths:
        status = "up to date" if check else "written"
        context.output.result("schema", {"path": path, "status": status}, f"{status}: {path}")
    return ExitCode.OK


def _check(folder: Path) -> None:
    outdated = outdated_schemas(folder)
    if outdated:
        files = ", ".join(path.name for path in outdated)
        raise PUBLISHED_FILES_OUTDATED(where=str(folder), files=files)


def explain(code: str | None = None, *, context: Context) -> None:
    """Explain an error code; without one, list all.

    For example: `polynya explain CFG-007`.

    Args:
        code: a code such as POLYNYA-CFG-007; its last two parts are enough.
    """
    entries = list(ERROR_PAGES.values()) if code is None else [_entry(code)]
    for entry in entries:
        parts = entry.parts()
        data = {"code": entry.code, "title": entry.title, "text": entry.page, **parts}
        if code is None:
            text = f"{entry.code}  {entry.title}"
        else:
            known = "\n".join(f"  {name}: {part}" for name, part in parts.items() if part)
            paragraphs = (f"{entry.code}: {entry.title}", known, entry.page)
            text = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
        context.output.result("explanation", data, text)


def _entry(code: str) -> ErrorEntry[Any]:
    wanted = code.strip().strip("[]").upper()
    full = f"POLYNYA-{wanted.removeprefix('POLYNYA-')}"
    if full in ERROR_PAGES:
        return ERROR_PAGES[full]
    hint = suggest(full, list(ERROR_PAGES)) or ""
    fix = hint.partition(" allowed here:")[0] if hint.startswith("did") else None
    raise WRONG_USAGE(
        f"there is no error code `{wanted[:60]}`", fix=fix or "`polynya explain` lists all"
    )


Shell: TypeAlias = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, /, *, context: Context) -> int:
    """Print the script that lets a shell complete commands, options and their values.

    Options that all commands take, such as `--project`, are among them.

    For bash: `eval "$(polynya completion bash)"` in `~/.bashrc`. For zsh: write it to a file
    `_polynya` in a folder of `$fpath`. For fish: write it to
    `~/.config/fish/completions/polynya.fish`.

    For example: `polynya completion bash`.

    Args:
        shell: `bash`, `zsh` or `fish`.
    """
    # Start-up time: to know all options it loads every command.
    from polynya.cli.commands import COMMANDS, build_app

    app = build_app([command.name for command in COMMANDS])
    # They are parsed before the command, so no command has them itself.
    app.meta.default(global_flags)
    script = app.generate_completion(shell=shell)
    context.output.result("completion", {"shell": shell, "script": script}, script)
    return ExitCode.OK
