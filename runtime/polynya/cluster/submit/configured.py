"""The project of a job, from the bucket or folder that keeps the configuration of nodes.

It is apart from `entry.py`, which users copy to S3 alone and which may need only Python.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from polynya.model.config.aws import AwsAccess
from polynya.model.loader import LoadedProject, load_project
from polynya.model.names import S3Location, parse_location
from polynya.store.config_bucket import BucketSource
from polynya.store.configuration import POINTER, ConfigurationSource, FolderSource, write_to
from polynya.store.places import store_at


def source_of(config: str, work: Path) -> tuple[ConfigurationSource, Path]:
    """The source that a text names, and what relative places of its targets are relative to.

    A folder into which configuration is pushed is one as a bucket is.
    """
    place = parse_location(config, Path.cwd(), "--config")
    if isinstance(place, Path) and not (place / POINTER).exists():
        return FolderSource(place), place
    # The target says how AWS is reached, and it is still to be read: what the SDK finds has to do.
    store = store_at(place, AwsAccess())
    return BucketSource(store, config), work if isinstance(place, S3Location) else place


def load_from(config: str, target: str | None, base: Path | None) -> LoadedProject:
    """Load the project that is kept at a place; broken task files are left out.

    Args:
        config: a folder, or `s3://BUCKET/PREFIX`.
        target: its name, None for the default.
        base: what relative places of the target are relative to; default: the folder, with a bucket
            the current one.

    Raises:
        PolynyaError: the place cannot be read, or its project file is wrong.
    """
    source, own = source_of(config, Path.cwd())
    with tempfile.TemporaryDirectory(prefix="polynya-") as scratch:
        folder = Path(scratch) / "project"
        write_to(source.read(), folder)
        return load_project(folder, target, tolerant=True, base=base or own)
