"""Order and time of native records: the settings say both."""

from __future__ import annotations

from polynya.formats.columnar.placed import placed

__all__ = ["placed"]
