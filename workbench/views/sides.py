"""The possible sides of a comparison, as a list to choose from."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from workbench.context.strategy import read_parts
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.compare_words import ComparisonNote
from workbench.views.model import Rows
from workbench.views.text import TextLine, TextRows, drawn_line, text_lines
from workbench.workspace.comparing import ComparedRun, SideChoice

FILE_CHANGES = SideChoice("changes", "changes", "the file now against the file when this run began", ComparedRun(""))
"""Not two contexts but two texts of the file."""
KINDS = {
    "changes": "your changes",
    "record": "this run",
    "file": "this run",
    "named": "in the file",
    "built-in": "built in",
    "run": "other runs",
}
KIND = 13
"""Width of these words with a gap."""
TONES = {"warning": "warning", "verdict": "bold", "side": "plain", "pays": "bold", "note": "plain"}
"""How the sentences about a side look, of those that are shown."""
NAME = 34
"""Width of a name, if there is room for more columns."""


class SideChoices(Rows):
    """One choice in each row, marked if it is a side now."""

    empty = ("Nothing to compare with.",)

    def __init__(self, choices: Sequence[SideChoice], a: ComparedRun, b: ComparedRun) -> None:
        self.choices, self.a, self.b = tuple(choices), a, b
        self.title = (("Sides", "title"), ("  of the comparison", "name"))
        self.title_right = (("A", "side-a"), ("  ", "plain"), ("B", "side-b"), (" what is compared now", "dim"))

    def __len__(self) -> int:
        return len(self.choices)

    def row(self, index: int, width: int) -> Row:
        one = self.choices[index]
        first = not index or KINDS[self.choices[index - 1].kind] != KINDS[one.kind]
        widest = max(cell_len(flat(each.name)) for each in self.choices)
        room = max(10, min(NAME, widest, (width - KIND) * 2 // 5))
        spans: tuple[Span, ...] = (
            (" ", "plain"),
            (fit(KINDS[one.kind] if first else "", KIND), "dim"),
            (" A" if one.side == self.a else "  ", "side-a"),
            ("B " if one.side == self.b else "  ", "side-b"),
            (f"{fit(one.name, room)}  ", "name"),
            (flat(one.words, 300), "plain"),
        )
        return Row(crop(spans, width))

    def about(self, index: int, said: Sequence[ComparisonNote] = ()) -> TextRows:
        """What a side is, part by part, and what is ``said`` of it against A; empty for a run, which its card shows."""
        if not 0 <= index < len(self.choices):
            return TextRows([], (("Side", "title"),))
        one = self.choices[index]
        lines = text_lines(one.words)
        longest = max((cell_len(flat(name)) for name in one.says), default=0)
        lines += [
            drawn_line([(f"{fit(name, longest)}  ", "head"), (spec, "accent")]) for name, spec in one.says.items()
        ]
        found = [note for note in said if note.kind in TONES]
        told = [TextLine(""), TextLine("If it is taken", "head")] if found else []
        told += [TextLine(flat(note.text), "ok" if note.saves else TONES[note.kind]) for note in found]
        if one.kind in ("named", "built-in"):
            spec = one.words if one.kind == "named" else one.name
            lines = [TextLine(spec, "accent"), *(() if one.kind == "named" else lines), *told]
            for part in read_parts(spec):
                values = ", ".join(f"{name}={getattr(part, name)}" for name in part.parameters())
                meaning = " ".join((part.__doc__ or "").partition("\n\n")[0].replace("``", "").split())
                lines += [TextLine(""), drawn_line([(part.NAME, "head"), (f"  {values}", "dim")]), TextLine(meaning)]
        else:
            lines += told
        return TextRows(lines, (("Side", "title"), (f"  {flat(one.name)}", "name")), ((KINDS[one.kind], "dim"),))

    def plain(self, index: int) -> str:
        one = self.choices[index]
        return f"{flat(one.name)} {flat(one.words)}"
