"""`polynya preview`: what the next files would become. Nothing is written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from cyclopts import Parameter

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.inspect.preview_text import preview_text
from polynya.cli.options import usage_error
from polynya.cli.project.init import proposed_project
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.evolution import policy_in_words
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.config.task import StorageTask
from polynya.model.documents.problems import suggest
from polynya.model.errors import PolynyaError
from polynya.model.reading.loader import PROJECT_FILES, LoadedProject, load_project

if TYPE_CHECKING:
    from polynya.engine.preview.seen import DatasetPreview
    from polynya.lake.copy.mapping.values import Session

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
        context: given by `main`.
    """
    if limit < 1:
        raise usage_error("`--limit` is 1 or more")
    if output == "table" and context.output.is_json:
        raise usage_error("`--json` and `--output table` exclude each other")
    # Start-up time: pyarrow, and the readers of all formats.
    from polynya.engine.preview.project import previews

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
    from polynya.engine.preview.messages import Sources
    from polynya.engine.preview.project import landing_zone
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
            raise usage_error(
                f"no dataset is called `{pattern}`", suggest(pattern, sorted({*self._names}))
            )


def _project(context: CommandContext, file: Path | None, folder: Path) -> LoadedProject:
    """The project, or one in a folder that is proposed for a file where there is none."""
    place = context.options.project
    if file is None or any((place / name).is_file() for name in PROJECT_FILES):
        return context.load()
    if not file.is_file():
        raise usage_error(f"there is no file `{file}`")
    proposed_project(file, folder)
    context.output.note("there is no project here: settings as `polynya init --from` proposes them")
    return load_project(folder)


def _session(context: CommandContext, project: LoadedProject, folder: Path) -> Session:
    """Starts Spark, with nothing of the project's, when something takes SQL."""

    @cache
    def started() -> Any:
        from polynya.engine import start

        with context.starting(project):
            return start.start_spark(start.throwaway(project, folder))

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
