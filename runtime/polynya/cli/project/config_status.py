"""How `polynya config status` says what is in force."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.cli.output import Output
from polynya.model.bucket.exchange import content_hash
from polynya.model.errors import ConfigError
from polynya.store.bucket.reader import Reading


def show_status(output: Output, name: str, reading: Reading, broken: Sequence[ConfigError]) -> None:
    """Say a reading of the bucket `name`, and the errors in what is in force."""
    bucket, pointer = reading.bucket, reading.pointer
    files = [
        {
            "file": path,
            "from": bucket.edits.get(path, "pushed"),
            "size_bytes": len(bucket.files.get(path, b"")),
            "sha256": content_hash(bucket.files.get(path)),
        }
        for path in sorted(bucket.files.keys() | bucket.edits.keys())
    ]
    data = {
        "bucket": name,
        "revision": pointer and pointer.revision,
        "pushed_by": pointer and pointer.pushed_by,
        "pushed_at": pointer and pointer.pushed_at,
        "commit": pointer and pointer.commit,
        "files": files,
        "edited": dict(bucket.edits),
        "left_over": bucket.left_over,
        "broken": [error.as_dict() for error in broken],
        "not_used": [error.as_dict() for error in reading.refused],
    }
    output.result("config.status", data, "\n".join(_lines(name, reading, broken)))


def _lines(name: str, reading: Reading, broken: Sequence[ConfigError]) -> list[str]:
    bucket, pointer = reading.bucket, reading.pointer
    lines = [name]
    if pointer is None:
        lines.append("  revision  none: nothing was pushed, the files were put there by hand")
    else:
        commit = f", commit {pointer.commit}" if pointer.commit else ""
        lines += [
            f"  revision  {pointer.revision[:12]}{commit}",
            f"  pushed    {pointer.pushed_at:%Y-%m-%d %H:%M:%S} UTC by {pointer.pushed_by}",
        ]
    edited = f", {len(bucket.edits)} edited by hand" if bucket.edits else ""
    lines.append(f"  in force  {len(bucket.files)} files{edited}")
    lines += [f"  edited    {path}: {kind} by hand" for path, kind in bucket.edits.items()]
    lines += [f"  pending   {path}: the next push writes it" for path in bucket.left_over]
    lines += [f"  broken    {error}" for error in broken]
    if broken:
        lines.append("  nodes keep the last good content of what is broken")
    lines += [f"  not used  {error}" for error in reading.refused]
    return lines
