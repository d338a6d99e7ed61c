"""What the verbs of `polynya config` share: the project's files, its bucket, and their meetings."""

from __future__ import annotations

import getpass
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from polynya.cli.context import CommandContext
from polynya.cli.project.validate import project_errors
from polynya.model.bucket.exchange import content_hash
from polynya.model.contract.location import S3Location
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.reading.loader import LoadedProject, load_project
from polynya.store.bucket.config_bucket import ConfigBucket, Origin
from polynya.store.bucket.configuration import FolderSource, Snapshot, write_to
from polynya.store.bucket.git import commit_of
from polynya.store.bucket.memory import recalled, remember
from polynya.store.clock import SystemClock
from polynya.store.places import store_at
from polynya.store.retry import Retry


@dataclass(frozen=True, slots=True)
class Meeting:
    """A project folder and the configuration bucket of its target."""

    project: LoadedProject
    local: Snapshot
    bucket: ConfigBucket

    @property
    def name(self) -> str:
        """The bucket's place, as people write it."""
        return self.bucket.name

    @property
    def met(self) -> Mapping[str, str] | None:
        """See `model/bucket/exchange.py`."""
        return recalled(self.project.directory, self.name)

    def remember(self, files: Mapping[str, bytes]) -> None:
        """The folder has seen that the bucket has these files."""
        hashes = {path: content_hash(content) for path, content in files.items()}
        remember(
            self.project.directory, self.name, {path: one for path, one in hashes.items() if one}
        )

    def origin(self) -> Origin:
        """Who we are. On AWS that is for AWS to say."""
        place, access = self.project.target.config, self.project.target.aws
        if isinstance(place, S3Location):
            # Start-up time: the AWS SDK.
            from polynya.store.aws.probe import identity

            who = identity(access, Retry())
        else:
            who = f"{getpass.getuser()}@{socket.gethostname()}"
        return Origin(who, SystemClock().now(), commit_of(self.project.directory))


def meet(context: CommandContext) -> Meeting:
    """The project, whatever is wrong with its tasks, and its bucket.

    Raises:
        ConfigError: the target names no place for the configuration (POLYNYA-BKT-006).
        ConfigErrors: the project file is broken.
    """
    project = context.load(tolerant=True)
    place = project.target.config
    if place is None:
        raise ConfigError(
            "POLYNYA-BKT-006",
            f"the target {project.target.name} names no place for the configuration",
            fix=f"set `targets.{project.target.name}.config` to `s3://BUCKET/PREFIX` or a folder",
        )
    store = store_at(place, project.target.aws)
    local = FolderSource(project.directory).read()
    return Meeting(project, local, ConfigBucket(store, str(place)))


def errors_of(snapshot: Snapshot, target: str) -> list[ConfigError]:
    """Everything that is wrong with files, as `polynya validate` says it.

    The very bytes are checked, in a folder of their own: a file that somebody saves meanwhile is
    not pushed unchecked.
    """
    with tempfile.TemporaryDirectory(prefix="polynya-") as scratch:
        folder = Path(scratch) / "project"
        write_to(snapshot, folder)
        try:
            return project_errors(load_project(folder, target, tolerant=True))[0]
        except ConfigErrors as errors:
            return list(errors.errors)
