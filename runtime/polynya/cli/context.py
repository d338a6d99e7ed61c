"""What every command is given: the global options, the output, and the project on demand."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from polynya.cli.options import GlobalOptions
from polynya.cli.output import Output
from polynya.model.reading.loader import LoadedProject, load_project
from polynya.observe.run import StepProgress


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
        """Show people until the end of the block that Spark starts."""
        step = StepProgress(subject=project.project.name, step="starting", detail="Spark")
        return self.output.waiting(step)


Context: TypeAlias = Annotated[CommandContext, Parameter(parse=False)]
"""The type of a command's keyword parameter `context`, which `main` fills in."""


def verb_app(name: str, text: str) -> App:
    """Return an App with the conventions of all verbs: plain help, no `--no-x` beside `--x`."""
    return App(
        name=name,
        help=text,
        help_format="plaintext",
        result_action="return_value",
        default_parameter=Parameter(negative=()),
    )
