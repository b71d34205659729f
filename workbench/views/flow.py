"""The graph as a drawing in characters: a box for each node, lines for the edges, and the walk of a run on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from rich.cells import cell_len

from workbench.context.place import Place
from workbench.engine.journal.parts import VisitState
from workbench.engine.journal.state import RunState
from workbench.language.graph import Graph, Node
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.definition import kind_word
from workbench.views.flow_layout import HIGH, Box, DrawnEdge, Layout, laid_out
from workbench.views.graph import by_phase, last_status
from workbench.views.model import Rows
from workbench.views.numbers import count, spent_cell
from workbench.views.signs import sign, status_sign
from workbench.views.text import wrapped
from workbench.workspace.mermaid import RunPath, why

MOST_NODES = 40
"""Nodes of a graph that is drawn; a larger one is an outline."""
LONGEST = 28
"""Cells of a name in its box, at most."""
BOXES = (30, 17)
"""Cells of a box, at least: its lower side has visits, tokens and cost, or tokens alone where the drawing with the wide
boxes is wider than its room."""
LABEL = 60
"""Cells of a line of what is written on an edge, at most."""
LEAST_LABEL = 6
"""Cells below which nothing is written."""
LEAST_LINE, MOST_LINES = 10, 4
"""Cells of a line of what is written in several, at least, and how many lines it may take."""

UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8
_LIGHT = " ╵╶└╷╎┌├╴┘╌┴┐┤┬┼"
_HEAVY = " ╹╺┗╻┃┏┣╸┛━┻┓┫┳╋"
"""The characters for lines in these directions, by their sum: of edges that were not taken, and of those that were."""
_BORDERS = {
    "human": "╔═╗║╚╝",
    "route": "╱─╲│╲╱",
    "start": "╭─╮│╰╯",
    "exit": "╭─╮│╰╯",
    "parallel": "┏━┓┃┗┛",
    "join": "┏━┓┃┗┛",
}
"""Corners and sides of the box of a kind; the others have square ones."""
Direction = Literal["up", "down", "left", "right"]


class FlowDrawing(Rows):
    """The drawing. One node is selected; the rest of the drawing scrolls by rows, and sideways by ``shift``."""

    empty = ("The file has no graph to show.",)

    def __init__(
        self,
        graph: Graph,
        run: RunState | None,
        held: Place | None = None,
        layout: Layout | None = None,
        room: int = 0,
    ) -> None:
        """``held``: where the run is paused. ``layout``: that of the same graph, drawn before in the same ``room``:
        cells of a line, which labels keep to if the drawing fits."""
        self._graph, self._run = graph, run
        self._walked = RunPath(run)
        self._held = held
        self._visits, self._together, self._calls = by_phase(run)
        self._words = self._edge_words()
        self._room = room
        self.selected = self._current()
        self.layout = layout or self._laid_out()
        self.shift = 0
        """Columns that are left of the pane; below 0 for empty ones before a drawing that is narrower than it."""
        self._cells: list[list[tuple[str, str]]] | None = None
        self.title = (("Flow", "title"), (f"  {flat(graph.id)}", "name"))

    # -- what stands where -------------------------------------------------------------------------------------------

    def _edge_words(self) -> tuple[str, ...]:
        """The words on each edge: nothing where all would say the same."""
        words = tuple(flat(why(edge, self._graph.format)) for edge in self._graph.edges)
        return words if len(words) < 3 or len(set(words)) > 1 else ("",) * len(words)

    def _laid_out(self) -> Layout:
        names = {node.id: min(cell_len(self._name(node)), LONGEST + 12) + 6 for node in self._graph.nodes}
        labels = [min(cell_len(words), LABEL) for words in self._words]
        ends = [(edge.src, edge.dst) for edge in self._graph.edges]
        for least in BOXES:
            widths = {name: max(least, cells) for name, cells in names.items()}
            layout = laid_out(widths, ends, self._graph.start, labels, self._room)
            if layout.width <= self._room:
                break
        _, rows = self._drawn(layout)
        return laid_out(widths, ends, self._graph.start, labels, self._room, rows)

    @staticmethod
    def _name(node: Node) -> str:
        kind = kind_word(node)
        name = fit(node.id, min(cell_len(flat(node.id)), LONGEST))
        return f"{name} {kind}" if kind not in ("llm", node.id) else name

    def _current(self) -> str:
        """Returns where the run is paused, else the node that it came to last, else the start."""
        if self._held is not None and self._graph.node(self._held.phase) is not None:
            return self._held.phase
        visits = self._run.visits if self._run is not None else ()
        last = next((visit.phase for visit in reversed(visits) if self._graph.node(visit.phase) is not None), "")
        return last or self._graph.start

    def __len__(self) -> int:
        return self.layout.height if self._graph.nodes else 0

    def box_rows(self, name: str) -> range:
        """The rows of a node's box."""
        box = self.layout.boxes[name]
        return range(box.y, box.y + HIGH)

    def at(self, x: int, row: int) -> str:
        """The node at a column of the pane and a row of the drawing; empty beside the boxes."""
        x += self.shift
        for name, box in self.layout.boxes.items():
            if box.y <= row < box.y + HIGH and box.x <= x < box.x + box.width:
                return name
        return ""

    def neighbour(self, direction: Direction) -> str:
        """The node that lies in a direction of the selected one: up and down the nearest one of the next layer."""
        layers = self.layout.layers
        level = next((at for at, layer in enumerate(layers) if self.selected in layer), 0)
        place = layers[level].index(self.selected) if self.selected in layers[level] else 0
        if direction in ("left", "right"):
            place += 1 if direction == "right" else -1
            return layers[level][max(0, min(place, len(layers[level]) - 1))]
        level += 1 if direction == "down" else -1
        if not 0 <= level < len(layers):
            return self.selected
        middle = self.layout.boxes[self.selected].middle
        return min(layers[level], key=lambda name: abs(self.layout.boxes[name].middle - middle))

    def select(self, name: str, width: int) -> None:
        """Select a node, and shift the drawing so that it shows in so many columns, or to their middle."""
        self.selected = name
        self._cells, _ = self._drawn(self.layout)
        lines = ["".join(text or " " for text, _ in row).rstrip() for row in self._cells]
        reach, begins = max(map(len, lines)), min(len(line) - len(line.lstrip()) for line in lines if line)
        box = self.layout.boxes[name]
        least, most = box.x + box.width + 1 - width, box.x - 1
        self.shift = max(0, min(max(self.shift, least), most)) if reach > width else (reach + begins - width) // 2

    def find(self, needle: str, start: int, step: int = 1) -> int | None:
        """The next row that holds the needle; the node of it is selected."""
        found = super().find(needle, start, step)
        if found is not None and (name := self._found(needle, found)):
            self.selected, self._cells = name, None
        return found

    def _found(self, needle: str, row: int) -> str:
        wanted = needle.casefold()
        boxes = self.layout.boxes
        return next((name for name in boxes if row in self.box_rows(name) and wanted in name.casefold()), "")

    def phase(self, index: int = 0) -> str:
        """The selected node."""
        return self.selected

    def call(self, index: int = 0) -> Place | None:
        """The last call of the selected node; None where it made none."""
        calls = self._calls.get(self.selected)
        return calls[-1].place if calls else None

    # -- drawing -----------------------------------------------------------------------------------------------------

    def heads(self, width: int) -> Sequence[Row]:
        """The selected node and its outcome, in one line."""
        node = self._graph.node(self.selected)
        if node is None:
            return ()
        visits = self._visits.get(node.id, [])
        kind = kind_word(node) if node.kind != "llm" else node.model or ""
        parts = [f" {flat(node.id)}", kind if kind != node.id else ""]
        if visits:
            outcome = str(visits[-1].outcome.get("outcome") or last_status(self._run, visits))
            parts.append(f"{outcome}{f' ×{len(visits)}' if len(visits) > 1 else ''}")
            to = visits[-1].route
            parts.append(f"→ {flat(to)} ({flat(visits[-1].route_rule)})" if to else "")
        elif node.label and node.label != node.id:
            parts.append(flat(node.label))
        return (Row(crop(((" · ".join(filter(None, parts)), "dim"),), width)),)

    def row(self, index: int, width: int) -> Row:
        if self._cells is None:
            self._cells, _ = self._drawn(self.layout)
        before = [(" ", "plain")] * max(0, -self.shift)
        cells = [*before, *self._cells[index][max(0, self.shift) : self.shift + width]]
        spans: list[Span] = []
        for at, (text, token) in enumerate(cells):
            # A wide character has an empty cell behind it: one that begins before the pane, or ends behind it, is cut.
            text = " " if (at == 0 and not text) or (at == width - 1 and cell_len(text) > 1) else text
            if at == width - 1 and self._is_written(index, at) and self._is_written(index, at + 1):
                text = "…"
            if spans and spans[-1][1] == token:
                spans[-1] = (spans[-1][0] + text, token)
            else:
                spans.append((text, token))
        return Row(tuple(spans))

    def _is_written(self, row: int, column: int) -> bool:
        """Whether words stand in a column of the pane or right behind it, where lines and boxes do not count."""
        assert self._cells is not None
        text = "".join(text for text, _ in self._cells[row][self.shift + column : self.shift + column + 2])
        return bool(text.strip()) and not any("\u2500" <= letter <= "\u257f" or letter == "▼" for letter in text)

    def plain(self, index: int) -> str:
        if self._cells is None:
            self._cells, _ = self._drawn(self.layout)
        return "".join(text for text, _ in self._cells[index]).strip()

    def _drawn(self, layout: Layout) -> tuple[list[list[tuple[str, str]]], dict[int, int]]:
        """Returns the cells, and for how many rows of words each arrow needs to have room."""
        canvas = _Canvas(max(layout.width, self._room), layout.height)
        taken = {edge.number: bool(self._walked.taken(self._graph, edge.number)) for edge in layout.edges}
        for edge in sorted(layout.edges, key=lambda one: taken[one.number]):
            canvas.line(edge, heavy=taken[edge.number])
        for node in self._graph.nodes:
            self._draw_box(canvas, node, layout.boxes[node.id])
        rows = {edge.number: self._draw_label(canvas, edge, taken=taken[edge.number]) for edge in layout.edges}
        return canvas.cells, rows

    def _draw_box(self, canvas: _Canvas, node: Node, box: Box) -> None:
        visits = self._visits.get(node.id, [])
        held = self._held is not None and self._held.phase == node.id
        chosen = node.id == self.selected
        token = "title-focus" if chosen else "held" if held else "plain" if visits else "faint"
        a, top, b, side, c, d = tuple(_BORDERS.get(node.kind, "┌─┐│└┘"))
        inner = box.width - 2
        canvas.text(box.x, box.y, a + top * inner + b, token)
        canvas.text(box.x, box.y + 1, side + " " * inner + side, token)
        mark = sign("paused") if held else status_sign(last_status(self._run, visits))
        canvas.text(box.x + 2, box.y + 1, *mark)
        name = fit(self._name(node), box.width - 5)
        canvas.text(box.x + 4, box.y + 1, name.rstrip(), "cursor" if chosen else "bold" if visits else "plain")
        canvas.text(box.x, box.y + 2, c + top * inner + d, token)
        if words := self._figures(node.id, visits, inner - 2):
            canvas.text(box.x + 2, box.y + 2, words, "dim")

    def _figures(self, name: str, visits: Sequence[VisitState], room: int) -> str:
        """Visits, tokens and cost, as far as they fit into the lower side of a box."""
        if not visits:
            return ""
        took = self._run.figures_of(self._together[name]) if self._run is not None else None
        parts = [f"×{len(visits)}" if len(visits) > 1 else ""]
        if took is not None and took.answers:
            parts += [f"{count(took.tokens_in, took.grade_in)} tok", spent_cell(took.spent, took.missing)]
        words = ""
        for part in filter(None, parts):
            longer = f"{words} {part}".strip()
            if cell_len(longer) + 2 > room:
                break
            words = longer
        return f" {words} " if words else ""

    def _draw_label(self, canvas: _Canvas, edge: DrawnEdge, *, taken: bool) -> int:
        """Returns for how many rows of words its arrow needs to have room."""
        x, y = edge.points[-1]
        token = "ok" if taken else "dim"
        canvas.text(x, y, "▼", "ok" if taken else "faint")
        times = self._walked.taken(self._graph, edge.number)
        words = self._words[edge.number]
        words = f"{words} ×{times}".strip() if times > 1 else words
        wanted = min(cell_len(words), LABEL)
        at, row, room = canvas.room_for(edge, wanted)
        found = canvas.wrapped_beside(edge, words) if room < cell_len(words) else None
        if found is not None and found.fits:
            for at, row, line in found.lines:
                canvas.text(at, row, line, token)
        elif words and room >= min(wanted, LEAST_LABEL):
            canvas.text(at, row, fit(words, min(room, wanted)), token)
        return 1 if found is None or found.fits else len(found.lines)


