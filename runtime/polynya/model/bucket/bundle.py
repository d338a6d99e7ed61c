"""A bundle: all files of a pushed project in one document that its own hash names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from pydantic import TypeAdapter, ValidationError

from polynya.model.errors import ConfigError, OperationError

#: A project has at most as many files, and they have at most as many bytes together.
MAX_FILES: Final = 2_000
MAX_BYTES: Final = 32_000_000
#: JSON writes a character in at most six bytes.
MAX_BUNDLE_BYTES: Final = 6 * MAX_BYTES + 1_000_000

_FILES: Final = TypeAdapter(dict[str, str])


def encode(files: Mapping[str, bytes]) -> bytes:
    """The bundle of files that are UTF-8: the same bytes for the same files.

    Raises:
        ConfigError: more files or bytes than a bundle holds, or one that is no text
            (POLYNYA-BKT-005).
    """
    size = sum(map(len, files.values()))
    if len(files) > MAX_FILES or size > MAX_BYTES:
        raise ConfigError(
            "POLYNYA-BKT-005",
            f"the project has {len(files)} files of {size} bytes together; "
            f"a bundle holds {MAX_FILES} files and {MAX_BYTES} bytes",
            state="nothing was uploaded",
            fix="keep data of tests outside, or make several projects of it",
        )
    texts = {path: _text(path, content) for path, content in files.items()}
    return json.dumps(texts, sort_keys=True, indent=1).encode() + b"\n"


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(
            "POLYNYA-BKT-005",
            "it is no text",
            where=path,
            state="nothing was uploaded",
            fix="write certificates as PEM, in UTF-8, or keep the file elsewhere",
        ) from None


def revision_of(bundle: bytes) -> str:
    """The name of a bundle: its SHA-256 in hex."""
    return hashlib.sha256(bundle).hexdigest()


def decode(bundle: bytes, revision: str) -> dict[str, bytes]:
    """The files of a bundle.

    Raises:
        OperationError: it is not the bundle of this name (POLYNYA-BKT-004).
    """
    if revision_of(bundle) != revision:
        raise damaged(f"the bundle {revision[:12]} is not what was uploaded under this name")
    try:
        texts = _FILES.validate_json(bundle)
    except ValidationError:
        raise damaged(f"the bundle {revision[:12]} is no bundle") from None
    return {path: text.encode() for path, text in texts.items()}


def damaged(message: str) -> OperationError:
    """The error of a bucket whose own objects cannot be used."""
    return OperationError(
        "POLYNYA-BKT-004",
        message,
        state="running nodes keep the configuration that they read last",
        fix="restore the version before of this object, or delete `pushed.json` there and push "
        "again with `--overwrite-edits`",
    )
