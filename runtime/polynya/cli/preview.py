"""`polynya preview`: what the next files would become. Nothing is written."""

from __future__ import annotations

import shutil
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from cyclopts import Parameter

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import grid, value_text
from polynya.cli.init import proposed_project
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.evolution import policy_in_words
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import PolynyaError
from polynya.model.loader import PROJECT_FILES, LoadedProject, load_project
from polynya.observe.events import counted

if TYPE_CHECKING:
    from polynya.engine.commands.preview_fold import DatasetPreview, PreviewColumn, PreviewMessages
    from polynya.lake.copy.values import Session


Form: TypeAlias = Literal["table", "json"]
#: Records, rows and refusals that are shown, unless `--limit` says otherwise.
SHOWN: Final = 5
#: Characters of a line where no terminal says how many it has.
_WIDTH: Final = 80


def preview(
    *datasets: str,
    file: Path | None = None,
    limit: int = SHOWN,
    output: Annotated[Form | None, Parameter(name=["--output", "-o"])] = None,
    context: Context,
) -> int:
    """Show what the next files would become, without writing anything.

    For each dataset it shows the columns with their types and the origin of each type, the keys,
    operation and order of the first records, the resulting rows of the live view, quarantined
    records with their rules, the policies that would decide, and settings that name no column. It
    reads up to 10,000 records, and no stored rows. It needs no Java, unless a condition such as
    `apply_as_deletes` is more than a comparison with texts, or a mapped column more than a column
    or a field.

    With the name of a `streaming_landing` task it reads the source: up to 1,000 messages that have
    not landed, how they are decoded, and those that a table would quarantine. It also reads the
    source of a table that reads its stream itself (`direct: true`). Kafka needs Java.

    With `--file` it previews one file from any folder, as if it had just landed. Without a project
    it uses the settings that `polynya init --from` would propose.

    Exit code 2 when a setting names a missing column, 1 when a run would copy nothing of a dataset
    for another reason.

    For example: `polynya preview shop.users --limit 20`.

    Args:
        datasets: names or globs of datasets, with or without their schema, or of tasks. Default:
            all, except landings.
        file: a file to preview instead of landed ones.
        limit: number of records, rows and rejected records to show for each dataset.
        output: `table` (default), or `json` with all values whole.
    """
    if limit < 1:
        raise WRONG_USAGE("`--limit` is 1 or more")
    if output == "table" and context.output.is_json:
        raise WRONG_USAGE("`--json` and `--output table` exclude each other")
    # Start-up time: pyarrow, and the readers of all formats.
    from polynya.engine.commands.preview_project import previews

    selection = _Selection(datasets)
    code: int = ExitCode.OK
    with tempfile.TemporaryDirectory(
        prefix="polynya-preview-", ignore_cleanup_errors=True
    ) as folder:
        project = _project(context, file, Path(folder, "proposed"))
        session = _session(context, project, Path(folder, "spark"))
        results = previews(
            project,
            selection.of_dataset,
            session,
            limit=limit,
            file=file,
            may_read=selection.of_task,
        )
        sources = _sources(project, selection, session, Path(folder, "messages"), limit)
        for result in results if file is not None else chain(sources, results):
            code = max(code, _show(context, result, output))
    selection.refuse_unmatched()
    return code


def _sources(
    project: LoadedProject, selection: _Selection, session: Session, folder: Path, limit: int
) -> Iterator[DatasetPreview | PolynyaError]:
    """The next batches of the named landings; this reads their sources."""
    wanted = [task for task in project.landings if selection.of_landing(task)]
    if not wanted:
        return
    # Start-up time: the sources, and what they need.
    from polynya.engine.commands.preview_messages import LandingPreviewer
    from polynya.engine.commands.preview_project import landing_zone
    from polynya.store.clock import SystemClock

    zone, access = landing_zone(project), project.target.aws
    sources = LandingPreviewer(zone, access, session, folder, SystemClock(), limit)
    for task in wanted:
        yield from sources.previews(task)


