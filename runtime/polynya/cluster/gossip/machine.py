"""How busy this machine is, from `/proc`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Fields of the first line of /proc/stat in which processors had nothing to do: idle and iowait.
_IDLE: Final = (3, 4)
#: Fields after these are parts of earlier ones.
_FIELDS: Final = 8


@dataclass(frozen=True, slots=True)
class Busy:
    """Shares of processors and memory that are in use, 0 to 1; None: not known."""

    cpu: float | None = None
    memory: float | None = None


class Host:
    """Looks at the machine; processors since the last look."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._before: tuple[int, int] | None = None

    def look(self) -> Busy:
        """How busy it is."""
        cpu = memory = None
        with suppress(OSError, ValueError, IndexError):
            cpu = self._cpu((self._proc / "stat").read_text("ascii"))
        with suppress(OSError, ValueError, KeyError, IndexError, ZeroDivisionError):
            memory = memory_share((self._proc / "meminfo").read_text("ascii"))
        return Busy(cpu, memory)

    def _cpu(self, stat: str) -> float | None:
        ticks = [int(one) for one in stat.splitlines()[0].split()[1 : 1 + _FIELDS]]
        now = sum(ticks), sum(ticks[place] for place in _IDLE)
        before, self._before = self._before, now
        if before is None or now[0] <= before[0]:
            return None
        return _between_0_and_1(1 - (now[1] - before[1]) / (now[0] - before[0]))


def memory_share(meminfo: str) -> float:
    """Share of the memory that is in use, from /proc/meminfo. Raises KeyError, ValueError."""
    lines = (line.partition(":") for line in meminfo.splitlines())
    kilobytes = {name: text.split()[0] for name, _, text in lines if text.split()}
    return _between_0_and_1(1 - int(kilobytes["MemAvailable"]) / int(kilobytes["MemTotal"]))


def _between_0_and_1(value: float) -> float:
    return min(max(value, 0.0), 1.0)
