"""Reading the folder `config/`: every stage and the pipeline, all errors at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from polynya.model.documents.files import DocumentFile, document_files, parse_file, read_file
from polynya.model.documents.problems import located
from polynya.model.error_catalogue.cluster import STAGE_UNKNOWN
from polynya.model.errors import ConfigError, ConfigErrors
from stacks.settings.catalog_checks import shared_databases
from stacks.settings.checks import (
    overlapping_stages,
    pipeline_problems,
    stage_problems,
)
from stacks.settings.pipeline import PipelineConfig
from stacks.settings.stage import StageConfig

_PIPELINE: Final = "pipeline"


@dataclass(frozen=True, slots=True)
class Deployment:
    """What the files describe: stages in the order of their names, and perhaps a pipeline."""

    stages: tuple[StageConfig, ...]
    pipeline: PipelineConfig | None

    def stage(self, name: str) -> StageConfig:
        """Return the stage of that name, which has to exist."""
        return next(stage for stage in self.stages if stage.name == name)


def load_deployment(directory: Path, *, environment: Mapping[str, str] | None = None) -> Deployment:
    """Load the stage files and, if there is one, `pipeline.yml` of a folder.

    Args:
        directory: the folder.
        environment: variables for `${env:NAME}`; default the process's own.

    Raises:
        ConfigErrors: with every error of every file.
    """
    variables = os.environ if environment is None else environment
    errors: list[ConfigError] = []
    files: dict[str, DocumentFile] = {}
    for path in document_files(directory):
        shown_as = f"{directory.name}/{path.name}"
        file = read_file(path, shown_as, variables, errors)
        if file and path.stem in files:
            message = f"{shown_as} and {files[path.stem].shown_as} describe the same"
            errors.append(STAGE_UNKNOWN(message, fix="keep one of them"))
        elif file:
            files[path.stem] = file
    pipeline_file = files.pop(_PIPELINE, None)
    stages = _stages(files, errors)
    pipeline = None
    if pipeline_file:
        pipeline = parse_file(pipeline_file, PipelineConfig, "pipeline", errors)
    if pipeline and pipeline_file:
        # A stage whose file is broken has errors of its own; it exists all the same.
        names = [path.stem for path in document_files(directory) if path.stem != _PIPELINE]
        described = {stage.name: stage for stage in stages.values()}
        problems = pipeline_problems(pipeline, names, described)
        errors.extend(located(problems, pipeline_file.document, pipeline_file.shown_as))
    if not files and not errors:
        errors.append(
            STAGE_UNKNOWN(
                "there is no stage file",
                where=directory.name,
                fix="write one, for example `dev.yml`; docs/deploy.md tells how",
            )
        )
    if errors:
        raise ConfigErrors(errors)
    return Deployment(tuple(stages.values()), pipeline)


def _stages(files: Mapping[str, DocumentFile], errors: list[ConfigError]) -> dict[str, StageConfig]:
    """Return the stages by the names of their files; what is wrong goes to `errors`."""
    stages: dict[str, StageConfig] = {}
    by_file = {file.shown_as: file for file in files.values()}
    for stem, file in files.items():
        stage = parse_file(file, StageConfig, "stage", errors)
        if stage:
            stages[file.shown_as] = stage
            errors.extend(located(stage_problems(stage, stem), file.document, file.shown_as))
    for shown_as, problem in chain(overlapping_stages(stages), shared_databases(stages)):
        errors.extend(located([problem], by_file[shown_as].document, shown_as))
    return stages
