"""How busy each unit keeps this node: seconds of work per second, as a moving average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from polynya.cluster.unit import JobKey

#: Figures of so many seconds make one measurement; shorter ones jump between 0 and 1.
_WINDOW_SECONDS: Final = 10.0
#: What was measured so many seconds ago counts half.
_HALF_LIFE_SECONDS: Final = 60.0


class LoadMeter:
    """Measures from totals."""

    def __init__(self) -> None:
        self._totals: dict[JobKey, float] = {}
        self._loads: dict[JobKey, float] = {}
        self._at: float | None = None

    def measured(self, totals: Mapping[JobKey, float], now: float) -> Mapping[JobKey, float]:
        """The load of units by the seconds that each has worked in total, at monotonic `now`.

        A unit that is not in `totals` is forgotten.
        """
        if self._at is None:
            self._at, self._totals = now, dict(totals)
            return {}
        passed = now - self._at
        if passed < _WINDOW_SECONDS:
            return {unit: load for unit, load in self._loads.items() if unit in totals}
        kept = 0.5 ** (passed / _HALF_LIFE_SECONDS)
        loads = {}
        for unit, total in totals.items():
            figure = max(total - self._totals.get(unit, 0.0), 0.0) / passed
            loads[unit] = self._loads.get(unit, figure) * kept + figure * (1 - kept)
        self._at, self._totals, self._loads = now, dict(totals), loads
        return loads
