"""Why this edge: what followed each visit of a phase, and each edge out of it with what decided about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from workbench.analysis.ways import Way, WaysOn, ways_on
from workbench.engine.definition import Definition
from workbench.engine.journal.parts import VisitState
from workbench.engine.journal.state import RunState
from workbench.language.graph import Graph
from workbench.views.cells import Span, flat
from workbench.views.reasons import place_words, with_file
from workbench.views.run import visit_name
from workbench.views.text import TextLine, TextRows
from workbench.views.value import BLANK, Block, Cell, Column, Piece, Table, View

_COLUMNS = (
    Column("", words="edge"),
    Column("edge to", flexible=True),
    Column("step", right=True),
    Column("why", flexible=True, least=20),
    Column("condition", flexible=True, leaves=3),
    Column("values", flexible=True, leaves=2),
    Column("weight", right=True, leaves=4),
    Column("file", leaves=5),
)


class VisitWays(Struct, frozen=True):
    """A visit and what followed it."""

    visit: VisitState
    found: WaysOn


def ways_of(graph: Graph, run: RunState, phase: str = "") -> tuple[VisitWays, ...]:
    """Returns the edges that were taken after each visit of a run, or of one of its phases, in the order of the
    visits."""
    visits = (visit for visit in run.visits if phase in ("", visit.phase))
    return tuple(VisitWays(visit, ways_on(graph, visit)) for visit in visits)


class WaysView(View):
    """A heading and a table of edges for each visit."""

    def __init__(self, ways: Sequence[VisitWays], file: str) -> None:
        """``file``: the name of the file that the edges are written in."""
        self.ways, self.file = ways, file

    def blocks(self) -> Iterator[Block]:
        for number, one in enumerate(self.ways):
            if number:
                yield BLANK
            found = one.found
            to = (Cell(" → ", "dim", " to "), Cell(found.to, "name")) if found.to else ()
            outcome = Cell(f"  outcome {found.outcome}" if found.outcome else "", "dim")
            yield (Cell(visit_name(one.visit), "head"), *to, outcome)
            yield (Cell(f"  {found.why}", "dim"),)
            if found.ways:
                yield Table(_COLUMNS, [self._row(way) for way in found.ways])

    def _row(self, way: Way) -> list[Piece]:
        return [
            Cell("━▶", "ok", "taken") if way.taken else Cell("╌▷", "faint", "not taken"),
            Cell(way.to + (f"  {way.label}" if way.label else ""), "name" if way.taken else ""),
            "" if way.step is None else str(way.step),
            Cell(way.why, "ok" if way.taken else "dim"),
            way.condition,
            Cell(values_words(way), "dim"),
            str(way.weight) if way.weight else "",
            Cell(f"{self.file}:{way.line}", "faint"),
        ]

    def json(self) -> list[dict[str, Any]]:
        """One object for each visit."""
        return [
            {
                "phase": one.visit.phase,
                "visit": one.visit.visit,
                "branch": one.visit.branch,
                "file": self.file,
                **one.found.to_json(),
            }
            for one in self.ways
        ]


def values_words(way: Way) -> str:
    """The values of the keys of its condition: ``outcome is 'fail'``."""
    return ", ".join(f"{key} is '{value}'" for key, value in way.values.items())


def way_spans(way: Way) -> tuple[Span, ...]:
    """The first line of an edge: where it leads, and what is written on it."""
    mark: tuple[Span, ...] = (("━▶ ", "ok"),) if way.taken else (("╌▷ ", "faint"),)
    weight = f"  weight {way.weight}" if way.weight else ""
    label = f"  {flat(way.label)}" if way.label else ""
    condition = f"  if {flat(way.condition)}" if way.condition else ""
    return (*mark, (flat(way.to), "bold" if way.taken else "plain"), (f"{label}{condition}{weight}", "dim"))


def why_words(way: Way) -> str:
    """The second line of an edge: the step at which it won or lost, why, and the values of its condition."""
    step = f"step {way.step}: " if way.step is not None else ""
    values = f" ({values_words(way)})" if way.values else ""
    return f"{step}{way.why}{values}"


def ways_doc(graph: Graph, visit: VisitState, text: str, file: str, now: str = "") -> TextRows:
    """Describes the edges after a visit, each in two lines, then the text of the run at the edge that was taken.
    ``now`` is the text of the file today."""
    found = ways_on(graph, visit)
    to = f"→ {flat(found.to)}" if found.to else "nothing follows"
    lines = [TextLine(f"{to}   {flat(found.why)}", "bold")]
    if found.outcome:
        label = visit.outcome.get("preferred_label")
        preferred = f", preferred label '{flat(str(label))}'" if label else ""
        lines.append(TextLine(f"outcome {flat(found.outcome)}{preferred}", "dim"))
    for way in found.ways:
        spans = way_spans(way)
        lines.append(TextLine("".join(part for part, _ in spans), spans[0][1] if way.taken else "plain"))
        lines.append(TextLine(f"     {flat(why_words(way))}   {flat(file)}:{way.line}", "dim", hang=5))
    title: tuple[Span, ...] = (("Why this edge", "title"), (f"  {flat(visit_name(visit))}", "name"))
    taken = next((way for way in found.ways if way.taken), next(iter(found.ways), None))
    if taken is None or not text:
        return TextRows(lines, title)
    return with_file(lines, text, taken.line, title, place_words(file, taken.line, text, now))


def ways_view(run: RunState, phase: str = "") -> WaysView:
    """Returns why a stored run, or one of its phases, went on where it did. Raises DefinitionError if its journal does
    not hold a cascade that can be read."""
    graph = Definition.of(run.cascade_text, run.cascade_file).graph
    return WaysView(ways_of(graph, run, phase), run.cascade_file)
