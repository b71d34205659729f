"""Where the boxes and the lines of a graph go in a drawing of characters: in layers from the top, loops at the right.

The steps are those of Sugiyama, Tagawa and Toda (1981): edges that lead back are set aside, the longest way from the
start gives each node its layer, the mean place of its neighbours its place in it, and between two layers each line gets
a row of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

GAP = 4
"""Cells between two boxes of a layer."""
HIGH = 3
"""Rows of a box."""
MOST_LABEL = (60, 45, 30, 20)
"""Cells that a label may push boxes and lines away: the first with which the drawing has room, else the last."""
SWEEPS = 8
"""How often layers are put in order and boxes moved, down and up in turn."""
Point = tuple[int, int]
"""Column and row."""


class Box(Struct, frozen=True):
    """Where a node is drawn: its first column and row, and its width. It is ``HIGH`` rows high."""

    x: int
    y: int
    width: int

    @property
    def middle(self) -> int:
        return self.x + self.width // 2


class DrawnEdge(Struct, frozen=True):
    """The line of an edge, corner by corner; the last point is right above the box that it leads to."""

    number: int
    """Among the edges that were given."""
    points: tuple[Point, ...]


class Layout(Struct, frozen=True):
    """A whole drawing. Layers count from the top; a node's neighbours in its layer stand from left to right."""

    boxes: Mapping[str, Box]
    edges: tuple[DrawnEdge, ...]
    layers: tuple[tuple[str, ...], ...]
    width: int
    height: int


def laid_out(
    widths: Mapping[str, int],
    edges: Sequence[tuple[str, str]],
    start: str,
    labels: Sequence[int] = (),
    room: int = 0,
    rows: Mapping[int, int] | None = None,
) -> Layout:
    """A drawing of nodes with boxes of these widths, in the order of the file, and of edges between them. ``labels``:
    the cells that each edge wants beside its arrow, which it has if the drawing fits into ``room``. ``rows``: for
    how many rows of them the arrow of an edge, by its number, has room; one if it is not named."""
    wanted = labels or [0] * len(edges)
    for most in MOST_LABEL:
        layout = _Drawing(widths, edges, start, [min(one, most) for one in wanted], rows or {}).layout()
        if layout.width <= room or max(wanted, default=0) <= MOST_LABEL[-1]:
            break
    return layout


_Slot = tuple[str, int]
"""A place in a layer: a node with -1, or an edge (its number) that passes through, with the layer as its name."""


