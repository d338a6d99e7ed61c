"""The worker process of a contender, and requests to it."""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path
from typing import Any, Self

from bench.peers import environment
from bench.peers.contenders import Contender
from bench.peers.environment import UnavailableError
from bench.peers.tree import Peak, processor_seconds
from polynya.lake.spark.java import find_java

_ROOT = Path(__file__).parents[2]
_GIVE_UP = 3600.0


class Process:
    """The worker of one contender, in a folder of its own; `peak` watches its memory."""

    def __init__(self, contender: Contender, folder: Path, memory: str) -> None:
        """Start it. Raises UnavailableError, or DependencyError, when it does not start."""
        self.contender = contender
        self.warehouse = _warehouse(contender, folder)
        folder.mkdir()
        self._log = folder / "log"
        what = (contender.opens, str(folder), memory, *environment.jars(contender))
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [environment.python(contender), "-m", "bench.peers.worker", *what],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=_ROOT,
                env={**os.environ, "JAVA_HOME": str(find_java().home)},
            )  # fmt: skip
        self.peak = Peak(self._process.pid)
        self.peak.start()
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.peak.stop()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def ask(self, do: str, table: str, path: Path | None = None) -> Any:
        """The answer to a request; raises UnavailableError with its error."""
        assert self._process.stdin is not None
        request = json.dumps({"do": do, "table": table, "path": str(path or "")})
        try:
            print(request, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise UnavailableError(self._last_words()) from None
        return self._answer()

    def processor_seconds(self) -> float:
        """Processor time so far, of Python and the JVM."""
        return processor_seconds(self._process.pid)

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _GIVE_UP)
        if not ready:
            self._process.kill()
            raise UnavailableError(f"no answer within {_GIVE_UP:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise UnavailableError(self._last_words())
        answer = json.loads(line)
        if "error" in answer:
            raise UnavailableError(answer["error"])
        return answer["ok"]

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line]
        return lines[-1] if lines else "the process ended"


def _warehouse(contender: Contender, folder: Path) -> Path:
    """Where its tables are."""
    ours = contender.opens.startswith("polynya:")
    return folder / "project" / "warehouse" if ours else folder / "warehouse"
