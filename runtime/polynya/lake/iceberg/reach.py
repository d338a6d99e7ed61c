"""Which files of a table Arrow reads and writes by itself, decided with the reason.

What Iceberg's Java side was told about S3 must hold for Arrow too: an option that Arrow has no
counterpart of leaves the files to Java. Nothing here holds a secret; one that a catalog was given
is such an option.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from polynya.store.aws.data_objects import S3Files
from polynya.store.data_files import DataFiles, LocalFiles

#: The FileIO whose options matter.
S3_FILE_IO: Final = "org.apache.iceberg.aws.s3.S3FileIO"
_REGION, _ENDPOINT, _PATH_STYLE = "client.region", "s3.endpoint", "s3.path-style-access"
_ENCRYPTION: Final = "s3.sse."
#: Names of the options that reach S3 begin like this.
_OPTIONS: Final = ("client.", "http-client.", "s3.")
#: Options that decide how fast Java is, not what S3 is asked for.
_OF_JAVA: Final = ("s3.delete.", "s3.multipart.", "s3.retry.", "s3.staging-dir")


@dataclass(frozen=True, slots=True)
class Reach:
    """What reads and what writes the files of a table without the JVM; else the reason."""

    reads: DataFiles | str
    writes: DataFiles | str


def reach_of(location: str, file_io: str, options: Mapping[str, str]) -> Reach:
    """How files below a location are reached, whose table has a FileIO of this Java class.

    `options` are those of the FileIO; for a local location nobody looks at them.
    """
    local = LocalFiles()
    if local.holds(location):
        return Reach(local, local)
    why = _refusal(location, file_io, options)
    if why is not None:
        return Reach(why, why)
    endpoint = options.get(_ENDPOINT)
    path_style = options.get(_PATH_STYLE, "false").lower() == "true"
    files = S3Files(options[_REGION], endpoint, endpoint is not None and not path_style)
    encrypted = options.get(f"{_ENCRYPTION}type", "none")
    if encrypted != "none":
        return Reach(files, f"Arrow cannot ask S3 for encryption of the type {encrypted}")
    return Reach(files, files)


def _refusal(location: str, file_io: str, options: Mapping[str, str]) -> str | None:
    """Why only Java reads the files, None when Arrow does too."""
    if file_io != S3_FILE_IO:
        return f"files of {file_io.rpartition('.')[2]} are not local"
    if not options.get(_REGION):
        return "the catalog names no region"
    if options.get(f"{_ENCRYPTION}type") == "custom":
        return "files are encrypted with a key that the catalog was given"
    if not S3Files(options[_REGION]).holds(location):
        return f"{location} is no place in S3 that Arrow can name"
    other = _unknown(options)
    return None if other is None else f"the catalog sets {other}, which Arrow does not know"


def _unknown(options: Iterable[str]) -> str | None:
    known = (_REGION, _ENDPOINT, _PATH_STYLE)
    of_s3 = (name for name in sorted(options) if name.startswith(_OPTIONS))
    return next(
        (
            name
            for name in of_s3
            if name not in known and not name.startswith((*_OF_JAVA, _ENCRYPTION))
        ),
        None,
    )
