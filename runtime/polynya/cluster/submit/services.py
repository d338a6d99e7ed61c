"""What `engine: emr_serverless` and `engine: glue` mean on this machine.

A task that names no application and no job takes those that the stage made for its cluster. The
machine says in its environment which these are, so their code needs no other permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from polynya.model.config.engines import EmrServerlessEngine, Submitted
from polynya.model.error_catalogue.cluster import JOB_SERVICE_MISSING, JOB_SERVICE_WRONG
from polynya.store.node_folders import EMR_JOBS, GLUE_JOB

_OF_EMR: Final = ("application_id", "execution_role", "entry_point", "environment")
_OF_GLUE: Final = ("job_name",)


def is_of_stage(engine: Submitted) -> bool:
    """Whether an engine leaves it to the machine which application or job it is."""
    if isinstance(engine, EmrServerlessEngine):
        return engine.application_id is None
    return engine.job_name is None


def completed(
    engine: Submitted, task: str, environment: Mapping[str, str] | None = None
) -> Submitted:
    """The engine of a task with what the machine says of it; the same if it says all itself.

    Args:
        engine: what the task, or the target, says.
        task: its name, for errors.
        environment: of the machine; default: of this process.

    Raises:
        ConfigError: the machine has no such service, or its variable says what cannot be.
    """
    if not is_of_stage(engine):
        return engine
    on_emr = isinstance(engine, EmrServerlessEngine)
    known, names = (EMR_JOBS, _OF_EMR) if on_emr else (GLUE_JOB, _OF_GLUE)
    words = known.words(environment)
    where = f"task {task}"
    if not words:
        raise JOB_SERVICE_MISSING(where=where, engine=engine.mode, variable=known.variable)
    if len(words) != len(names):
        problem = f"{len(words)} words instead of {len(names)}"
        raise JOB_SERVICE_WRONG(where=where, variable=known.variable, problem=problem)
    given: dict[str, Any] = dict(zip(names, words, strict=True))
    try:
        return type(engine).model_validate({**engine.model_dump(), **given})
    except ValidationError as error:
        problem = "; ".join(str(one["msg"]) for one in error.errors())
        raise JOB_SERVICE_WRONG(where=where, variable=known.variable, problem=problem) from error