class _Label(NamedTuple):
    """Words in several lines."""

    lines: list[tuple[int, int, str]]
    """Column, row and text of each."""
    fits: bool
    """Whether there are rows for all of them now."""


class _Canvas:
    """Cells that are drawn on, each with its token. Lines that meet become one."""

    def __init__(self, width: int, height: int) -> None:
        self.cells: list[list[tuple[str, str]]] = [[(" ", "plain")] * width for _ in range(height)]
        self._ways: dict[tuple[int, int], tuple[int, bool]] = {}
        self._width, self._height = width, height

    def line(self, edge: DrawnEdge, *, heavy: bool) -> None:
        """The line of an edge. Those of edges that were taken are drawn last, and heavier."""
        for (ax, ay), (bx, by) in pairwise(edge.points):
            dx, dy = (bx > ax) - (bx < ax), (by > ay) - (by < ay)
            x, y = ax, ay
            while (x, y) != (bx, by):
                self._way(x, y, _direction(dx, dy), heavy=heavy)
                x, y = x + dx, y + dy
                self._way(x, y, _direction(-dx, -dy), heavy=heavy)
        if len(set(edge.points)) == 1:
            self._way(*edge.points[0], UP | DOWN, heavy=heavy)
        first = edge.points[0]
        self._way(*first, UP, heavy=heavy)

    def _way(self, x: int, y: int, directions: int, *, heavy: bool) -> None:
        before, was_heavy = self._ways.get((x, y), (0, False))
        ways, heavy = before | directions, heavy or was_heavy
        self._ways[x, y] = ways, heavy
        if 0 <= y < self._height and 0 <= x < self._width:
            self.cells[y][x] = ((_HEAVY if heavy else _LIGHT)[ways], "ok" if heavy else "faint")

    def text(self, x: int, y: int, text: str, token: str) -> None:
        """A text from a cell on; what has no room is left out."""
        if not 0 <= y < self._height:
            return
        for character in text:
            cells = cell_len(character)
            if x + cells > self._width:
                return
            if not cells:
                if x:
                    before, with_token = self.cells[y][x - 1]
                    self.cells[y][x - 1] = (before + character, with_token)
                continue
            self.cells[y][x] = (character, token)
            for behind in range(1, cells):
                self.cells[y][x + behind] = ("", token)
            x += cells

    def room_for(self, edge: DrawnEdge, wanted: int) -> tuple[int, int, int]:
        """Returns where what is written on an edge has the most room, up to ``wanted``: beside its arrow at the right,
        at the left, else on a stretch of its line that goes sideways. The column, the row and the cells."""
        x, y = edge.points[-1]
        right, left = (min(room, wanted) for room in self.beside(x, y))
        if right >= wanted:
            return x + 2, y, right
        found = [(right, x + 2, y), (left, x - 1 - left, y)]
        for (ax, ay), (bx, by) in pairwise(edge.points):
            if ay == by and abs(ax - bx) > LEAST_LABEL + 2:
                first = min(ax, bx) + 2
                sideways = min(self._run(first, ay, 1, "╌━") - 1, abs(ax - bx) - 3, wanted)
                found.append((sideways, first, ay))
        room, at, row = max(found, key=lambda one: one[0])
        return at, row, room

    def wrapped_beside(self, edge: DrawnEdge, words: str) -> _Label | None:
        """Returns the lines of words beside an arrow, which may be made longer for them, or else beside a stretch of
        its line that goes up or down; None where there is no room for lines."""
        x, y = edge.points[-1]
        places = [(x, y, max(1, y - edge.points[-2][1]), MOST_LINES)]
        for (ax, ay), (bx, by) in pairwise(edge.points[:-1]):
            if ax == bx and (free := abs(ay - by) - 1) > 0:
                places.append((ax, max(ay, by) - 1, free, min(free, MOST_LINES)))
        cut = None
        for x, y, free, most in places:
            for rows in range(1, most + 1):
                right, left = self.beside(x, y, min(rows, free))
                room = min(max(right, left), LABEL)
                if room < LEAST_LINE:
                    break
                texts = ["".join(text for text, _ in line) for line in wrapped(((words, ""),), room)]
                whole = len(texts) <= rows
                if not whole and rows == MOST_LINES and cut is None:
                    texts = [*texts[: rows - 1], fit(" ".join(texts[rows - 1 :]), room)]
                elif not whole:
                    continue
                lines = [
                    (x + 2 if right >= left else x - 1 - cell_len(text), y - len(texts) + number, text)
                    for number, text in enumerate(texts, 1)
                ]
                cut = _Label(lines, len(lines) <= free)
                if whole:
                    return cut
        return cut

    def beside(self, x: int, y: int, rows: int = 1) -> tuple[int, int]:
        """Returns the cells for words at the right and at the left of a line, in a row and those above it."""
        right, left = (min(self._run(x + step, y - up, step, " ") for up in range(rows)) - 2 for step in (1, -1))
        return right, left

    def _run(self, x: int, y: int, step: int, characters: str) -> int:
        """Returns how many cells from one on, to the right or the left, hold one of these characters."""
        found = 0
        while 0 <= y < self._height and 0 <= x < self._width and (text := self.cells[y][x][0]) and text in characters:
            x, found = x + step, found + 1
        return found


def _direction(dx: int, dy: int) -> int:
    if dx:
        return RIGHT if dx > 0 else LEFT
    return DOWN if dy > 0 else UP
