"""The context of each command: global options, output, the project, selected datasets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar

from cyclopts import App, Parameter

from polynya.cli.format import to_json
from polynya.cli.options import GlobalOptions
from polynya.cli.output import JsonOutput, Output
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.loader import LoadedProject, load_project
from polynya.observe.events import Event, Level, StepProgress
from polynya.observe.metrics import MetricsSink, Minute, PrometheusText, emf_records
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from polynya.engine.inventory import ProjectTable


def voice(output: JsonOutput) -> Callable[[Event], None]:
    """Write events as lines; a closed pipe is ignored."""

    def tell(event: Event) -> None:
        if event.level is Level.PROGRESS:
            # Logs of an agent have results only.
            return
        now = SystemClock().now()
        with suppress(OSError):
            output.result(event.type, {"at": now, **event.as_json()})

    return tell


def metrics_sink(
    form: Literal["emf", "prometheus"] | None, file: Path | None
) -> MetricsSink | None:
    """The sink of the metrics of each minute; None without metrics."""
    if form is None:
        if file is not None:
            raise WRONG_USAGE("`--metrics-file` needs `--metrics`")
        return None
    if form == "emf":
        return partial(_write_emf, file)
    if file is None:
        raise WRONG_USAGE("`--metrics prometheus` needs `--metrics-file`")
    return partial(_write_prometheus, file, PrometheusText())


def _write_emf(file: Path | None, minute: Minute) -> None:
    lines = "".join(to_json(record) + "\n" for record in emf_records(minute))
    if file is None:
        sys.stdout.write(lines)
        sys.stdout.flush()
        return
    with file.open("a", encoding="utf-8") as out:
        out.write(lines)


def _write_prometheus(file: Path, text: PrometheusText, minute: Minute) -> None:
    """Replace the file, so that a reader never finds half of it."""
    # The collector reads `*.prom` only.
    new = file.with_name(f".{file.name}.new")
    new.write_text(text.of(minute), encoding="utf-8")
    new.replace(file)


T = TypeVar("T", bound=Task)


def select_storage(project: LoadedProject, patterns: Sequence[str]) -> list[StorageTask]:
    """Like `select_tasks`, but only tasks with tables."""
    return _chosen(project.tasks, patterns)


def select_tasks(project: LoadedProject, patterns: Sequence[str]) -> list[Task]:
    """Tasks of any kind whose names match any of the globs; all of them without a glob.

    A glob that matches nothing is an error.
    """
    return _chosen(project.works, patterns)


def _chosen(tasks: Sequence[T], patterns: Sequence[str]) -> list[T]:
    names = [task.name for task in tasks]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise WRONG_USAGE(f"no task is called `{pattern}`", fix=suggest(pattern, names))
    return [
        task
        for task in tasks
        if not patterns or any(fnmatchcase(task.name, pattern) for pattern in patterns)
    ]


def dataset_table(project: LoadedProject, name: str) -> tuple[ProjectTable, Table]:
    """The dataset that is called `schema.name`, and its internal table as it is now. Needs no JVM.

    Raises:
        ConfigError: no dataset has that name, or nothing was copied to it yet.
    """
    # Start-up time: PyIceberg.
    from polynya.engine.inventory import inventory
    from polynya.lake.spark.catalog import python_catalog

    entries = {
        entry.name: entry
        for entry in inventory(project, python_catalog(project.target))
        if not entry.is_ledger
    }
    entry = entries.get(name)
    if entry is None:
        raise WRONG_USAGE(f"no dataset is called `{name}`", fix=suggest(name, list(entries)))
    if entry.table is None:
        raise WRONG_USAGE(f"nothing was copied to `{name}` yet", fix="`polynya run --once`")
    return entry, entry.table


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The global options and the output of one call of `polynya`."""

    options: GlobalOptions
    output: Output

    def load(self, *, tolerant: bool = False) -> LoadedProject:
        """Load the project that `--project` and `--target` name.

        Raises:
            ConfigErrors: with every error of every file; with `tolerant`, broken task files are
                left out and their errors stand in the result.
        """
        return load_project(self.options.project, self.options.target, tolerant=tolerant)

    def starting(self, project: LoadedProject) -> AbstractContextManager[None]:
        """Show people until the block ends that Spark starts."""
        step = StepProgress(subject=project.project.name, step="starting", detail="Spark")
        return self.output.waiting(step)


Context: TypeAlias = Annotated[CommandContext, Parameter(parse=False)]
"""The type of a command's keyword parameter `context`, which `main` fills in."""


def command_group(name: str, text: str) -> App:
    """Return an App with the conventions of all commands: plain help, no `--no-x` next to `--x`."""
    return App(
        name=name,
        help=text,
        help_format="plaintext",
        result_action="return_value",
        default_parameter=Parameter(negative=()),
    )