class _Drawing:
    def __init__(
        self,
        widths: Mapping[str, int],
        edges: Sequence[tuple[str, str]],
        start: str,
        labels: Sequence[int],
        rows: Mapping[int, int],
    ) -> None:
        self._widths, self._edges = widths, edges
        self._labels, self._rows = labels, rows
        self._out: dict[str, list[int]] = defaultdict(list)
        for number, (source, _) in enumerate(edges):
            self._out[source].append(number)
        self._back = self._leading_back(start)
        self._into: dict[str, list[int]] = defaultdict(list)
        """Of each node the edges that lead on to it."""
        for number, (_, target) in enumerate(edges):
            if number not in self._back:
                self._into[target].append(number)
        self._layer = self._layered()
        self._slots, self._chains = self._filled()
        self._up: dict[_Slot, list[_Slot]] = defaultdict(list)
        self._down: dict[_Slot, list[_Slot]] = defaultdict(list)
        for chain in self._chains.values():
            for above, below in pairwise(chain):
                self._down[above].append(below)
                self._up[below].append(above)

    # -- layers ------------------------------------------------------------------------------------------------------

    def _leading_back(self, start: str) -> set[int]:
        """The edges that lead back to a node on the way to where they begin; without them there is no circle."""
        back, done, open_nodes = set[int](), set[str](), set[str]()
        for root in [*([start] if start in self._widths else []), *self._widths]:
            if root in done:
                continue
            stack = [(root, iter(self._out[root]))]
            open_nodes.add(root)
            while stack:
                here, rest = stack[-1]
                number = next(rest, None)
                if number is None:
                    stack.pop()
                    open_nodes.discard(here)
                    done.add(here)
                    continue
                target = self._edges[number][1]
                if target in open_nodes:
                    back.add(number)
                elif target not in done:
                    open_nodes.add(target)
                    stack.append((target, iter(self._out[target])))
        return back

    def _layered(self) -> dict[str, int]:
        """Of each node the length of the longest way to it."""
        waits: dict[str, int] = dict.fromkeys(self._widths, 0)
        for number, (_, target) in enumerate(self._edges):
            waits[target] += number not in self._back
        layer = dict.fromkeys(self._widths, 0)
        ready = [name for name, count in waits.items() if not count]
        while ready:
            here = ready.pop()
            for number in self._out[here]:
                if number not in self._back:
                    target = self._edges[number][1]
                    layer[target] = max(layer[target], layer[here] + 1)
                    waits[target] -= 1
                    if not waits[target]:
                        ready.append(target)
        return layer

    def _filled(self) -> tuple[list[list[_Slot]], dict[int, list[_Slot]]]:
        """The slots of each layer, and of each edge those that it goes through."""
        slots: list[list[_Slot]] = [[] for _ in range(max(self._layer.values(), default=0) + 1)]
        for name in self._widths:
            slots[self._layer[name]].append((name, -1))
        chains: dict[int, list[_Slot]] = {}
        for number, (source, target) in enumerate(self._edges):
            if number in self._back:
                continue
            through: list[_Slot] = [(str(at), number) for at in range(self._layer[source] + 1, self._layer[target])]
            for at, slot in enumerate(through, self._layer[source] + 1):
                slots[at].append(slot)
            chains[number] = [(source, -1), *through, (target, -1)]
        return slots, chains

    # -- places in a layer -------------------------------------------------------------------------------------------

    def _put_in_order(self) -> None:
        """Order each layer by the mean place of the neighbours above, then below, in turn."""
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            for layer in self._slots if down else reversed(self._slots):
                places = {slot: at for slots in self._slots for at, slot in enumerate(slots)}
                near = self._up if down else self._down
                means = {slot: _mean([places[other] for other in near[slot]], places[slot]) for slot in layer}
                layer.sort(key=means.__getitem__)

    def _width(self, slot: _Slot) -> int:
        return self._widths[slot[0]] if slot[1] < 0 else 1

    def _reach(self, slot: _Slot) -> float:
        """Cells right of its middle that belong to a slot: half of its box, or what is written on the way to it."""
        label = max((self._labels[number] for number in self._into[slot[0]]), default=0) if slot[1] < 0 else 0
        return max(self._width(slot) / 2, label + 3 - GAP if label else 0)

    def _spread(self) -> dict[_Slot, int]:
        """The middle column of each slot: near the mean of its neighbours, and clear of those beside it."""
        middles: dict[_Slot, float] = {}
        for layer in self._slots:
            x = 0
            for slot in layer:
                middles[slot] = x + self._width(slot) / 2
                x += self._width(slot) + GAP
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            near = self._up if down else self._down
            for layer in self._slots if down else reversed(self._slots):
                wanted = [_mean([middles[other] for other in near[slot]], middles[slot]) for slot in layer]
                apart = [self._reach(one) + self._width(next) / 2 + GAP for one, next in pairwise(layer)]
                for slot, middle in zip(layer, _kept_apart(wanted, apart), strict=True):
                    middles[slot] = middle
        least = min((middle - self._width(slot) / 2 for slot, middle in middles.items()), default=0)

        def column(slot: _Slot) -> int:
            return round(middles[slot] - least - self._width(slot) / 2) + self._width(slot) // 2

        return {slot: column(slot) for slot in middles}

    # -- lines -------------------------------------------------------------------------------------------------------

    def layout(self) -> Layout:
        self._put_in_order()
        middles = self._spread()
        ports = self._ports(middles)
        self._straighten(ports, middles)
        right = max((middles[slot] + self._width(slot) // 2 for slot in middles), default=0)
        written = (ports[number][1] + label + 2 for number, label in enumerate(self._labels) if label)
        right = max(right, *written, 0)
        # What each row between two layers has to connect: the column above, the column below, the edge, its part.
        rooms: list[list[tuple[int, int, int, str]]] = [[] for _ in range(len(self._slots) + 1)]
        for number, chain in self._chains.items():
            for step, (above, below) in enumerate(pairwise(chain)):
                level = self._layer[self._edges[number][0]] + step + 1
                a = ports[number][0] if above[1] < 0 else middles[above]
                b = ports[number][1] if below[1] < 0 else middles[below]
                rooms[level].append((a, b, number, "down"))
        lanes = self._lanes(right)
        for number in sorted(self._back):
            source, target = self._edges[number]
            rooms[self._layer[source] + 1].append((ports[number][0], lanes[number], number, "out"))
            rooms[self._layer[target]].append((lanes[number], ports[number][1], number, "in"))
        tracks = [_tracks(room) for room in rooms]
        tops = self._tops(tracks, rooms)
        boxes = {
            name: Box(middles[name, -1] - self._widths[name] // 2, tops[self._layer[name]], self._widths[name])
            for name in self._widths
        }
        lines = self._lines(rooms, tracks, tops)
        edges = tuple(DrawnEdge(number, tuple(points)) for number, points in sorted(lines.items()))
        layers = tuple(tuple(name for name, edge in layer if edge < 0) for layer in self._slots)
        width = max([right + 1, *(x + 1 for edge in edges for x, _ in edge.points)], default=1)
        bottom = tops[-1] + HIGH + (len(set(tracks[-1].values())) + 1 if rooms[-1] else 0)
        return Layout(boxes, edges, layers, width, bottom)

    def _ports(self, middles: Mapping[_Slot, int]) -> dict[int, tuple[int, int]]:
        """Of each edge the columns where it leaves its box and where it comes to one: spread in the order of what they
        lead to, in the middle where there is one alone."""
        leaves: dict[str, list[int]] = defaultdict(list)
        enters: dict[str, list[int]] = defaultdict(list)
        for number, (source, target) in enumerate(self._edges):
            leaves[source].append(number)
            enters[target].append(number)

        def towards(number: int, at: int) -> float:
            """The column of what an edge goes to (1) or comes from (0); one that leads back goes right."""
            if number in self._back:
                return float("inf")
            chain = self._chains[number]
            return middles[chain[1] if at else chain[-2]]

        def dealt(name: str, numbers: Sequence[int], at: int) -> dict[int, int]:
            width, ordered = self._widths[name], sorted(numbers, key=lambda one: towards(one, at))
            first, inner = middles[name, -1] - width // 2, width - 2
            if len(ordered) == 1:
                return {ordered[0]: middles[name, -1]}
            return {one: first + 1 + (2 * at_ + 1) * inner // (2 * len(ordered)) for at_, one in enumerate(ordered)}

        begin = {number: x for name, numbers in leaves.items() for number, x in dealt(name, numbers, 1).items()}
        end = {number: x for name, numbers in enters.items() for number, x in dealt(name, numbers, 0).items()}
        return {number: (begin[number], end[number]) for number in range(len(self._edges))}

    def _straighten(self, ports: dict[int, tuple[int, int]], middles: Mapping[_Slot, int]) -> None:
        """Let an edge go straight down where it is the only one at one of its ends, and the other is below or above."""
        alone: dict[str, int] = defaultdict(int)
        for source, _ in self._edges:
            alone[source] += 1
        for number, chain in self._chains.items():
            source, target = self._edges[number]
            a, b = ports[number]
            if len(chain) > 2 or a == b:
                continue
            ways_in = sum(end == target for _, end in self._edges)
            if ways_in == 1 and self._inside(a, target, middles):
                ports[number] = (a, a)
            elif alone[source] == 1 and self._inside(b, source, middles):
                ports[number] = (b, b)

    def _inside(self, column: int, name: str, middles: Mapping[_Slot, int]) -> bool:
        """Returns whether a column is near the middle of a box: nearer to a side a straight line would look out of
        place."""
        return abs(column - middles[name, -1]) <= self._widths[name] // 4

    def _lanes(self, right: int) -> dict[int, int]:
        """The column of each edge that leads back, right of all boxes; those that do not meet share one."""
        ends: list[list[tuple[int, int]]] = []
        lanes: dict[int, int] = {}
        spans = {one: (self._layer[self._edges[one][1]], self._layer[self._edges[one][0]] + 1) for one in self._back}
        for number, (top, bottom) in sorted(spans.items(), key=lambda item: (item[1][1] - item[1][0], item[0])):
            lane = next(
                (at for at, taken in enumerate(ends) if not any(t <= bottom and top <= b for t, b in taken)), -1
            )
            if lane < 0:
                ends.append([])
                lane = len(ends) - 1
            ends[lane].append((top, bottom))
            lanes[number] = right + 3 + 2 * lane
        return lanes

    def _tops(
        self, tracks: Sequence[Mapping[int, int]], rooms: Sequence[Sequence[tuple[int, int, int, str]]]
    ) -> list[int]:
        """The first row of the boxes of each layer."""
        above: dict[int, int] = defaultdict(lambda: 1)
        """Rows right above the boxes of a layer: the arrows, and what is written beside them."""
        for number, rows in self._rows.items():
            level = self._layer[self._edges[number][1]]
            above[level] = max(above[level], rows)
        tops: list[int] = []
        row = 0
        for level in range(len(self._slots)):
            lines = len(set(tracks[level].values()))
            row += lines + above[level] if rooms[level] else 0
            tops.append(row)
            row += HIGH
        return tops

    def _lines(
        self,
        rooms: Sequence[Sequence[tuple[int, int, int, str]]],
        tracks: Sequence[Mapping[int, int]],
        tops: Sequence[int],
    ) -> dict[int, list[Point]]:
        lines: dict[int, list[Point]] = defaultdict(list)
        back: dict[int, dict[str, list[Point]]] = defaultdict(dict)
        for level, room in enumerate(rooms):
            above = tops[level - 1] + HIGH if level else 0
            below = tops[level] - 1 if level < len(tops) else above + len(set(tracks[level].values()))
            for place, (a, b, number, part) in enumerate(room):
                track = above + tracks[level].get(place, 0)
                if part == "down":
                    bend = [(a, above), (a, track), (b, track), (b, below)] if a != b else [(a, above), (b, below)]
                    lines[number] += bend
                elif part == "out":
                    back[number]["out"] = [(a, above), (a, track), (b, track)]
                else:
                    back[number]["in"] = [(a, track), (b, track), (b, below)]
        for number, parts in back.items():
            lines[number] = [*parts["out"], *parts["in"]]
        return lines


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _kept_apart(wanted: Sequence[float], apart: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones, by the sum of squares, that keep these distances (isotonic regression)."""
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, int]] = []
    for value, offset in zip(wanted, offsets, strict=False):
        mean, size = value - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    means = [mean for mean, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _tracks(room: Sequence[tuple[int, int, int, str]]) -> dict[int, int]:
    """The row of each line that goes sideways between two layers, so that no two lie on each other. A line whose end is
    below the beginning of another has to be the lower one."""
    sideways = [place for place, (a, b, _, part) in enumerate(room) if a != b or part != "down"]
    rows: dict[int, int] = {}
    taken: list[list[tuple[int, int]]] = []
    begins = {room[place][0]: place for place in sideways if room[place][3] != "in"}

    def depth(place: int, seen: frozenset[int] = frozenset()) -> int:
        """Returns how many lines have to be above it."""
        end = room[place][1] if room[place][3] != "out" else None
        other = begins.get(end) if end is not None else None
        return 0 if other is None or other == place or other in seen else 1 + depth(other, seen | {place})

    for place in sorted(sideways, key=lambda one: (depth(one), abs(room[one][0] - room[one][1]), one)):
        a, b, _, _ = room[place]
        low, high = min(a, b), max(a, b)
        end = room[place][1]
        over = begins.get(end) if room[place][3] != "out" else None
        row = rows[over] + 1 if over is not None and over != place and over in rows else 0
        while row < len(taken) and any(low <= last + 1 and first - 1 <= high for first, last in taken[row]):
            row += 1
        while len(taken) <= row:
            taken.append([])
        taken[row].append((low, high))
        rows[place] = row
    return rows
