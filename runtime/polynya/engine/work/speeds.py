"""How long applies took before, so that the next one can say how long it will take."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Speeds:
    """Seconds for a byte of the last step of each dataset. A dataset has one step at a time."""

    _seconds_a_byte: dict[str, float] = field(default_factory=dict)

    def took(self, name: str, size_bytes: int, seconds: float) -> None:
        """Take note of a step over so many bytes of work."""
        if size_bytes > 0:
            self._seconds_a_byte[name] = seconds / size_bytes

    def seconds_for(self, name: str, size_bytes: int) -> float | None:
        """Time that a step will take, None before the first one of a dataset."""
        speed = self._seconds_a_byte.get(name)
        return None if speed is None else speed * size_bytes
