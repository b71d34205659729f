"""The possible sides of a comparison, as a list to choose from."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.model import Rows
from workbench.workspace.comparing import ComparedRun, SideChoice

FILE_CHANGES = SideChoice("changes", "changes", "the file now, beside the file when this run began", ComparedRun(""))
"""Not two contexts but two texts of the file."""
KINDS = {
    "changes": "what you changed in the file",
    "record": "this run",
    "file": "this run",
    "named": "strategies of the file",
    "built-in": "strategies to begin with",
    "run": "other runs, as recorded",
}
NAME = 34
"""Width of a name, if there is room for more columns."""


class SideRows(Rows):
    """One choice in each row, marked if it is a side now."""

    empty = ("There is nothing to compare with.",)

    def __init__(self, choices: Sequence[SideChoice], a: ComparedRun, b: ComparedRun) -> None:
        self.choices, self.a, self.b = tuple(choices), a, b
        self.title = (("Sides", "title"), ("  of the comparison", "name"))
        self.title_right = (("A", "side-a"), ("  ", "plain"), ("B", "side-b"), (" what is compared now", "dim"))

    def __len__(self) -> int:
        return len(self.choices)

    def row(self, index: int, width: int) -> Row:
        one = self.choices[index]
        first = not index or KINDS[self.choices[index - 1].kind] != KINDS[one.kind]
        room = max(10, min(NAME, width // 3))
        spans: tuple[Span, ...] = (
            (" ", "plain"),
            ("A" if one.side == self.a else " ", "side-a"),
            ("B" if one.side == self.b else " ", "side-b"),
            (f" {fit(one.name, room)}  ", "name"),
            (f"{flat(one.words, 300)}  ", "plain"),
            (f"· {KINDS[one.kind]}" if first else "", "dim"),
        )
        return Row(crop(spans, width))

    def plain(self, index: int) -> str:
        one = self.choices[index]
        return f"{flat(one.name)} {flat(one.words)}"
