"""Shards of the long tests, each short enough to run before a change is called done.

A file of tests is in one shard, because its tests share fixtures that take minutes. `seconds.json`
beside this module says how long each file took, so that the shards take equally long:

    make test-slow SHARD=3/8     # notes the seconds of its files in build/slow-seconds/
    python -m tests.shards       # merges what is noted there into tests/seconds.json
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

SECONDS: Final = Path(__file__).with_name("seconds.json")
NOTED: Final = Path("build/slow-seconds")
#: Seconds of a file that was never measured.
UNMEASURED: Final = 60.0


def files_of_shard(files: Iterable[str], shard: str, seconds: Mapping[str, float]) -> set[str]:
    """The files of one shard: the longest first, each to the shard that has the least to do.

    Args:
        files: all files with chosen tests.
        shard: `K/N`, the K-th of N shards.
        seconds: how long a file takes, where that is known.

    Raises:
        ValueError: `shard` names no shard.
    """
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"{shard!r} is not K/N with 1 <= K <= N, as in 3/8")
    shards: list[tuple[float, set[str]]] = [(0.0, set()) for _ in range(int(count))]
    costs = {file: seconds.get(file, UNMEASURED) for file in files}
    for file in sorted(costs, key=lambda file: (-costs[file], file)):
        lightest = min(range(len(shards)), key=lambda index: shards[index][0])
        total, members = shards[lightest]
        shards[lightest] = total + costs[file], members | {file}
    return shards[int(number) - 1][1]


def measured() -> dict[str, float]:
    """Seconds of each measured file, by its path from the root of the repository."""
    known: dict[str, float] = json.loads(SECONDS.read_text())
    return known


def note(shard: str, seconds: Mapping[str, float]) -> None:
    """Write how long the files of one shard took, for `python -m tests.shards`."""
    NOTED.mkdir(parents=True, exist_ok=True)
    (NOTED / f"{shard.replace('/', '-of-')}.json").write_text(json.dumps(seconds))


def main() -> None:
    """Merge what the shards noted into `seconds.json`; files that are gone leave it."""
    seconds = measured()
    for path in sorted(NOTED.glob("*.json")):
        seconds |= json.loads(path.read_text())
    kept = {file: round(seconds[file]) for file in sorted(seconds) if Path(file).exists()}
    SECONDS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