class _Selection:
    """The datasets, tasks and landings that patterns select."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._unmatched = dict.fromkeys(patterns)
        self._patterns = patterns
        self._names: list[str] = []

    def of_dataset(self, task: StorageTask, dataset: ResolvedDataset) -> bool:
        """Whether a dataset is selected."""
        names = dataset.relations
        self._names += [names.current, names.view]
        return self._matches((names.current, names.view, dataset.name, task.name))

    def of_task(self, task: StorageTask) -> bool:
        """Whether a task may have a selected dataset."""
        self._names.append(task.name)
        schema = [pattern for pattern in self._patterns if pattern.startswith(f"{task.schema_}.")]
        return self._matches((task.name, *schema))

    def of_landing(self, task: StreamingLanding) -> bool:
        """Whether a landing is selected; without patterns none is."""
        self._names.append(task.name)
        return not task.direct and bool(self._patterns) and self._matches((task.name,))

    def _matches(self, names: Sequence[str]) -> bool:
        matches = [
            pattern
            for pattern in self._patterns
            if any(fnmatchcase(name, pattern) for name in names)
        ]
        for pattern in matches:
            self._unmatched.pop(pattern, None)
        return bool(matches) or not self._patterns

    def refuse_unmatched(self) -> None:
        """Raise for a pattern that no dataset matched."""
        for pattern in self._unmatched:
            raise WRONG_USAGE(
                f"no dataset is called `{pattern}`", fix=suggest(pattern, sorted({*self._names}))
            )


def _project(context: CommandContext, file: Path | None, folder: Path) -> LoadedProject:
    """The project; without one, a project that is proposed for the file, in a folder."""
    place = context.options.project
    if file is None or any((place / name).is_file() for name in PROJECT_FILES):
        return context.load()
    if not file.is_file():
        raise WRONG_USAGE(f"there is no file `{file}`")
    proposed_project(file, folder)
    context.output.note("there is no project here: settings as `polynya init --from` proposes them")
    return load_project(folder)


def _session(context: CommandContext, project: LoadedProject, folder: Path) -> Session:
    """Starts Spark with an empty catalog, if something needs SQL."""

    @cache
    def started() -> Any:
        from polynya.engine import session

        with context.starting(project):
            return session.start_spark(session.throwaway(project, folder))

    return started


def _show(context: CommandContext, result: DatasetPreview | PolynyaError, form: Form | None) -> int:
    """Show a preview; returns its exit code."""
    out = context.output
    if isinstance(result, PolynyaError):
        out.error(result)
        return result.exit_code
    if form == "json" and not out.is_json:
        out.row({"type": "preview.dataset", **_data(result)})
    else:
        width = shutil.get_terminal_size().columns if out.is_screen else _WIDTH
        out.result("preview.dataset", _data(result), preview_text(result, width))
    if result.unknown is not None:
        out.error(result.unknown)
        return result.unknown.exit_code
    return ExitCode.FAILED if result.is_refused else ExitCode.OK


def _data(result: DatasetPreview) -> dict[str, object]:
    """A preview as JSON."""
    return {
        "dataset": result.dataset,
        "task": result.task,
        "format": result.format,
        "new": result.is_new,
        "no_table": result.is_rest,
        "load": result.load,
        "files": result.files,
        "files_waiting": result.files_waiting,
        "records_read": result.looked_at,
        "more": result.is_cut,
        "keys": result.keys,
        "sequence_by": result.sequence_by,
        "columns": [
            {"name": c.name, "type": c.type, "from": c.origin, "key": c.is_key, "was": c.was}
            for c in result.columns
        ],
        "except_columns": result.excluded,
        "changes": [
            {"change": c.kind, "policy": policy_in_words(c.policy), "says": str(c)}
            for c in result.changes
        ],
        "refused": result.halted,
        "unknown_columns": None if result.unknown is None else result.unknown.message,
        "records": [
            {
                "file": r.file,
                "record": r.number,
                "operation": r.operation,
                "sequence": r.sequence,
                "key": r.key,
            }
            for r in result.records
        ],
        "row_count": result.row_count,
        "rows": [{"values": row.values, "stored": row.stored} for row in result.rows],
        "filtered": result.filtered,
        "quarantined": result.quarantined,
        "quarantine": [
            {"file": r.file, "record": r.number, "rule": r.rule, "error": r.error}
            for r in result.refused
        ],
        "notes": result.notes,
        "messages": None if result.messages is None else asdict(result.messages),
    }


#: The origin of the type of a column, in words.
_ORIGINS: Final = {
    "declared": "declared in `columns`",
    "table": "the table",
    "schema": "declared by the source",
    "inferred": "inferred from the values",
    "expression": "of its expression",
    "nothing": "only NULL so far",
}
_OPERATIONS: Final = {
    "L": "load", "I": "insert", "U": "upsert", "D": "delete", "T": "truncate",
}  # fmt: skip
_INDENT: Final = "  "


def preview_text(result: DatasetPreview, width: int) -> str:
    """A preview in lines of at most `width` characters, except for long words."""
    title = result.dataset
    if result.is_rest:
        title += ": records of no table"
    elif result.messages is not None:
        title += ": messages that have not landed"
    lines = [title, *_facts(result, width)]
    if result.columns:
        lines += ["", f"{_INDENT}columns", *_columns(result.columns, width)]
    if result.changes:
        lines += ["", f"{_INDENT}changes of the source, and the policy that decides"]
        for change in result.changes:
            text = f"{change.kind}: {policy_in_words(change.policy)}: {change}"
            lines += _wrapped(text, width, 2 * _INDENT)
    if result.records:
        lines += [
            "",
            f"{_INDENT}records, the first {len(result.records)}",
            *_records(result, width),
        ]
    if result.files and not result.is_rest:
        lines += ["", *_rows(result, width)]
    if result.refused:
        lines += ["", *_quarantine(result, width)]
    return "\n".join(map(_printable, [*lines, ""]))


def _facts(result: DatasetPreview, width: int) -> Iterator[str]:
    table = "; no table yet" if result.is_new else "; has a table"
    facts: dict[str, str] = {
        "task": f"{result.task}, {result.format}{'' if result.is_rest else table}"
    }
    if result.messages is not None:
        facts |= dict(_messages(result, result.messages))
    elif not result.files:
        facts["files"] = "nothing new has landed"
    else:
        facts["files"] = _files(result)
        facts["records"] = _counts(result)
        if not result.is_rest:
            facts["keys"] = ", ".join(result.keys) or "none: every record is appended"
        if result.sequence_by:
            facts["order"] = f"by {', '.join(result.sequence_by)}"
    if result.excluded:
        facts["left out"] = ", ".join(result.excluded)
    if result.halted is not None:
        facts["REFUSED"] = f"a run would copy nothing of it: {result.halted}"
    for name, text in facts.items():
        yield from _wrapped(text, width, _INDENT, f"{name:<9}")
    for note in result.notes:
        yield from _wrapped(note, width, _INDENT, f"{'note':<9}")


def _messages(result: DatasetPreview, read: PreviewMessages) -> Iterator[tuple[str, str]]:
    more = f"; {counted(read.behind, read.unit[:-1])} behind" if read.behind else ""
    yield "task", f"{result.task}, lands {read.source}, content {read.content}"
    yield "messages", f"{read.count:,} read of {', '.join(read.streams)}{more}"
    if result.files:
        yield "records", _counts(result)


def _files(result: DatasetPreview) -> str:
    kind = "a full load" if result.load else "changes"
    more = result.files_waiting - len(result.files)
    named = ", ".join(result.files[:2])
    if len(result.files) > 2:
        named += f" and {len(result.files) - 2:,} more"
    return f"{named} ({kind})" + (f"; {more:,} more are waiting" if more > 0 else "")


def _counts(result: DatasetPreview) -> str:
    rejected = sum((result.quarantined or {}).values())
    filtered = result.filtered or {}
    text = f"{result.looked_at:,} read"
    if result.is_cut:
        text = f"the first {result.looked_at:,} read; later ones may change types"
    if rejected:
        text += f"; {rejected:,} to quarantine"
    left_out = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in filtered.items()]
    return text + (f"; left out: {', '.join(left_out)}" if left_out else "")


def _columns(columns: Sequence[PreviewColumn], width: int) -> Iterator[str]:
    rows = []
    for column in columns:
        origin = _ORIGINS[column.origin]
        if column.was is not None:
            origin += f", was {column.was}"
        rows.append([column.name, column.type, origin + (", key" if column.is_key else "")])
    yield from grid(("name", "type", "from"), rows, width, 2 * _INDENT)


def _records(result: DatasetPreview, width: int) -> Iterator[str]:
    order = list(result.records[0].sequence)
    keys = [name for name in result.keys if name not in order]
    rows = [
        [
            record.file.rpartition("/")[2],
            str(record.number),
            _OPERATIONS.get(record.operation, record.operation),
            *(value_text(record.sequence[name]) for name in order),
            *(value_text(record.key[name]) for name in keys),
        ]
        for record in result.records
    ]
    yield from grid(("file", "record", "operation", *order, *keys), rows, width, 2 * _INDENT)


def _rows(result: DatasetPreview, width: int) -> Iterator[str]:
    noun = "row" if result.row_count == 1 else "rows"
    shown = "" if len(result.rows) == result.row_count else f", the first {len(result.rows)}"
    alone = "" if result.is_new else ", by these records alone"
    if result.messages is None:
        yield f"{_INDENT}{result.row_count:,} {noun} in the live view{alone}{shown}"
    else:
        yield f"{_INDENT}{_plural(result.row_count, 'record')} of these messages{shown}"
    if not result.rows:
        return
    names = list(result.rows[0].values)
    rows = [[_cell(row.values, row.stored, name) for name in names] for row in result.rows]
    yield from grid(names, rows, width, 2 * _INDENT)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _cell(values: Mapping[str, object], stored: Sequence[str], name: str) -> str:
    return "(as stored)" if name in stored else value_text(values[name])


def _quarantine(result: DatasetPreview, width: int) -> Iterator[str]:
    counts = result.quarantined or {}
    total = sum(counts.values())
    by_rule = ", ".join(f"{count:,} {rule}" for rule, count in counts.items())
    shown = "" if len(result.refused) == total else f"; the first {len(result.refused)}"
    yield f"{_INDENT}to quarantine: {by_rule}{shown}"
    for record in result.refused:
        place = "the whole file" if record.number is None else f"record {record.number}"
        text = f"{record.file.rpartition('/')[2]}, {place}: {record.error}"
        yield from _wrapped(text, width, 2 * _INDENT)


def _wrapped(text: str, width: int, indent: str, head: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent + head,
        subsequent_indent=indent + " " * (len(head) or 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _printable(line: str) -> str:
    """A line without control characters: names and values come from files."""
    return "".join(character if character.isprintable() else "�" for character in line)
