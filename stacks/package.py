"""`python -m stacks.package`: build what the nodes of a stage fetch, and say how large it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from polynya.model.error_catalogue.machine import PACKAGE_NOT_BUILT
from polynya.model.errors import ConfigErrors
from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.dependencies import BuildError, build_dependencies
from polynya_constructs.packaging.job_environment import build_job_environment
from polynya_constructs.packaging.package import Archive, Dependencies, write_code
from stacks.settings.cluster_checks import PROJECT
from stacks.settings.loader import load_deployment
from stacks.settings.stage import StageConfig

PACKAGES = PROJECT / "build" / "package"
"""Where the archives lie."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what is missing; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stacks.package", description=__doc__)
    parser.add_argument("--arch", choices=[*Architecture, "all"], help="for these processors")
    parser.add_argument("--stage", help="for the clusters of this stage; default: of all stages")
    options = parser.parse_args(arguments)
    try:
        wanted = _wanted(options.arch, options.stage)
        if wanted:
            _tell("code", write_code(PROJECT, PACKAGES))
        for architecture in wanted:
            archive = build_dependencies(PROJECT, PACKAGES, architecture)
            _tell(f"dependencies, {architecture}", archive)
        for architecture in _wanted_by_jobs(options.arch, options.stage):
            build_dependencies(PROJECT, PACKAGES, architecture)
            dependencies = Dependencies.of(PROJECT, PACKAGES, architecture)
            code = write_code(PROJECT, PACKAGES)
            archive = build_job_environment(PACKAGES, dependencies, code)
            _tell(f"jobs of EMR Serverless and Glue, {architecture}", archive)
    except ConfigErrors as errors:
        print(errors.render(), file=sys.stderr)
        return errors.exit_code
    except (BuildError, OSError) as problem:
        error = PACKAGE_NOT_BUILT(
            f"the runtime package cannot be built: {problem}",
            where=str(PACKAGES),
            state="nothing was deployed; the package of the previous build is kept",
            fix="fix what the message names, and run `make package` again",
        )
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


def _wanted(arch: str | None, stage: str | None) -> list[Architecture]:
    """Return the architectures to build for, in a fixed order."""
    if arch:
        return [a for a in Architecture if arch in (a, "all")]
    used = {a for each in _stages(stage) for a in each.package_architectures}
    return [a for a in Architecture if a in used]


def _wanted_by_jobs(arch: str | None, stage: str | None) -> list[Architecture]:
    """Return those for which the archive of jobs is built: of a stage, where it has jobs."""
    if arch:
        return _wanted(arch, stage)
    used = {a for each in _stages(stage) for a in each.job_architectures}
    return [a for a in Architecture if a in used]


def _stages(stage: str | None) -> list[StageConfig]:
    every = load_deployment(PROJECT / "config").stages
    return [each for each in every if stage in (None, each.name)]


def _tell(what: str, archive: Archive) -> None:
    megabytes = archive.path.stat().st_size / 1_000_000
    place = archive.path.relative_to(PROJECT)
    print(f"{what}: {megabytes:.1f} MB, {place}, SHA-256 {archive.sha256}")


if __name__ == "__main__":
    sys.exit(main())
