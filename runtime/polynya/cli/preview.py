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


#: Where the type of a column comes from, in words.
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


def preview_text(one: DatasetPreview, width: int) -> str:
    """All that a preview says, in lines of at most `width` characters, but for long words."""
    title = one.dataset
    if one.is_rest:
        title += ": records of no table"
    elif one.messages is not None:
        title += ": messages that have not landed"
    lines = [title, *_facts(one, width)]
    if one.columns:
        lines += ["", f"{_INDENT}columns", *_columns(one.columns, width)]
    if one.changes:
        lines += ["", f"{_INDENT}changes of the source, and the policy that decides"]
        for change in one.changes:
            text = f"{change.kind}: {policy_in_words(change.policy)}: {change}"
            lines += _wrapped(text, width, 2 * _INDENT)
    if one.records:
        lines += ["", f"{_INDENT}records, the first {len(one.records)}", *_records(one, width)]
    if one.files and not one.is_rest:
        lines += ["", *_rows(one, width)]
    if one.refused:
        lines += ["", *_quarantine(one, width)]
    return "\n".join(map(_printable, [*lines, ""]))


def _facts(one: DatasetPreview, width: int) -> Iterator[str]:
    table = "; no table yet" if one.is_new else "; has a table"
    facts: dict[str, str] = {"task": f"{one.task}, {one.format}{'' if one.is_rest else table}"}
    if one.messages is not None:
        facts |= dict(_messages(one, one.messages))
    elif not one.files:
        facts["files"] = "nothing new has landed"
    else:
        facts["files"] = _files(one)
        facts["records"] = _counts(one)
        if not one.is_rest:
            facts["keys"] = ", ".join(one.keys) or "none: every record is appended"
        if one.sequence_by:
            facts["order"] = f"by {', '.join(one.sequence_by)}"
    if one.excluded:
        facts["left out"] = ", ".join(one.excluded)
    if one.halted is not None:
        facts["REFUSED"] = f"a run would copy nothing of it: {one.halted}"
    for name, text in facts.items():
        yield from _wrapped(text, width, _INDENT, f"{name:<9}")
    for note in one.notes:
        yield from _wrapped(note, width, _INDENT, f"{'note':<9}")


def _messages(one: DatasetPreview, read: PreviewMessages) -> Iterator[tuple[str, str]]:
    more = f"; {counted(read.behind, read.unit[:-1])} behind" if read.behind else ""
    yield "task", f"{one.task}, lands {read.source}, content {read.content}"
    yield "messages", f"{read.count:,} read of {', '.join(read.streams)}{more}"
    if one.files:
        yield "records", _counts(one)


def _files(one: DatasetPreview) -> str:
    kind = "a full load" if one.load else "changes"
    more = one.files_waiting - len(one.files)
    named = ", ".join(one.files[:2])
    if len(one.files) > 2:
        named += f" and {len(one.files) - 2:,} more"
    return f"{named} ({kind})" + (f"; {more:,} more are waiting" if more > 0 else "")


def _counts(one: DatasetPreview) -> str:
    rejected = sum((one.quarantined or {}).values())
    filtered = one.filtered or {}
    text = f"{one.looked_at:,} read"
    if one.is_cut:
        text = f"the first {one.looked_at:,} read; later ones may change types"
    if rejected:
        text += f"; {rejected:,} to quarantine"
    left_out = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in filtered.items()]
    return text + (f"; left out: {', '.join(left_out)}" if left_out else "")


def _columns(columns: Sequence[PreviewColumn], width: int) -> Iterator[str]:
    rows = []
    for one in columns:
        origin = _ORIGINS[one.origin]
        if one.was is not None:
            origin += f", was {one.was}"
        rows.append([one.name, one.type, origin + (", key" if one.is_key else "")])
    yield from grid(("name", "type", "from"), rows, width, 2 * _INDENT)


def _records(one: DatasetPreview, width: int) -> Iterator[str]:
    order = list(one.records[0].sequence)
    keys = [name for name in one.keys if name not in order]
    rows = [
        [
            record.file.rpartition("/")[2],
            str(record.number),
            _OPERATIONS.get(record.operation, record.operation),
            *(value_text(record.sequence[name]) for name in order),
            *(value_text(record.key[name]) for name in keys),
        ]
        for record in one.records
    ]
    yield from grid(("file", "record", "operation", *order, *keys), rows, width, 2 * _INDENT)


def _rows(one: DatasetPreview, width: int) -> Iterator[str]:
    noun = "row" if one.row_count == 1 else "rows"
    shown = "" if len(one.rows) == one.row_count else f", the first {len(one.rows)}"
    alone = "" if one.is_new else ", by these records alone"
    if one.messages is None:
        yield f"{_INDENT}{one.row_count:,} {noun} in the live view{alone}{shown}"
    else:
        yield f"{_INDENT}{_plural(one.row_count, 'record')} of these messages{shown}"
    if not one.rows:
        return
    names = list(one.rows[0].values)
    rows = [[_cell(row.values, row.stored, name) for name in names] for row in one.rows]
    yield from grid(names, rows, width, 2 * _INDENT)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _cell(values: Mapping[str, object], stored: Sequence[str], name: str) -> str:
    return "(as stored)" if name in stored else value_text(values[name])


