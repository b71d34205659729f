"""The cascade as a tree: phases as the file names them, under them what ran; and the same in one line."""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.views.annotations import below_spans, label_spans, searched_words
from workbench.views.cells import Row, Span, Target, crop, fit, flat, justify, width_of
from workbench.views.children import child_name, child_remark
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import call_cost, count, plural, seconds, spent_cell, times_beside
from workbench.views.signs import sign, status_sign
from workbench.views.text import hung

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.journal.annotations import Labels
    from workbench.engine.journal.candidate_rounds import VisitKey
    from workbench.engine.journal.costs import CostSum
    from workbench.engine.journal.figures import Figures
    from workbench.engine.journal.parts import CallState, VisitState
    from workbench.engine.journal.state import RunState
    from workbench.views.timeline import Timeline


MEDIUM = 41
"""Cells from which on a tree has columns: the tokens, the cost and the time."""
WIDE = 77
"""Cells from which on it has more of them."""
ROOMY = 93
"""Cells from which on it has all of them."""
COLUMNS = {"calls": 6, "in": 9, "cached": 9, "out": 8, "cost": 11, "time": 8}
NARROW = {"in": 8, "cost": 9, "time": 7}
"""The same in a tree that is not wide."""
LEAVES = "cached"
"""The column that a narrow tree leaves out."""
GAP = 4
"""Cells between the longest name and the first column."""
LEAST_NAME, MOST_NAME = 14, 24
"""Cells of the names beside narrow columns at least, and those for which a pane beside the tree gives up cells."""
LEAST_BAR, MOST_BAR = 4, 48
"""Width of the bars that show when each call ran; with less room there are none."""
LONG = 12
"""Calls of one visit from which on those in the middle are folded."""
ENDS = 2
"""Calls that show at both ends of a folded list, or more where there is room, and on both sides of the selected one."""
AROUND = 2 * ENDS + 3
"""Lines for the selected call with those on both sides, and for two stretches of folded ones."""


def empty_columns(
    run: RunState | None, times: Iterable[float | None], children: Iterable[RunState] = ()
) -> frozenset[str]:
    """The columns for which a run that is over has no value, as one of another tool may have no times, nor have the
    runs inside it: they take no room. Of a run that goes on none is, because its numbers would move with the first
    value."""
    if run is None or run.status == "running":
        return frozenset()
    cached = run.used_cache or any(child.used_cache for child in children)
    timed = any(times)  # What an importer only read without a clock began and ended at the same moment.
    return frozenset(name for name, filled in (("cached", cached), ("time", timed)) if not filled)


def label_width(longest: int, width: int, without: Collection[str] = (), wider: int = 0) -> int:
    """Cells of the names: as many as the longest one takes, so that the numbers stand near it. Rather than be cut,
    names take the cells of the bars of a narrow tree. ``wider``: cells that the costs take beyond their column."""
    least, most = 20 if width >= WIDE else LEAST_NAME, width - _room(width, without) - wider - 1
    beside_bars = most - (LEAST_BAR + 2 if width < WIDE else 0)
    wanted = min(longest + GAP, beside_bars)
    return max(least, min(longest + 1, most) if wanted < longest + 1 else wanted)


def bar_width(label: int, width: int, without: Collection[str] = (), wider: int = 0) -> int:
    """Cells left for the bars; 0 if they are too few."""
    left = width - label - _room(width, without) - wider - 2
    return min(left, MOST_BAR) if left >= LEAST_BAR else 0


def _columns(width: int) -> Mapping[str, int]:
    """The columns that fit into this many cells, with their widths."""
    if width < WIDE:
        return NARROW
    return COLUMNS if width >= ROOMY else {name: cells for name, cells in COLUMNS.items() if name != LEAVES}


def _room(width: int, without: Collection[str]) -> int:
    return sum(cells for name, cells in _columns(width).items() if name not in without)


def cost_cells(spent: CostSum, width: int, missing: int = 0) -> int:
    """Cells beyond the column that a small cost takes with both of its digits."""
    text = spent_cell(spent, missing)
    if "$0." not in text:
        return 0  # Its first digits show.
    shown = _short(text, narrow=True) if width < WIDE else text
    return max(0, len(shown) + 1 - _columns(width)["cost"])


def cost_room(wanted: int, longest: int, width: int, without: Collection[str] = ()) -> int:
    """The cells that the column of the costs can have of those ``wanted``: those beside the names, if they are free."""
    return max(0, min(wanted, width - _room(width, without) - longest - 2))


def fitted(texts: Mapping[str, Span], width: int, without: Collection[str] = (), wider: int = 0) -> list[Span]:
    """The columns with their texts, ``without`` some; in narrow ones the head shows the sign of money."""
    columns = {name: cells + wider * (name == "cost") for name, cells in _columns(width).items()}
    shown = {name: texts.get(name, ("", "plain")) for name in columns if name not in without}
    text, token = shown["cost"]
    narrow = width < WIDE
    shown["cost"] = ("cost $" if narrow and text == "cost" else _narrowed(text, columns["cost"], narrow=narrow)), token
    return [(fit(text, columns[name], "right"), token) for name, (text, token) in shown.items()]


def _short(text: str, *, narrow: bool) -> str:
    """``~$0.0039`` as ``~$.0039``; in a narrow tree, whose head shows the sign of money, as ``~.0039``."""
    return text.replace("$0.", ".").replace("$", "") if narrow else text.replace("$0.", "$.")


def _narrowed(text: str, cells: int, *, narrow: bool) -> str:
    """A cost with a blank before it in so many cells: without its zero, then rounded to fewer digits, and never without
    the sign of an estimate. A sum of which a part is not known is rounded down. One of which no digit is left is below
    the smallest that fits: ``<.000001``."""
    short = text if len(text) < cells and not narrow else _short(text, narrow=narrow)
    found = _COST.fullmatch(short)
    if len(short) < cells or found is None:
        return short
    mark, whole, decimals = found.groups()
    value = Decimal(f"{whole.replace(',', '') or 0}.{decimals}")
    for places in range(len(decimals) - 1, -1, -1):
        rounded = value.quantize(Decimal(1).scaleb(-places), ROUND_FLOOR if "≥" in mark else ROUND_HALF_UP)
        number = f"{rounded:,f}" if whole else f"{rounded:,f}".removeprefix("0")
        if len(mark + number) < cells:
            if rounded or not value:
                return mark + number
            if "≥" in mark:
                return f"{mark}0"
            break
    else:
        return short
    money = "<$." if "$" in mark else "<."
    return f"{money}{'1'.rjust(cells - 1 - len(money), '0')}"


def _columns_head(label: int, width: int, without: Collection[str], wider: int) -> Row:
    heads = fitted({name: (name, "head") for name in COLUMNS}, width, without, wider)
    return Row(crop(((" " * label, "head"), *heads), width))


_COST = re.compile(r"([^\d.]*)([\d,]*)\.(\d+)")
"""The signs, the dollars and the decimals of a cost."""


LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[int], width: int) -> str:
    """Values as bars in at most this many cells, from 0 up; values that share a cell show the largest."""
    if not values or width <= 0:
        return ""
    cells = min(len(values), width)
    shown = [max(values[i * len(values) // cells : max((i + 1) * len(values) // cells, 1)]) for i in range(cells)]
    most = max(shown)
    return "".join(LEVELS[min(len(LEVELS) - 1, value * len(LEVELS) // most)] if most else LEVELS[0] for value in shown)


def figures(node: Node, width: int, without: Collection[str] = (), wider: int = 0) -> list[Span]:
    """The columns of a node. Unknown values are empty."""
    calls = node.calls if node.total is None else node.total.calls
    if not node.several and all(not call.answered for call in calls):
        return fitted({"in": (count(calls[0].tokens_in, calls[0].grade_in), "plain")}, width, without, wider)
    token = "plain" if node.total is None else "bold"
    return sum_cells(node.sums, calls, node.took, width, token, several=node.several, without=without, wider=wider)


def _time(passed: float | None, token: str, width: int, *, recorded: bool) -> Span:
    """The time of a row. That of a recorded answer passed when it was recorded, and is not part of this run's time."""
    text = seconds(passed) if passed is not None else ""
    if not recorded or not text:
        return text, token
    return _recorded(text, _columns(width)["time"])


def sum_cells(
    took: Figures | None,
    calls: Sequence[CallState],
    passed: float | None,
    width: int,
    token: str = "plain",
    *,
    several: bool = True,
    without: Collection[str] = (),
    wider: int = 0,
) -> list[Span]:
    """The columns for what some calls and the runs that they started took, in so many seconds."""
    recorded = not several and any(call.recorded for call in calls)
    texts = {"time": _time(passed, token, width, recorded=recorded)}
    if took is not None:
        cached = [call.usage.cached for call in calls if call.answered]
        texts["calls"] = (f"{took.calls:,}" if several and took.answers else "", "dim")
        texts["in"] = (count(took.tokens_in, took.grade_in) if took.answers else "", token)
        texts["cached"] = (_known(cached), "cached")
        texts["out"] = (count(took.tokens_out) if took.tokens_out else "", token)
        told = call_cost(took.spent) if recorded else ""
        fits = told and len(told.replace("$0.", "$.")) < _columns(width)["cost"] + wider
        texts["cost"] = (told, "faint") if fits else (spent_cell(took.spent, took.missing), token)
        if recorded:
            sizes, out = _columns(width), took.recorded_tokens_out
            texts["in"] = _recorded(count(took.recorded_tokens_in, took.recorded_grade_in), sizes["in"])
            texts["out"] = _recorded(count(out), sizes.get("out", 0)) if out else ("", "faint")
    return fitted(texts, width, without, wider)


def _recorded(text: str, width: int) -> Span:
    """A number of a recorded answer, which is no part of what the run took; without its sign where that has no room."""
    told = sign("recorded")[0] + text
    return (told if len(told) < width else text), "faint"


def _known(values: Sequence[int | None]) -> str:
    found = [value for value in values if value is not None]
    return count(sum(found)) if found and any(found) else ""


def _columned(left: Sequence[Span], right: Sequence[Span], label: int, width: int, tone: str) -> Row:
    """A name in this many cells, and the texts of the columns."""
    name = crop(left, label - 1)
    return Row(crop((*name, (" " * (label - width_of(name)), "plain"), *right), width), tone)


KIND_WORDS = {"human": "gate", "route": "conditional", "subgraph": "manager"}
"""Kinds of node by the words that people have for them, where those differ."""
_NODES = frozenset({"start", "exit", "human", "route", "parallel", "join", "subgraph"})
"""Kinds of visit that only nodes of a pipeline have."""


class Stretch(Struct, frozen=True):
    """When something ran, as times of events, and within which time it is drawn; ``end`` is empty while it goes on."""

    start: str
    end: str
    first: str
    last: str
    kind: str = "call"


NodeId = tuple[str, ...]


class PhaseOutline(Struct, frozen=True):
    """A phase as the file defines it."""

    name: str
    kind: str = "llm"
    line: int = 0
    from_: tuple[str, ...] = ()
    """Phases that may hand over to it; shown while it has not run."""
    errors: int = 0
    warnings: int = 0
    wave: int = 0
    """Which wave of a decomposition it is in, from 1; 0 in a walk."""
    depth: int = 0
    """How many parallel nodes of a pipeline it is inside of."""
    branch: str = ""
    """The first node of the branch that it is on; empty on the main walk."""
    parallel: str = ""
    """The parallel node that begins that branch."""


class TreeView(Struct, frozen=True):
    """Data of the tree beside the run itself."""

    outline: tuple[PhaseOutline, ...] = ()
    changed: frozenset[str] = frozenset()
    """Phases whose text differs from the running definition."""
    broken: tuple[str, ...] = ()
    """Breakpoints as text, in their order."""
    stopped_at: frozenset[str] = frozenset()
    """Phases with a breakpoint."""
    held: Place | None = None
    selected: Place | None = None
    selected_run: str = ""
    """The nested run that the selected call belongs to; empty for the run itself."""
    held_run: str = ""
    children: Mapping[str, RunState] = field(default_factory=dict)
    """Nested runs that are known, by run id."""
    busy: frozenset[Place] = frozenset()
    """Calls that are being tried, or tried again."""
    folding: Mapping[NodeId, bool] = field(default_factory=dict)
    """Nodes that the user unfolded (True) or folded."""
    unfolded: bool = False
    """Whether everything is, whatever the user folded."""
    lines: int = 0
    """Lines that there are for the rows: where all calls of a long list have room, those in the middle show, too."""
    tick: int = 0
    timeline: Timeline | None = None
    """The axis of the bars; without it there are none."""
    shows_total: bool = False
    """Whether the total row is selected."""

    long: int = LONG
    """Calls of one visit from which on those in the middle are folded."""
    ends: int = ENDS
    """Calls that show at both ends then."""

    def unfolds(self, id: NodeId, usually: bool) -> bool:
        """Returns whether a branch is unfolded."""
        return self.unfolded or self.folding.get(id, usually)


class Node(Struct, frozen=True):
    """One row of the tree. ``place`` is the call it stands for, if any."""

    id: NodeId
    depth: int
    left: tuple[Span, ...]
    right: tuple[Span, ...] = ()
    branches: bool = False
    unfolded: bool = False
    place: Place | None = None
    phase: str = ""
    tone: str = ""
    run: str = ""
    """The nested run that it is of, or stands for; empty for the run itself."""
    calls: tuple[CallState, ...] = ()
    """Its calls, which a wide tree counts."""
    sums: Figures | None = None
    """Figures of the row with all rows below it, child runs included; None for a row without any."""
    took: float | None = None
    """Seconds; None while it runs, and if unknown."""
    several: bool = True
    """Whether it may stand for more calls than one."""
    brief: tuple[Span, ...] = ()
    """Replaces ``left`` in a narrow tree with columns."""
    ran: Stretch | None = None
    """When it ran, for its bar; a phase has a line of the tokens of its calls instead."""
    total: RunState | None = None
    """Of the total row: the run."""
    says: bool = False
    """Whether it is a sentence, which may take several lines."""
    labels: tuple[Labels, ...] = ()
    """The annotations of its call; of a folded row those of all calls below it."""

    @property
    def visit_key(self) -> VisitKey | None:
        """The visit of the row; None for any other row."""
        kind, *key = self.id[-4:] if len(self.id) > 3 else ("",)
        return (key[0], key[1], int(key[2])) if kind == "visit" else None


class SettledNodes:
    """Nodes of folded visits that are not running, which are made once, and their widths: a watched program has
    thousands, and calls that come in are shown while somebody presses keys."""

    def __init__(self) -> None:
        self._run: RunState | None = None
        self._nodes: dict[NodeId, tuple[object, bool, Node]] = {}
        self._widths: dict[int, tuple[int, int, int, int]] = {}
        """By the identity of nodes in ``_nodes``."""

    def of(self, run: RunState | None) -> SettledNodes:
        """Returns itself, for a run; what is known of another one is forgotten."""
        if run is not self._run:
            self._run = run
            self._nodes.clear()
            self._widths.clear()
        return self

    def get(self, id: NodeId, since: object, over: bool) -> Node | None:
        """The node of a visit; None if it is not known, or was made before the visit changed. ``since``: what
        ``answered_in`` gives now."""
        known = self._nodes.get(id)
        return known[2] if known is not None and known[0] is since and known[1] == over else None

    def keep(self, node: Node, since: object, over: bool) -> None:
        """Keep the node of a visit."""
        if (before := self._nodes.get(node.id)) is not None:
            self._widths.pop(builtins.id(before[2]), None)
        self._nodes[node.id] = since, over, node
        self._widths[builtins.id(node)] = _widths(node)

    def widths(self, node: Node) -> tuple[int, int, int, int]:
        """Cells of the name of a node with its remark, long and brief, and those that its cost takes beyond the column
        of a wide and of a narrow tree."""
        return self._widths.get(builtins.id(node)) or _widths(node)


class Nodes:
    """Makes the nodes that show, top to bottom."""

    def __init__(
        self,
        run: RunState | None,
        view: TreeView,
        nested: str = "",
        *,
        over: bool = False,
        settled: SettledNodes | None = None,
    ) -> None:
        """``over``: the run that a nested one is in has ended, and it with it, whatever its journal says. ``settled``:
        nodes that were made for this run before."""
        self.run = run
        self._settled = settled if settled is not None else SettledNodes()
        self._over = over or (run is not None and run.status != "running")
        self._watched = run is not None and "imported" in run.ports
        self.view = view
        self._nested = nested
        self._is_selected = view.selected_run == nested
        self._is_held = view.held_run == nested
        self._line = line_of(view.selected_run, view.children)
        self._held_line = line_of(view.held_run, view.children) if view.held is not None else ()
        self._inside_it = inside_it(view.children)
        self._edited = run.edited_places if run is not None else frozenset()
        self._asking = asking_runs(view.children)
        known = (run, *view.children.values())
        self._is_annotated = any(one.annotations for one in known if one is not None)
        self._phase_ran = ("", "")
        """From when to when the phase ran whose nodes are made: its bars are drawn within that time."""

    def __iter__(self) -> Iterator[Node]:
        visits: dict[str, list[VisitState]] = defaultdict(list)
        for visit in self.run.visits if self.run else ():
            visits[visit.phase].append(visit)
        known = [phase.name for phase in self.view.outline]
        unknown = [PhaseOutline(name) for name in visits if name not in known]
        wave, branches = 0, set[tuple[str, str]]()
        for phase in sorted((*self.view.outline, *unknown), key=lambda one: one.wave):
            if phase.wave != wave:
                wave = phase.wave
                yield Node(("wave", str(wave)), 0, ((f"wave {wave}", "head"),))
            if phase.branch and (phase.parallel, phase.branch) not in branches:
                branches.add((phase.parallel, phase.branch))
                name = (f"branch {flat(phase.branch)}", "head")
                yield Node(("branch", phase.parallel, phase.branch), phase.depth, (name,))
            yield from self._phase(phase, visits.get(phase.name, []))
        yield from self._walks()
        yield from self._rest()
        sums = self.run.figures(self._inside_it) if self.run is not None and not self._nested else None
        if self.run is not None and sums is not None and (self.run.calls or sums.calls):
            tone = "selected" if self.view.shows_total else ""
            tokens = (count(sums.tokens_in, sums.grade_in), "dim")
            for beside, spent in times_beside(self.run).items():
                yield Node((beside,), 0, (("  ", "plain"), (beside, "dim")), ((seconds(spent), "faint"),), took=spent)
            left, took = (("Σ", "dim"), (" total", "bold")), self.run.seconds
            yield Node(("total",), 0, left, (tokens,), total=self.run, tone=tone, sums=sums, took=took)
        if self.view.broken:
            yield Node(("gap",), 0, ())
            yield Node(("breakpoints",), 0, (("Breakpoints", "head"),))
            for number, text in enumerate(self.view.broken, 1):
                yield Node(
                    ("breakpoint", str(number - 1)),
                    0,
                    (
                        ("◇", "faint") if text.endswith("(disabled)") else sign("breakpoint"),
                        (f" {flat(text)}", "plain"),
                    ),
                )

    def _below(self, visits: Sequence[VisitState]) -> tuple[Labels, ...]:
        """Returns what people said of the calls of some visits, and of the runs that they started."""
        if self.run is None or not self._is_annotated:
            return ()
        return tuple(_said_below(self.run, visits, self.view.children))

    def _phase(self, phase: PhaseOutline, visits: Sequence[VisitState]) -> Iterator[Node]:
        view = self.view
        id: NodeId = ("phase", phase.name)
        own = [visit for visit in visits if not is_candidate(visit)]
        status = (own or visits)[-1].status if visits else "pending"
        calls = [call for visit in visits for call in visit.calls]
        here = view.selected is not None and view.selected.phase == phase.name and not view.selected_run
        here = here or any(self._holds_selected(visit) for visit in visits)
        below = bool(visits) and (
            phase.kind in ("llm", "tool", "page") or len(own) > 1 or any(map(_holds_more, visits))
        )
        unfolded = below and view.unfolds(id, status == "running" or here)
        held = view.held is not None and view.held.phase == phase.name and not view.held_run
        held = held or any(map(self._is_paused, visits))
        asks = any(map(self._asks, visits))
        mark = sign("paused") if held else sign("waiting") if asks else self._mark(status)
        name: Span = (flat(phase.name), "plain" if visits else "dim")
        says_more = phase.kind not in ("llm", phase.name)
        kind: tuple[Span, ...] = ((f" {phase.kind}", "faint"),) if says_more else ()
        note: tuple[Span, ...] = ((" (handoff)", "faint"),) if not visits and phase.from_ else ()
        times = f"×{len(own)} " if len(own) > 1 else ""
        if visits and self.run is not None:
            ends = [visit.finished for visit in own or visits]
            self._phase_ran = (visits[0].started, self.run.last_at if "" in ends else max(ends))
        sums = self._sums(visits)
        sent = count(sums.tokens_in, sums.grade_in) if sums is not None and sums.tokens_in else ""
        labels = () if unfolded else self._below(visits)
        yield Node(
            id,
            phase.depth,
            (mark, (" ", "plain"), name, *kind, *self._marks(phase), *below_spans(labels), *note),
            ((times, "dim"), (sent, "dim")) if visits else (),
            below,
            unfolded,
            calls[-1].place if calls else None,
            phase.name,
            calls=tuple(calls),
            sums=sums,
            took=_wall(own or visits),
            labels=labels,
        )
        if unfolded:
            yield from self._visits(own, [visit for visit in visits if is_candidate(visit)], phase.depth + 1)

    def _walks(self) -> Iterator[Node]:
        """Yields the calls that settled a round of whole walks: they belong to no phase."""
        run = self.run
        for contest in run.contests if run is not None else ():
            if run is not None and contest.is_whole:
                status = "success" if contest.winner is not None else "waiting" if run.questions else "running"
                words = f" {plural(len(contest.rounds[0].entrants), 'walk')} of the cascade"
                calls = [call for call in run.calls if call.place.visit_key == contest.place.visit_key]
                sums = run.figures_of_calls(calls)
                tokens = (count(sums.tokens_in, sums.grade_in), "dim")
                left = (self._mark(status), (words, "plain"))
                yield Node(("walks", contest.place.branch), 0, left, (tokens,) if sums.answers else (), sums=sums)
                yield from (node for call in calls for node in self._call_rows("", call, 1, many=False))

    def _rest(self) -> Iterator[Node]:
        """Rows outside phases and contests: embeddings, and calls beside the phases."""
        run = self.run
        if run is None or self._nested:
            return
        whole = {contest.place.visit_key for contest in run.contests if contest.is_whole}
        calls = [call for call in run.calls_beside if call.place.visit_key not in whole]
        if not calls and not run.embedded:
            return
        sums = run.beside_the_phases(calls)
        left = (self._mark("success"), (" beside the phases", "plain"))
        place = calls[-1].place if calls else None
        yield Node(("rest",), 0, left, ((count(sums.tokens_in, sums.grade_in), "dim"),), place=place, sums=sums)

    def _sums(self, visits: Sequence[VisitState]) -> Figures | None:
        return self.run.figures_of(visits, self._inside_it) if self.run is not None and visits else None

    def _is_paused(self, visit: VisitState) -> bool:
        """Returns whether the run is paused in a visit, or in a run that it started; or elsewhere, while nothing of the
        visit runs: its next call waits for its own turn to pause."""
        if visit.status != "running" or self.view.held is None:
            return False
        key = (visit.branch, visit.phase, visit.visit)
        inside = any(str(child.get("run_id", "")) in self._held_line for child in visit.children)
        return (self._is_held and self.view.held.visit_key == key) or inside or self._waits(visit)

    def _asks(self, visit: VisitState) -> bool:
        """Returns whether a visit, or a run that it started, waits for the answer of a person: nothing runs there."""
        if visit.status != "running" or self._over or self.run is None:
            return False
        inside = any(str(child.get("run_id", "")) in self._asking for child in visit.children)
        return inside or visit_status(self.run, visit) == "waiting"

    def _waits(self, visit: VisitState) -> bool:
        """Returns whether the last call of a visit is ready, and was not sent."""
        last = visit.calls[-1] if visit.calls else None
        return last is not None and last.status == "assembled" and last.place not in self.view.busy

    def _mark(self, status: str) -> Span:
        """The sign of a status; in a finished run no status is running."""
        return status_sign(ended(status, over=self._over), self.view.tick)

    def _walk_winners(self) -> dict[VisitKey, str]:
        whole = [c for c in (self.run.contests if self.run else ()) if c.is_whole and c.winner is not None]
        found = [(c, c.entrant(c.winner)) for c in whole if c.winner is not None]
        return {(entrant.branch, "", 0): _won(contest.is_decided) for contest, entrant in found if entrant is not None}

    def _winners(self, visits: Sequence[VisitState]) -> dict[VisitKey, str]:
        """The candidates that an evaluation let win, each with its sign; the last evaluation of a visit counts."""
        contests = self.run.contests if self.run else ()
        undecided = {contest.place.visit_key for contest in contests if not contest.is_decided}
        last = [(visit, visit.evaluations[-1]) for visit in visits if visit.evaluations]
        return {
            (branch, visit.phase, visit.visit): _won((visit.branch, visit.phase, visit.visit) not in undecided)
            for visit, data in last
            if (branch := str(data.get("branch", "")))
        }

    def _marks(self, phase: PhaseOutline) -> list[Span]:
        marks: list[Span] = []
        if phase.name in self.view.stopped_at:
            marks += [(" ", "plain"), sign("breakpoint")]
        if phase.name in self.view.changed:
            marks += [(" ", "plain"), sign("changed")]
        if any(place.phase == phase.name for place in self._edited):
            marks += [(" ", "plain"), sign("edited")]
        if phase.errors:
            marks.append((f" ✗{phase.errors}", "error"))
        elif phase.warnings:
            marks.append((f" ⚠{phase.warnings}", "warning"))
        return marks

    def _visits(self, own: Sequence[VisitState], candidates: Sequence[VisitState], depth: int) -> Iterator[Node]:
        if len(own) <= 1:
            winners = self._winners((*own, *candidates)) | self._walk_winners()
            for candidate in candidates:
                yield from self._folded(candidate, f"candidate {candidate.branch}", depth, winners)
            for visit in own:
                yield from self._inside(visit, depth)
            return
        for visit in own:
            mine = [candidate for candidate in candidates if candidate.visit == visit.visit]
            yield from self._folded(visit, _visit_label(visit), depth, candidates=mine)

    def _folded(
        self,
        visit: VisitState,
        label: str,
        depth: int,
        winners: Mapping[VisitKey, str] = MappingProxyType({}),
        candidates: Sequence[VisitState] = (),
    ) -> Iterator[Node]:
        """A visit, or a candidate, as a branch of its own."""
        id: NodeId = (*self._root(), "visit", visit.branch, visit.phase, str(visit.visit))
        selected = self.view.selected if self._is_selected else None
        here = selected is not None and selected.visit_key == (visit.branch, visit.phase, visit.visit)
        here = here or self._holds_selected(visit)
        below = bool(candidates) or _holds_more(visit)
        unfolded = below and self.view.unfolds(id, here)
        status = watched_status(visit) if self._watched else visit.status
        labels = () if unfolded else self._below([visit, *candidates])
        changes = bool(unfolded or candidates or winners or visit.children or labels)
        alone = not (changes or status == "running" or self.run is None)
        since = self.run.answered_in(visit) if alone and self.run is not None else None
        if since is not None and (known := self._settled.get(id, since, self._over)) is not None:
            yield known
            return
        sums = self._sums([visit, *candidates])
        mark = winners.get((visit.branch, visit.phase, visit.visit)) or winners.get((visit.branch, "", 0))
        won: tuple[Span, ...] = ((" ", "plain"), sign(mark)) if mark else ()
        asks = self._asks(visit)
        state = sign("paused") if self._is_paused(visit) else sign("waiting") if asks else self._mark(status)
        node = Node(
            id,
            depth,
            (state, (f" {flat(label)}", "plain"), *won, *below_spans(labels)),
            ((count(sums.tokens_in, sums.grade_in) if sums is not None and sums.answers else "", "dim"),),
            below,
            unfolded,
            visit.calls[-1].place if visit.calls else None,
            visit.phase,
            run=self._nested,
            calls=tuple(visit.calls),
            sums=sums,
            took=visit.seconds,
            brief=(state, (f" {_told_apart(flat(label))}", "plain"), *won, *below_spans(labels)),
            labels=labels,
        )
        if since is not None:
            self._settled.keep(node, since, self._over)
        yield node
        if unfolded:
            for candidate in candidates:
                yield from self._folded(candidate, f"candidate {candidate.branch}", depth + 1, self._winners([visit]))
            yield from self._inside(visit, depth + 1)

    def _inside(self, visit: VisitState, depth: int) -> Iterator[Node]:
        judged = visit.judged if visit.failed_checks else {}
        checks = {at: tuple(self._checks(visit, at, found, depth + bool(at))) for at, found in judged.items()}
        if visit.calls:
            yield from checks.get(0, ())
        yield from self._calls(visit, checks, depth)
        for tool in visit.tool_tries:
            asks = self.run is not None and tool.index in self.run.asked_by(tool.place)
            status = "waiting" if asks else tool.status
            mark = self._mark(status if status in ("failed", "running", "waiting") else "done")
            where = (visit.branch, visit.phase, str(visit.visit), str(tool.index), str(tool.place))
            id: NodeId = (*self._root(), "tool", *where)
            took = ((seconds(tool.duration_s), "faint"),) if tool.status != "running" else ()
            left = (mark, (f" {flat(tool.tool)}", "plain"))
            ran = Stretch(tool.started, tool.finished, *self._phase_ran, "tool")
            yield Node(id, depth, left, took, phase=visit.phase, run=self._nested, took=tool.duration_s, ran=ran)
        for child in visit.children:
            yield from self._child(visit, child, depth)
        if not visit.calls:
            yield from checks.get(0, ())

    def _checks(
        self, visit: VisitState, at: int, found: Sequence[tuple[str, Mapping[str, object]]], depth: int
    ) -> Iterator[Node]:
        """The checks that come after so many calls. Those of a visit are shown where one failed: of several attempts
        they tell which was rejected, and which passed."""
        for number, (name, check) in enumerate(found):
            reason = flat(str(check.get("reason") or ""))
            text = f" {flat(name)}: {reason}" if reason else f" {flat(name)}"
            passed = check.get("valid", True)
            left = (sign("done"), (text, "dim")) if passed else (sign("broken"), (text, "error"))
            id = (*self._root(), "check", visit.branch, visit.phase, str(visit.visit), str(at), str(number))
            judged = visit.calls[max(0, at - 1)].place if visit.calls else None
            yield Node(id, depth, left, place=judged, phase=visit.phase, run=self._nested, says=True)

    def _calls(self, visit: VisitState, checks: Mapping[int, Sequence[Node]], depth: int) -> Iterator[Node]:
        """The calls of a visit; of many those at both ends and around the selected and the held one, and what is
        between them as branches that unfold. ``checks``: their rows, by how many calls come before them."""
        many, calls = visit.attempts > 1, visit.calls
        if len(calls) < self.view.long:
            for number, call in enumerate(calls, 1):
                yield from self._call_rows(visit.phase, call, depth, many=many)
                yield from checks.get(number, ())
            return
        ends = self.view.ends
        shown = {*range(ends), *range(len(calls) - ends, len(calls))}
        marked = [self.view.selected if self._is_selected else None, self.view.held if self._is_held else None]
        for place in marked:
            at = _index_of(calls, place) if place is not None and place.visit_key == _key_of(visit) else -1
            shown |= set(range(max(0, at - ENDS), at + ENDS + 1)) if at >= 0 else set()
        at = 0
        for stop in (*sorted(shown), len(calls)):
            hidden = calls[at:stop]
            if len(hidden) == 1:
                yield from self._call_rows(visit.phase, hidden[0], depth, many=many)
                yield from checks.get(stop, ())
            elif hidden:
                yield from self._between(visit, hidden, checks, at, depth, many=many)
            if stop < len(calls):
                yield from self._call_rows(visit.phase, calls[stop], depth, many=many)
                yield from checks.get(stop + 1, ())
            at = stop + 1

    def _between(
        self,
        visit: VisitState,
        hidden: Sequence[CallState],
        checks: Mapping[int, Sequence[Node]],
        at: int,
        depth: int,
        *,
        many: bool,
    ) -> Iterator[Node]:
        """Calls in the middle of a long list: ``… 3–7`` with how many checks failed there, or all of them if
        unfolded."""
        id: NodeId = (*self._root(), "between", visit.branch, visit.phase, str(visit.visit), str(at))
        unfolded = self.view.unfolds(id, False)
        names = f"… {_turn_of(hidden[0], many=many)}–{_turn_of(hidden[-1], many=many)}"
        took = [call.duration_s for call in hidden if call.duration_s is not None]
        sums = self.run.figures_of_calls(hidden) if self.run is not None else None
        inside = range(at + 1, at + len(hidden) + 1)
        failed = sum(row.left[0] == sign("broken") for number in inside for row in checks.get(number, ()))
        problems: tuple[Span, ...] = ((f"✗{failed} ", "error"),) if failed and not unfolded else ()
        labels = () if unfolded else _said_of(self.run, hidden)
        yield Node(
            id,
            depth,
            ((names, "dim"), *below_spans(labels)),
            (*problems, (count(sums.tokens_in, sums.grade_in) if sums is not None else "", "faint")),
            True,
            unfolded,
            phase=visit.phase,
            run=self._nested,
            calls=tuple(hidden),
            sums=sums,
            took=sum(took) if took else None,
            ran=Stretch(hidden[0].started, hidden[-1].finished, *self._phase_ran, "between"),
            labels=labels,
        )
        for number, call in enumerate(hidden if unfolded else (), at + 1):
            yield from self._call_rows(visit.phase, call, depth + 1, many=many)
            yield from (replace(row, depth=row.depth + 1) for row in checks.get(number, ()))

    def _child(self, visit: VisitState, child: Mapping[str, object], depth: int) -> Iterator[Node]:
        """A nested run: a branch with its phases below it, once it is known."""
        run_id = str(child.get("run_id", ""))
        state, id = self.view.children.get(run_id), ("child", run_id)
        session = str(child.get("session_id", ""))
        name = child_name(state, session)
        remark = child_remark(flat(str(child.get("kind", ""))), session, self.run.session_id if self.run else "", name)
        # A run that was spawned is joined at the end of the run; what it says itself is known before.
        status = str(child.get("status") or (state.status if state is not None else "running"))
        asks = run_id in self._asking and not self._over
        mark = sign("paused") if run_id in self._held_line else sign("waiting") if asks else self._mark(status)
        unfolded = state is not None and self.view.unfolds(id, run_id in self._line)
        place = state.calls[-1].place if state is not None and state.calls else None
        # What its own journal says is newer than what this run's says of it, which comes with its end.
        sums = state.figures(self._inside_it) if state is not None else None
        if sums is None and self.run is not None:
            sums = self.run.children.figures(self._inside_it, [run_id])
        tokens = ((count(sums.tokens_in, sums.grade_in), "dim"),) if sums is not None else ()
        calls = tuple(state.calls) if state is not None else ()
        labels = tuple(_said_inside(state, self.view.children)) if state is not None and not unfolded else ()
        brief = (mark, (f" ↳ {name}", "dim"), *below_spans(labels))
        left, passed = (*brief, (f"  {remark}", "faint")), state.seconds if state is not None else None
        started, ended = visit.child_times.get(run_id, ("", ""))
        ran = Stretch(started, ended, *self._phase_ran, "child")
        yield Node(
            *(id, depth, left, tokens, True, unfolded, place, visit.phase, "", run_id, calls, sums, passed),
            brief=brief,
            ran=ran,
            labels=labels,
        )
        if state is None or not unfolded:
            return
        nested = Nodes(state, self.view, run_id, over=self._over)
        nested._phase_ran = self._phase_ran
        for inner in state.visits:
            if not is_candidate(inner):
                mine = [
                    v for v in state.visits if is_candidate(v) and v.phase == inner.phase and v.visit == inner.visit
                ]
                name = inner.phase + (f"#{inner.visit}" if inner.visit > 1 else "")
                kind = f" {KIND_WORDS.get(inner.kind, inner.kind)}" if inner.kind in _NODES else ""
                yield from nested._folded(inner, name + (kind if kind[1:] != name else ""), depth + 1, candidates=mine)

    def _holds_selected(self, visit: VisitState) -> bool:
        """Returns whether the selected call is in a run that this visit started, or further inside."""
        return any(str(child.get("run_id", "")) in self._line for child in visit.children)

    def _root(self) -> NodeId:
        """Returns the prefix that sets the nodes of a nested run apart."""
        return ("in", self._nested) if self._nested else ()

    def _call_rows(self, phase: str, call: CallState, depth: int, *, many: bool) -> Iterator[Node]:
        """A call, and below it the notes on it."""
        node = self._call(phase, call, depth, many=many)
        yield node
        notes = (note for labels in node.labels for note in labels.notes)
        for number, note in enumerate(notes):
            id = (*self._root(), "note", str(call.place), str(number))
            left = (sign("note"), (f" {flat(note)}", "dim"))
            yield Node(id, depth + 1, left, place=call.place, phase=phase, run=self._nested, says=True)

    def _call(self, phase: str, call: CallState, depth: int, *, many: bool) -> Node:
        view, place = self.view, call.place
        held = place == view.held and self._is_held
        label = flat(call.name)
        if place.turn and many:
            label = f"try {place.attempt}.{place.turn}" + (f" call {place.call}" if place.call > 1 else "")
        status = "running" if place in view.busy else call.status
        mark = sign("paused") if held else sign("recorded") if call.recorded else self._mark(status)
        tools = ", ".join(dict.fromkeys(flat(tool.tool) for tool in call.tools))
        edited: tuple[Span, ...] = ((" ", "plain"), sign("edited")) if place in self._edited else ()
        extra: Span = (f"  {tools}" if tools else "", "dim")
        said: Span = (extra[0][1:], extra[1])
        begun = call.started or (call.finished if call.answered else "")
        labels = _said_of(self.run, [call])
        people = tuple(span for one in labels for span in label_spans(one))
        return Node(
            (*self._root(), "call", str(place)),
            depth,
            (mark, (f" {label}", "plain"), *edited, extra, *people),
            _took(call),
            place=place,
            phase=phase,
            tone="selected" if place == view.selected and self._is_selected and not view.shows_total else "",
            run=self._nested,
            calls=(call,),
            sums=self.run.figures_of_calls([call]) if self.run is not None and call.answered else None,
            took=call.duration_s if call.answered else None,
            several=False,
            brief=(mark, (f" {label.removeprefix('turn ')}", "plain"), *edited, said, *people) if place.turn else (),
            ran=Stretch(begun, call.finished, *self._phase_ran) if begun else None,
            labels=labels,
        )


def _said_of(run: RunState | None, calls: Iterable[CallState]) -> tuple[Labels, ...]:
    """Returns what people said of some calls of a run."""
    if run is None or not run.annotations:
        return ()
    return tuple(labels for call in calls if (labels := run.annotations.at(call.place)))


def _said_below(run: RunState, visits: Sequence[VisitState], children: Mapping[str, RunState]) -> Iterator[Labels]:
    """Likewise of all calls of some visits, and of the runs that they started."""
    yield from _said_of(run, (call for visit in visits for call in visit.calls))
    for child in (child for visit in visits for child in visit.children):
        if (inner := children.get(str(child.get("run_id", "")))) is not None and inner is not run:
            yield from _said_inside(inner, children)


def _said_inside(run: RunState, children: Mapping[str, RunState]) -> Iterator[Labels]:
    """What people said of a nested run and of all that is inside it."""
    if run.annotations and run.annotations.run:
        yield run.annotations.run
    yield from _said_below(run, run.visits, children)


def _key_of(visit: VisitState) -> VisitKey:
    return visit.branch, visit.phase, visit.visit


def _index_of(calls: Sequence[CallState], place: Place) -> int:
    """The index of a call, looked up near its turn first."""
    guess = min(max(place.turn - 1, 0), len(calls) - 1)
    if calls[guess].place == place:
        return guess
    return next((index for index, call in enumerate(calls) if call.place == place), -1)


def _turn_of(call: CallState, *, many: bool) -> str:
    place = call.place
    if not place.turn:
        return flat(call.aside)
    return f"{place.attempt}.{place.turn}" if many else str(place.turn)


def _wall(visits: Sequence[VisitState]) -> float | None:
    """Seconds from the beginning of a phase to its end, over all of its visits; of candidates, which run beside each
    other, the longest."""
    known = [seconds for visit in visits if (seconds := visit.seconds) is not None]
    if not known:
        return None
    return max(known) if is_candidate(visits[0]) else sum(known)


def ended(status: str, *, over: bool) -> str:
    """The status of something that has no end in the journal of a run that is ``over``: it was interrupted with it."""
    return "interrupted" if over and status == "running" else status


def visit_status(run: RunState, visit: VisitState) -> str:
    """The status of a visit in its run as it is now: ``waiting`` while only a person's answer can bring it on,
    ``interrupted`` if the run ended within it; for the contexts of a watched program see ``watched_status``."""
    status = watched_status(visit) if "imported" in run.ports else visit.status
    if status == "running" and run.asked_in(_key_of(visit)):
        return "waiting"
    return ended(status, over=run.status != "running")


def _took(call: CallState) -> tuple[Span, ...]:
    problems: tuple[Span, ...] = ((f"✗{len(call.problems)} ", "error"),) if call.problems else ()
    if call.status != "done":
        return (*problems, (count(call.expected, call.grade), "faint"))
    return (*problems, (seconds(call.duration_s), "faint"))


def line_of(run_id: str, children: Mapping[str, RunState]) -> tuple[str, ...]:
    """A nested run and those that it is inside of."""
    found: list[str] = []
    while run_id in children and run_id not in found:
        found.append(run_id)
        run_id = str(children[run_id].parent.get("run_id", ""))
    return tuple(found)


def asking_runs(children: Mapping[str, RunState]) -> frozenset[str]:
    """The nested runs that wait for a person, and those that they are inside of."""
    asking = (id for id, child in children.items() if child.questions)
    return frozenset(line for id in asking for line in line_of(id, children))


def inside_it(children: Mapping[str, RunState]) -> dict[str, Figures]:
    """Returns the sums of each of some runs so far, by run id; a run comes before those that it started."""
    known: dict[str, Figures] = {}
    for run_id, child in reversed(list(children.items())):
        known[run_id] = child.figures(known)
    return known


def _holds_more(visit: VisitState) -> bool:
    """Returns whether there are rows below it."""
    return bool(visit.calls or visit.tool_tries or visit.children or visit.failed_checks)


def _visit_label(visit: VisitState) -> str:
    """Returns which visit it is: by its number, on a branch by that too, which is called ``fan#2.code`` the second
    time."""
    if not visit.branch or visit.wave:
        return f"visit {visit.visit}"
    again = f" visit {visit.visit}" if visit.visit > 1 else ""
    return f"branch {visit.branch}{again}"


def _told_apart(label: str) -> str:
    """A label with what tells it from its neighbours first, as it stands in a column that cuts it."""
    word, _, name = label.partition(" ")
    return f"{name} {word}" if word == "candidate" else label.removeprefix("branch ")


def is_candidate(visit: VisitState) -> bool:
    """Returns whether it is an execution among several; a parallel branch of its own is none."""
    return bool(visit.branch) and not visit.parallel


def _won(decided: bool) -> str:
    return "winner" if decided else "stands"


class TreeRows(Rows):
    """The tree, built once for each change of the run; drawn on demand."""

    empty = ("No cascade is open.",)
    spreads = True

    def __init__(self, run: RunState | None, view: TreeView, settled: SettledNodes | None = None) -> None:
        """``settled``: what earlier trees made of the same run."""
        self.view = view
        settled = (settled if settled is not None else SettledNodes()).of(run)
        self.nodes = tuple(Nodes(run, view, settled=settled))
        if (roomier := self._roomier()) is not None:
            self.nodes = tuple(Nodes(run, roomier, settled=settled))
        self.title = (("Cascade", "title"),)
        widths = [settled.widths(node) for node in self.nodes if node.right]
        self._longest, self._briefest, self._wide, self._narrow = (
            max((found[at] for found in widths), default=0) for at in range(4)
        )
        times = (node.took for node in self.nodes)
        self._without = empty_columns(run, times, view.children.values())
        self._drawn: dict[tuple[int, int], Row] = {}

    def _roomier(self) -> TreeView | None:
        """Returns the view in which calls that are folded fill the lines that there are; None where none can show. It
        is the same whichever of the calls is selected."""
        if len(self.nodes) >= self.view.lines:
            return None
        folded = [node for node in self.nodes if node.id[-5:-4] == ("between",) and not node.unfolded]
        if not folded:
            return None
        if len(self.nodes) + sum(len(node.calls) - 1 for node in folded) <= self.view.lines:
            return replace(self.view, long=self.view.lines + 1)
        visits, phases = {node.id[-4:-1] for node in folded}, {node.phase for node in folded}
        calls = sum(node.id[-2:-1] == ("call",) and node.phase in phases for node in self.nodes)
        others = len(self.nodes) - calls - len(folded)
        ends = ((self.view.lines - others) // len(visits) - AROUND) // 2
        return replace(self.view, ends=ends) if ends > ENDS else None

    @property
    def turning(self) -> bool:
        """Whether a spinner shows."""
        return any(node.left and node.left[0][1] == "running" for node in self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def row(self, index: int, width: int) -> Row:
        found = self._drawn.get((index, width))
        if found is None:
            found = self._drawn[index, width] = self._laid_out(self.nodes[index], width)
        return found

    def plain(self, index: int) -> str:
        """With the notes and tags of the call, or of those that a folded row hides."""
        return f"{super().plain(index)} {searched_words(self.nodes[index].labels)}".rstrip()

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        node = self.nodes[index]
        if not node.says:
            return ()
        *before, (words, token) = _left(node)
        return hung((*before, (" ", "plain")), ((words.strip(), token),), width)

    def needed(self, width: int) -> int:
        """The fewest cells for all columns that a tree of ``width`` cells has, without bars, with names that are whole
        if they are not very long; 0 for one without columns."""
        if width < MEDIUM or not self._has_calls:
            return 0
        if width >= WIDE:
            return max(WIDE, self._longest + 2 + _room(width, self._without) + self._wide)
        return max(MEDIUM, min(self._briefest, MOST_NAME) + 2 + _room(width, self._without) + self._narrow)

    def _laid_out(self, node: Node, width: int) -> Row:
        if width < MEDIUM or (width < WIDE and not self._has_calls):
            left, right = _left(node), (*node.right, (" ", "plain"))
            if node.brief and width_of(left) + width_of(right) >= width:
                left = _left(replace(node, left=node.brief))
            return Row(justify(left, right, width), node.tone)
        if not node.calls and not node.right:
            return Row(crop(_left(node), width), node.tone)
        label = self._label(width)
        wider = self._wider(width)
        numbers = figures(node, width, self._without, wider)
        name = _left(node) if width >= WIDE else _brief(node)
        bars = self._bar(node, bar_width(label, width, self._without, wider))
        return _columned((*name, *_noted(node)), (*numbers, *bars), label, width, node.tone)

    @property
    def _has_calls(self) -> bool:
        return any(node.calls for node in self.nodes)

    def _label(self, width: int) -> int:
        return label_width(self._longest if width >= WIDE else self._briefest, width, self._without, self._wider(width))

    def _wider(self, width: int) -> int:
        """Cells that the costs take beyond their column."""
        wanted, longest = (self._wide, self._longest) if width >= WIDE else (self._narrow, self._briefest)
        return cost_room(wanted, longest, width, self._without)

    def _bar(self, node: Node, cells: int) -> tuple[Span, ...]:
        """When it ran, within the time of its phase; of a phase the tokens of its calls, one after the other."""
        if not cells:
            return ()
        if node.ran is None:
            if node.id[0] == "phase" and node.calls:
                return (("  ", "plain"), (sparkline([call.tokens_in for call in node.calls], cells), "time-call"))
            return ()
        timeline, ran = self.view.timeline, node.ran
        if timeline is None:
            return ()
        from workbench.views.timeline import FILLS, TOKENS, placed  # 60 ms, and there is no run in the first frame

        times = [timeline.seconds_at(time) for time in (ran.start, ran.first, ran.last)]
        until = timeline.seconds_at(ran.end)
        if None in times:
            return ()
        start, first, last = (timeline.axis(time) for time in times if time is not None)
        end = None if until is None else timeline.axis(until)
        kind = "idle" if ran.kind == "between" else ran.kind
        return (("  ", "plain"), *placed(start, end, first, last, cells, FILLS[kind], TOKENS[kind]))

    def heads(self, width: int) -> Sequence[Row]:
        if width < MEDIUM or not self._has_calls:
            return ()
        return (_columns_head(self._label(width), width, self._without, self._wider(width)),)

    def kept(self, needle: str, start: int = 0) -> Iterator[int]:
        """With each row the branches that it hangs on."""
        shown = set[int]()
        for index in super().kept(needle, start):
            while index not in shown:
                shown.add(index)
                index = self.parent_of(index)
        return iter(sorted(shown))

    def index_of(self, id: NodeId) -> int | None:
        """The row of a node, if it shows."""
        return next((i for i, node in enumerate(self.nodes) if node.id == id), None)

    def row_of(self, place: Place, run: str = "") -> int | None:
        """The row of a call (``run``: of a nested run), or of the nearest node above it that shows."""
        exact = self.index_of(("in", run, "call", str(place)) if run else ("call", str(place)))
        if exact is not None:
            return exact
        if run:
            return self.index_of(("child", run))
        return next((i for i, node in enumerate(self.nodes) if node.phase == place.phase), None)

    def row_of_visit(self, key: VisitKey, run: str = "") -> int | None:
        """The row of a visit (``run``: of a nested run), or of its phase if it has no row of its own."""
        branch, phase, visit = key
        exact = self.index_of((*(("in", run) if run else ()), "visit", branch, phase, str(visit)))
        if exact is None and run:
            return self.index_of(("child", run))
        return exact if exact is not None else self.index_of(("phase", phase))

    def parent_of(self, index: int) -> int:
        """The row of the node above."""
        depth = self.nodes[index].depth
        return next((i for i in range(index - 1, -1, -1) if self.nodes[i].depth < depth), index)


def _left(node: Node) -> tuple[Span, ...]:
    fold = "▾ " if node.unfolded else "▸ " if node.branches else "  "
    return ((" " + "  " * node.depth, "plain"), (fold, "faint"), *node.left)


def _brief(node: Node) -> tuple[Span, ...]:
    """The name, shortened for a tree with columns."""
    fold = "▾ " if node.unfolded else "▸ " if node.branches else " " if node.depth else "  "
    indent = (" " * (node.depth + 1), "plain")
    return (indent, (fold, "faint"), *(node.brief or node.left))


def _noted(node: Node) -> tuple[Span, ...]:
    """Returns the remark of a narrow tree before the number at its edge: visits, broken rules."""
    return ((" ", "plain"), *node.right[:-1]) if any(text for text, _ in node.right[:-1]) else ()


def _widths(node: Node) -> tuple[int, int, int, int]:
    noted, sums = width_of(_noted(node)), node.sums
    wide, narrow = (cost_cells(sums.spent, width, sums.missing) if sums else 0 for width in (WIDE, MEDIUM))
    return width_of(_left(node)) + noted, width_of(_brief(node)) + noted, wide, narrow


def watched_status(visit: VisitState) -> str:
    """The status of a context of a watched program: while it runs, that of its newest call if that is over, because
    nobody knows whether the program goes on with the context."""
    newest = visit.calls[-1].status if visit.calls else ""
    return newest if visit.status == "running" and newest in ("done", "failed") else visit.status


def breadcrumb(run: RunState | None, view: TreeView, width: int) -> tuple[Span, ...]:
    """The tree in one line, around the selected call: ``✓ intake › ⠋ triage › turn 3``."""
    spans: list[Span] = [(" ", "plain")]
    selected = view.selected
    if view.selected_run:
        return _nested_crumb(view, width)
    last = {visit.phase: visit_status(run, visit) for visit in run.visits} if run else {}
    names = [phase.name for phase in view.outline] or list(last)
    kinds = {phase.name: phase.kind for phase in view.outline if phase.kind not in ("llm", phase.name)}
    if selected is None:
        here = view.held.phase if view.held is not None and not view.held_run else ""
        steps: list[list[Span]] = []
        for name in names:
            kind = f" {kinds[name]}" if name in kinds else ""
            mark = sign("paused") if name == here else status_sign(last.get(name, "pending"), view.tick)
            steps.append([mark, (f" {flat(name)}", "bold" if name == here else "dim"), (kind, "faint"), ("  ", "dim")])
        # What is in front gives way to the phase at which the run is paused.
        at, front = names.index(here) if here in names else 0, 0
        while front < at and width_of([(" … ", ""), *(span for one in steps[front : at + 1] for span in one)]) > width:
            front += 1
        spans += [("… ", "faint")] if front else []
        spans += [span for one in steps[front:] for span in one]
    else:
        order = list(last)
        before = order[: order.index(selected.phase)][-2:] if selected.phase in order else []
        for name in before:
            spans += [status_sign(last[name], view.tick), (f" {flat(name)} ", "dim"), ("› ", "faint")]
        status, room = "pending", flat(selected.phase)
        if run is not None and (visit := run.visit_of(selected)) is not None:
            status = visit_status(run, visit)
            room += f"#{visit.visit}" if visit.visit > 1 and "imported" in run.ports else ""
        held = view.held is not None and view.held.phase == selected.phase
        spans += [
            sign("paused") if held else status_sign(status, view.tick),
            (f" {room} ", "bold"),
            (f"{kinds[selected.phase]} " if selected.phase in kinds else "", "faint"),
            ("› ", "faint"),
        ]
        spans += [(f"turn {selected.turn}" if selected.turn else "beside the turns", "bold")]
    return crop(spans, width)


def _nested_crumb(view: TreeView, width: int) -> tuple[Span, ...]:
    """Returns where a nested run stands, around its selected call."""
    run, selected = view.children[view.selected_run], view.selected
    spans: list[Span] = [(" ↳ ", "accent"), (child_name(run), "dim"), (" › ", "faint")]
    if selected is not None:
        spans.append((f"{flat(selected.phase)} ", "bold"))
        spans.append((f"› turn {selected.turn}" if selected.turn else "› beside the turns", "bold"))
    if view.held is None or view.held_run != view.selected_run:  # Where the run is paused, the key steps out.
        spans += [("   ", "plain"), (Target(told("{run.out} goes back"), "run.out"), "faint")]
    return crop(spans, width)


def nested_title(run: RunState, title: Sequence[Span], *, goes_back: bool) -> tuple[Span, ...]:
    """The title of a context that belongs to a nested run; ``goes_back``: whether its key goes back to the caller, as
    it does wherever it does not step."""
    back: tuple[Span, ...] = ((told("  {run.out} goes back"), "faint"),) if goes_back else ()
    return (*title[:1], (f"  ↳ {child_name(run)}", "accent"), *title[1:], *back)
