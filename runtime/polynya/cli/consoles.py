"""The console for text output: a terminal never obeys anything in its text.

It is apart from `output.py` because rich takes a fifth of the start-up time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from polynya.cli.visible import visible


class VisibleConsole(Console):
    """A console that shows what a terminal would obey. What rich itself says to it stays."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Text of a string, as wide as it is shown."""
        return super().render_str(visible(text, self.encoding), **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of anything that is printed, tables, panels and styled text among them."""
        for piece in super().render(renderable, options):
            if piece.control:
                yield piece
            else:
                yield Segment(visible(piece.text, self.encoding), piece.style)