def _quarantine(one: DatasetPreview, width: int) -> Iterator[str]:
    counts = one.quarantined or {}
    total = sum(counts.values())
    said = ", ".join(f"{count:,} {rule}" for rule, count in counts.items())
    shown = "" if len(one.refused) == total else f"; the first {len(one.refused)}"
    yield f"{_INDENT}to quarantine: {said}{shown}"
    for record in one.refused:
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
    """A line without what would steer a terminal: names and values come from files."""
    return "".join(one if one.isprintable() else "�" for one in line)


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

    choice = _Choice(datasets)
    code: int = ExitCode.OK
    with tempfile.TemporaryDirectory(
        prefix="polynya-preview-", ignore_cleanup_errors=True
    ) as folder:
        project = _project(context, file, Path(folder, "proposed"))
        session = _session(context, project, Path(folder, "spark"))
        found = previews(
            project, choice.of_dataset, session, limit=limit, file=file, may_read=choice.of_task
        )
        sources = _sources(project, choice, session, Path(folder, "messages"), limit)
        for one in found if file is not None else chain(sources, found):
            code = max(code, _tell(context, one, output))
    choice.refuse_unmatched()
    return code


def _sources(
    project: LoadedProject, choice: _Choice, session: Session, folder: Path, limit: int
) -> Iterator[DatasetPreview | PolynyaError]:
    """What landings would land that somebody named: their sources are asked."""
    wanted = [task for task in project.landings if choice.of_landing(task)]
    if not wanted:
        return
    # Start-up time: the sources, and what they need.
    from polynya.engine.commands.preview_messages import Sources
    from polynya.engine.commands.preview_project import landing_zone
    from polynya.store.clock import SystemClock

    zone, access = landing_zone(project), project.target.aws
    sources = Sources(zone, access, session, folder, SystemClock(), limit)
    for task in wanted:
        yield from sources.previews(task)


class _Choice:
    """The datasets that somebody asked for by patterns."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._unmatched = dict.fromkeys(patterns)
        self._patterns = patterns
        self._names: list[str] = []

    def of_dataset(self, task: StorageTask, dataset: ResolvedDataset) -> bool:
        """Whether a dataset is one of them."""
        names = dataset.relations
        self._names += [names.current, names.view]
        return self._matches((names.current, names.view, dataset.name, task.name))

    def of_task(self, task: StorageTask) -> bool:
        """Whether a task may have such a dataset."""
        self._names.append(task.name)
        schema = [one for one in self._patterns if one.startswith(f"{task.schema_}.")]
        return self._matches((task.name, *schema))

    def of_landing(self, task: StreamingLanding) -> bool:
        """Whether a landing is one of them: only one that is named."""
        self._names.append(task.name)
        return not task.direct and bool(self._patterns) and self._matches((task.name,))

    def _matches(self, names: Sequence[str]) -> bool:
        found = [one for one in self._patterns if any(fnmatchcase(name, one) for name in names)]
        for pattern in found:
            self._unmatched.pop(pattern, None)
        return bool(found) or not self._patterns

    def refuse_unmatched(self) -> None:
        """Raise for a pattern that no dataset matched."""
        for pattern in self._unmatched:
            raise WRONG_USAGE(
                f"no dataset is called `{pattern}`", fix=suggest(pattern, sorted({*self._names}))
            )


def _project(context: CommandContext, file: Path | None, folder: Path) -> LoadedProject:
    """The project, or one in a folder that is proposed for a file where there is none."""
    place = context.options.project
    if file is None or any((place / name).is_file() for name in PROJECT_FILES):
        return context.load()
    if not file.is_file():
        raise WRONG_USAGE(f"there is no file `{file}`")
    proposed_project(file, folder)
    context.output.note("there is no project here: settings as `polynya init --from` proposes them")
    return load_project(folder)


def _session(context: CommandContext, project: LoadedProject, folder: Path) -> Session:
    """Starts Spark, with nothing of the project's, when something takes SQL."""

    @cache
    def started() -> Any:
        from polynya.engine import session

        with context.starting(project):
            return session.start_spark(session.throwaway(project, folder))

    return started


def _tell(context: CommandContext, one: DatasetPreview | PolynyaError, form: Form | None) -> int:
    """Show one preview; the exit code that it asks for."""
    out = context.output
    if isinstance(one, PolynyaError):
        out.error(one)
        return one.exit_code
    if form == "json" and not out.is_json:
        out.row({"type": "preview.dataset", **_data(one)})
    else:
        width = shutil.get_terminal_size().columns if out.is_screen else _WIDTH
        out.result("preview.dataset", _data(one), preview_text(one, width))
    if one.unknown is not None:
        out.error(one.unknown)
        return one.unknown.exit_code
    return ExitCode.FAILED if one.is_refused else ExitCode.OK


def _data(one: DatasetPreview) -> dict[str, object]:
    """A preview as programs read it."""
    return {
        "dataset": one.dataset,
        "task": one.task,
        "format": one.format,
        "new": one.is_new,
        "no_table": one.is_rest,
        "load": one.load,
        "files": one.files,
        "files_waiting": one.files_waiting,
        "records_read": one.looked_at,
        "more": one.is_cut,
        "keys": one.keys,
        "sequence_by": one.sequence_by,
        "columns": [
            {"name": c.name, "type": c.type, "from": c.origin, "key": c.is_key, "was": c.was}
            for c in one.columns
        ],
        "except_columns": one.excluded,
        "changes": [
            {"change": c.kind, "policy": policy_in_words(c.policy), "says": str(c)}
            for c in one.changes
        ],
        "refused": one.halted,
        "unknown_columns": None if one.unknown is None else one.unknown.message,
        "records": [
            {
                "file": r.file,
                "record": r.number,
                "operation": r.operation,
                "sequence": r.sequence,
                "key": r.key,
            }
            for r in one.records
        ],
        "row_count": one.row_count,
        "rows": [{"values": row.values, "stored": row.stored} for row in one.rows],
        "filtered": one.filtered,
        "quarantined": one.quarantined,
        "quarantine": [
            {"file": r.file, "record": r.number, "rule": r.rule, "error": r.error}
            for r in one.refused
        ],
        "notes": one.notes,
        "messages": None if one.messages is None else asdict(one.messages),
    }
