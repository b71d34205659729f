"""Candidates side by side: a table for each round, what decided it, the plot of quality against cost, and texts."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from rich.cells import cell_len

from workbench.analysis.ranking import RankedCandidate, evaluator_calls, judged, question_of, ranked_candidates
from workbench.context.place import Place
from workbench.dollars import UNPRICED, money
from workbench.engine.journal.candidate_rounds import CandidateRounds, Entrant, Round, candidate_name
from workbench.engine.journal.event import Event
from workbench.engine.journal.figures import Figures
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.views.cells import Row, Span, crop, fit, flat, width_of
from workbench.views.figure import scatter_picture
from workbench.views.keys import told
from workbench.views.model import Rows
from workbench.views.numbers import UNKNOWN, count, plural, seconds
from workbench.views.plot import Drawn, Point, scatter
from workbench.views.signs import sign, status_cell, status_sign
from workbench.views.text import wrapped
from workbench.views.tree import asking_runs, line_of
from workbench.views.value import BLANK, Block, Cell, Column, Drawing, Piece, Table, TextBlock, View

COST, QUALITY = "US dollars", "quality"
"""Quantities on the axes of the plot."""
FRONTIER = "★ won  ● on the frontier: no other is as good for less"


def plot_points(rows: Sequence[RankedCandidate]) -> list[Point]:
    """Quality against cost; empty while fewer than two candidates have both."""
    points = []
    for row in rows:
        cost = row.cost if row.assumed_cost is None else row.assumed_cost
        if row.quality is not None and cost is not None:
            mark, token = "★" if row.won else "●" if row.on_front else "○", "ok" if row.on_front else "dim"
            points.append(Point(cost, row.quality, mark, row.number, token))
    points.sort(key=lambda point: (point.mark != "★", point.token != "ok"))
    return points if len(points) > 1 else []


def plot_lines(rows: Sequence[RankedCandidate], width: int, height: int) -> list[Drawn]:
    """Quality against cost, with a line that names those that no other one beats."""
    if not (points := plot_points(rows)):
        return []
    drawn = scatter(points, COST, QUALITY, width, max(4, min(20, height - 8)))
    listed = ", ".join(row.number for row in rows if row.on_front)
    return [*drawn, (("★ won  ● on the frontier", "ok"), (f" (none is as good for less): {listed}", "dim"))]


class Ref(Struct, frozen=True):
    """The content of a row: a candidate of a round, or the line that names the winner and the reason."""

    kind: Literal["gap", "round", "candidate", "why", "note"]
    round: int = -1
    candidate: int = -1
    text: str = ""
    token: str = "plain"


FIXED = 18
"""Cells of a row besides the columns that are as wide as their content, and the output."""


ROOMY = 100
"""Cells from which on the mutation stands beside the output."""


class Needs(Struct, frozen=True):
    """Cells of the longest content of columns, with their heads; a mutation needs none where no prompt is varied."""

    model: int
    change: int
    checks: int
    output: int
    score: int
    tokens: int
    cost: int


class Widths(Struct, frozen=True):
    """Cells of the columns that give way."""

    model: int
    change: int
    checks: int
    time: int

    @classmethod
    def of(cls, width: int, needs: Needs) -> Widths:
        """Each column as wide as its content, up to a limit; a mutation up to half of the room that it shares with the
        output, and more where the output leaves it."""
        if width < ROOMY:
            return cls(16, 0, 2, 0)  # The mutation stands below; two words of it took the room of the output.
        model, checks, time = (23, 14, 0) if width < 160 else (30, 20, 8)
        model, checks = min(model, needs.model), min(checks, needs.checks)
        room = width - FIXED - needs.score - needs.tokens - needs.cost - model - checks - time
        return cls(model, min(needs.change, max(room // 2, room - needs.output)), checks, time)


UNLIMITED = 400
"""Width of a line before a layout."""
LINES = 4
"""Most lines of each text below a round; the details have it whole."""


class Stops(NamedTuple):
    """Where a run does not go on. Of a run inside it, the visit that started that one."""

    paused: tuple[Place, ...] = ()
    asked: tuple[Place, ...] = ()
    """Where a person is asked inside of a nested run; the questions of the run itself are in its state."""


NO_STOPS = Stops()


def stops_of(run: RunState, children: Mapping[str, RunState], held: Place | None, held_run: str) -> Stops:
    """Where a run is stopped that is, or started, some of the runs that are paused or wait for a person. ``held`` is
    where one of them is paused, and ``held_run`` the nested run that is; empty for the run that started them all."""
    paused_runs = line_of(held_run, children) if held is not None else ()
    asking = asking_runs(children)
    paused = [held] if held is not None and children.get(held_run, run) is run else []
    asked: list[Place] = []
    for visit in run.visits if paused_runs or asking else ():
        inside = {str(child.get("run_id", "")) for child in visit.children}
        place = Place(visit.branch, visit.phase, visit.visit)
        paused += [place] if not inside.isdisjoint(paused_runs) else []
        asked += [place] if not inside.isdisjoint(asking) else []
    return Stops(tuple(paused), tuple(asked))


class CandidateRows(Rows):
    """All rounds of one contest in one list."""

    empty = ("No candidate has run yet.",)
    spreads = True
    told_beside = True

    def __init__(
        self,
        state: RunState,
        contest: CandidateRounds,
        tick: int = 0,
        marked: int | None = None,
        stops: Stops = NO_STOPS,
    ) -> None:
        """``stops``: where the run is paused, and where runs inside it wait for a person."""
        self.state, self.contest, self.tick, self.marked, self.stops = state, contest, tick, marked, stops
        self.rounds = [(of, ranked_candidates(state, contest, of)) for of in contest.rounds]
        self.previews = [previews(rows) for _, rows in self.rounds]
        """How the output of each candidate of a round begins, by its index."""
        self.question = question_of(state, contest)
        self.asks_more = any(not one.data.get("candidates") for one in state.questions)
        """Whether the run waits for an answer that is no choice among candidates, such as the reason of a choice."""
        self.offered = tuple(self.question.data["candidates"]) if self.question is not None else ()
        self.shown: Mapping[str, Any] = self.question.data.get("shown") or {} if self.question is not None else {}
        self._width = UNLIMITED
        self._needs = self._measured()
        self.refs = tuple(self._refs())
        self.title = (("Candidates", "title"), (f"  {contest_name(contest)} · {contest_words(self)}", "name"))
        self.title_right = (sign("winner"), (" won  ", "dim"), ("●", "ok"), (" frontier", "dim"))

    # -- which rows there are ----------------------------------------------------------------------------------------

    def lay_out(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self.refs = tuple(self._refs())

    def _refs(self) -> Iterator[Ref]:
        for number, (of, rows) in enumerate(self.rounds):
            if number:
                yield Ref("gap")
            if len(self.rounds) > 1 or of.kind != "soundings":
                yield Ref("round", number)
            yield from (Ref("candidate", number, index) for index in range(len(rows)))
            if of.evaluation is not None:
                yield from self._said("why", number, why_text(of, rows), "bold")
                if said := attempts_words(of.evaluation):
                    yield from self._said("note", number, said, "dim")
            for text, token in notes(rows):
                yield from self._said("note", number, text, token)
            if self.question is not None and number == len(self.rounds) - 1:
                found = judged(self.state, self.contest, of)
                if said := advice(found, rows):
                    yield from self._said("note", number, said, "bold")
                if said := attempts_words(found):
                    yield from self._said("note", number, said, "dim")
                yield from self._said("note", number, asked_words(self.question), "waiting")

    def _said(self, kind: Literal["why", "note"], number: int, text: str, token: str) -> Iterator[Ref]:
        """A sentence below the candidates of a round, in as many lines as it takes."""
        for part in textwrap.wrap(text, max(20, self._width - 5), max_lines=LINES, placeholder=" …"):
            yield Ref(kind, number, text=part, token=token)
            kind = "note"

    def __len__(self) -> int:
        return len(self.refs)

    def candidate(self, row: int) -> RankedCandidate | None:
        """The candidate of a row."""
        ref = self.refs[row] if 0 <= row < len(self.refs) else Ref("gap")
        return self.rounds[ref.round][1][ref.candidate] if ref.kind == "candidate" else None

    def round_of(self, row: int) -> Round | None:
        """The round that a row belongs to."""
        number = self.refs[row].round if 0 <= row < len(self.refs) else -1
        return self.rounds[number][0] if number >= 0 else None

    def by_index(self, index: int) -> RankedCandidate | None:
        """A candidate, as it stood in the last round it was in."""
        return next((r for _, rows in reversed(self.rounds) for r in rows if r.entrant.index == index), None)

    def row_of(self, index: int) -> int | None:
        """The last row of a candidate."""
        found = (i for i in range(len(self.refs) - 1, -1, -1) if (c := self.candidate(i)) and c.entrant.index == index)
        return next(found, None)

    @property
    def turning(self) -> bool:
        """Whether a spinner shows."""
        return any(self.status(row.entrant) == "running" for _, rows in self.rounds for row in rows)

    def status(self, entrant: Entrant) -> str:
        """The status of a candidate; ``paused`` and ``waiting`` (for a person) where one runs and the run is held, or
        asks, inside of it."""
        if entrant.status != "running":
            return entrant.status
        if any(self._is_inside(entrant, place) for place in self.stops.paused):
            return "paused"
        asked = (*self.stops.asked, *(one.place for one in self.state.questions))
        return "waiting" if any(self._is_inside(entrant, place) for place in asked) else "running"

    def _is_inside(self, entrant: Entrant, place: Place) -> bool:
        own = self.contest.is_whole or place.phase == self.contest.place.phase
        return own and f"{place.branch}/".startswith(f"{entrant.branch}/")

    def _measured(self) -> Needs:
        rows = [row for _, ranked in self.rounds for row in ranked]
        change = max((cell_len(change_words(self.contest, row)) for row in rows), default=0)
        names = max((cell_len(", ".join(row.failed_checks)) for row in rows), default=0)
        return Needs(
            1 + max([len("model"), *(cell_len(flat(row.model)) for row in rows)]),
            max(change, len("mutation")) if change else 0,
            max(len("checks"), names + 2),
            max((cell_len(text) for texts in self.previews for text in texts.values()), default=0),
            max([len("score"), *(cell_len(score_words(row)) for row in rows)]),
            max([len("tokens"), *(cell_len(_tokens(row)) for row in rows)]) + 2,
            max([len("cost"), *(cell_len(cost_words(row)) for row in rows)]) + 2,
        )

    @property
    def _what_output_shows(self) -> str:
        differ = any(text.startswith("…") for texts in self.previews for text in texts.values())
        return "differing output" if differ else "output"

    # -- how they look -----------------------------------------------------------------------------------------------

    def heads(self, width: int) -> Sequence[Row]:
        at, needs = Widths.of(width, self._needs), self._needs
        time = fit("time", at.time, "right") if at.time else ""
        checks = fit("checks" if at.checks > 5 else "", at.checks)
        text = (
            f"    {fit('#', 4)} {fit('model', at.model)} {fit('mutation', at.change)}   "
            f"{fit('score', needs.score, 'right')}{fit('tokens', needs.tokens, 'right')}"
            f"{fit('cost', needs.cost, 'right')}{time}  {checks}   {self._what_output_shows}"
        )
        return (Row(crop(((text, "head"),), width)),)

    def row(self, index: int, width: int) -> Row:
        ref = self.refs[index]
        if ref.kind == "candidate":
            offered = self.offered if ref.round == len(self.rounds) - 1 else ()
            row = self.rounds[ref.round][1][ref.candidate]
            return self._candidate(row, width, offered, self.previews[ref.round][row.entrant.index])
        if ref.kind == "round":
            return Row(crop(((" ── ", "rule"), (round_words(*self.rounds[ref.round]), "head")), width))
        if ref.kind == "why":
            of = self.rounds[ref.round][0]
            mark = sign("done" if of.winner is None else "winner" if of.decided else "stands")
            return Row(crop(((" ", "plain"), mark, (f"  {ref.text}", ref.token)), width))
        return Row(crop(((f"    {ref.text}", ref.token),), width))

    def _model(self, row: RankedCandidate, width: int) -> str:
        """The model; all without their vendors if one has no room for both, so that the names are alike."""
        rows = (one for _, ranked in self.rounds for one in ranked)
        name = flat(row.model)
        return name if all(len(one.model) <= width for one in rows) else name.rpartition("/")[2] or UNKNOWN

    def _sign(self, entrant: Entrant, *, is_offered: bool) -> Span:
        if is_offered:
            return sign("waiting")
        return status_sign(self.status(entrant), self.tick)

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        """A candidate with its whole mutation and preview, each in its column; on a narrow screen below the row."""
        ref, at = self.refs[index], Widths.of(width, self._needs)
        if ref.kind != "candidate":
            return ()
        row = self.rounds[ref.round][1][ref.candidate]
        offered = self.offered if ref.round == len(self.rounds) - 1 else ()
        preview = flat(self.previews[ref.round][row.entrant.index], UNLIMITED)
        begins = 9 + at.model + 1
        numbers = self._needs.score + self._needs.tokens + self._needs.cost + at.time
        output = begins + at.change + 3 + numbers + 2 + at.checks + 3
        if width < ROOMY:
            texts = [("mutation", self._change(row), "dim")]
            if is_cut := cell_len(preview) > width - output:
                texts.append(("output", preview, _said_token(row)))
            first = self._candidate(row, width, offered, "" if is_cut else preview)
            return (first, *_below(texts, width, first.tone)) if is_cut or texts[0][1] else ()
        changed = wrapped(((self._change(row), "dim"),), max(8, at.change)) if at.change else ()
        said = wrapped(((preview, _said_token(row)),), max(8, width - output))
        heads = ["".join(text for text, _ in lines[0]) if lines else "" for lines in (said, changed)]
        first = self._candidate(row, width, offered, *heads)
        rows = [first]
        for number in range(1, min(LINES, max(len(changed), len(said)))):
            left = changed[number] if number < len(changed) else ()
            right = said[number] if number < len(said) else ()
            gap = " " * (output - begins - width_of(left))
            rows.append(Row(crop(((" " * begins, "plain"), *left, (gap, "plain"), *right), width), first.tone))
        return tuple(rows) if len(rows) > 1 else ()

    def _change(self, row: RankedCandidate) -> str:
        return "" if "mutations" in self.shown.get("hidden", ()) else change_words(self.contest, row)

    def _candidate(
        self, row: RankedCandidate, width: int, offered: Sequence[int], preview: str, change: str | None = None
    ) -> Row:
        at, entrant = Widths.of(width, self._needs), row.entrant
        dim = "dim" if entrant.status == "pending" else "plain"
        hidden = self.shown.get("hidden", ())
        bare = "metadata" in hidden
        change = self._change(row) if change is None else change
        name = f"{row.number}" + ("↑" if row.incumbent else "")
        is_offered = entrant.index in offered
        spans: list[Span] = [
            (" ", "plain"),
            self._sign(entrant, is_offered=is_offered),
            ("●" if entrant.index == self.marked else " ", "changed"),
            (f" {fit(name, 4)} ", "bold" if is_offered else dim),
            (f"{fit('' if bare else self._model(row, at.model), at.model)} ", dim),
            (f"{fit(change, at.change)} ", "dim"),
            sign("winner" if row.decided else "stands") if row.won else (" ", "plain"),
            (" ", "plain"),
            (
                fit("" if bare else score_words(row), self._needs.score, "right"),
                "masked" if row.assumed_score else "bold" if row.won else "plain",
            ),
            (fit("" if bare else _tokens(row), self._needs.tokens, "right"), dim),
            (
                fit("" if bare else cost_words(row), self._needs.cost, "right"),
                dim if row.assumed_cost is None else "masked",
            ),
        ]
        if at.time:
            spans.append((fit("" if bare else seconds(row.seconds), at.time, "right"), "dim"))
        spans += [("  ", "plain"), *_checks(row, at.checks), (" ", "plain")]
        spans += [("● " if row.on_front else "  ", "ok"), (flat(preview, 400), _said_token(row))]
        return Row(crop(spans, width))

    def plain(self, index: int) -> str:
        row = self.candidate(index)
        if row is None:
            return self.row(index, 400).text.strip()
        hidden = self.shown.get("hidden", ())
        about = "" if "metadata" in hidden else f" {row.model}"
        about += "" if "mutations" in hidden else f" {change_words(self.contest, row)}"
        return f"{row.number}{about} {_said(row)}"

    def plot(self, width: int, height: int, of: Round | None = None) -> list[Drawn]:
        """Quality against cost of a round (the last, if none is named); empty while there is nothing to draw."""
        rows = next((rows for r, rows in reversed(self.rounds) if of is None or r is of), ())
        return plot_lines(rows, width, height)


def _below(texts: Sequence[tuple[str, str, str]], width: int, tone: str) -> Iterator[Row]:
    """Texts in lines of their own, up to ``LINES`` each, beside their names."""
    for name, text, token in texts:
        indent = 9 + len(name) + 2
        lines = wrapped(((text, token),), max(8, width - indent - 1))[:LINES] if text else ()
        for number, line in enumerate(lines):
            before = f"{'':9}{name}  " if not number else " " * indent
            yield Row(crop(((before, "head"), *line), width), tone)


# -- words: the same in the app and on the command line --------------------------------------------------------------


COLUMNS = (
    Column("#"),
    Column("status"),
    Column("model", flexible=True, leaves=6),
    Column("mutation", flexible=True, leaves=4),
    Column("score", right=True),
    Column("tokens", right=True, leaves=3),
    Column("cost", right=True, leaves=7),
    Column("time", right=True, leaves=1),
    Column("checks", leaves=5),
    Column(""),
    Column("output", flexible=True, leaves=2),
)
PREVIEW = 80
"""Characters of an output in a table."""


class CandidatesView(View):
    """A table for each round of each contest, what decided it, and what the numbers leave unsaid."""

    def __init__(
        self, state: RunState, contests: Sequence[CandidateRounds], *, texts: bool = False, plot: bool = False
    ) -> None:
        """``texts``: each output, and what the evaluator was asked and said; ``plot``: quality against cost."""
        self.state, self.contests, self.texts, self.plot = state, contests, texts, plot

    def blocks(self) -> Iterator[Block]:
        for number, contest in enumerate(self.contests):
            if number:
                yield BLANK
            yield from self._contest(contest)

    def _contest(self, contest: CandidateRounds) -> Iterator[Block]:
        head = CandidateRows(self.state, contest)
        yield (Cell(contest_name(contest), "head"), f"   {contest_words(head)}")
        for (of, rows), begun in zip(head.rounds, head.previews, strict=True):
            yield BLANK
            yield (Cell(round_words(of, rows), "accent"),)
            yield Table(
                COLUMNS, [_row(contest, row, head.status(row.entrant), begun[row.entrant.index]) for row in rows]
            )
            if of.evaluation is not None:
                why = why_text(of, rows)
                yield (Cell(f"{'★' if of.decided or of.winner is None else '☆'} {why}", "ok", why),)
            for words in filter(None, (attempts_words(of.evaluation), *(words for words, _ in notes(rows)))):
                yield (Cell(f"  {words}", "dim"),)
            if self.plot:
                found = plot_points(rows)
                yield Drawing(
                    partial(plot_lines, rows, height=20), partial(scatter_picture, found, COST, QUALITY, (FRONTIER,))
                )
            if self.texts:
                yield from self._texts(contest, of, rows)
        if head.question is not None:
            yield BLANK
            yield (Cell(asked_words(head.question), "waiting"),)

    def _texts(self, contest: CandidateRounds, of: Round, rows: Sequence[RankedCandidate]) -> Iterator[Block]:
        for row in rows:
            if not row.incumbent:
                yield BLANK
                yield (Cell(f"{row.number} {row.model}", "head"),)
                yield TextBlock(row.output or row.entrant.reason, "  ")
        for call in evaluator_calls(self.state, contest, of):
            yield BLANK
            yield (Cell(f"{call.name} by {call.model}", "head"),)
            sent = [entry.sent for entry in call.entries if entry.sent is not None]
            yield from (TextBlock(f"{message.role}: {message.text}", "  ") for message in sent)
            if call.answer is not None:
                yield TextBlock(f"answer: {call.answer.text}", "  ")

    def points(self) -> list[Point]:
        """Quality against cost in the last round that has both; empty if there is none."""
        rounds = (ranked_candidates(self.state, contest, of) for contest in self.contests for of in contest.rounds)
        return next((found for rows in reversed(list(rounds)) if (found := plot_points(rows))), [])

    def json(self) -> dict[str, Any]:
        return contests_json(self.state, self.contests)


def _row(contest: CandidateRounds, row: RankedCandidate, status: str, preview: str) -> list[Piece]:
    signs = ["★" if row.decided else "☆"] if row.won else []
    words = ["winner" if row.decided else "stands"] if row.won else []
    if row.on_front:
        signs.append("●")
        words.append("frontier")
    whole = " ".join((row.output or row.entrant.reason).split())
    return [
        Cell(row.number + ("↑" if row.incumbent else ""), words=row.number + (" (incumbent)" if row.incumbent else "")),
        status_cell(status),
        row.model,
        Cell(change_words(contest, row), "dim"),
        score_words(row),
        count(row.tokens, row.tokens_grade) if row.tokens is not None else "",
        cost_words(row),
        seconds(row.seconds) if row.seconds is not None else "",
        Cell(", ".join(row.failed_checks), "error"),
        Cell(" ".join(signs), "ok", " ".join(words)),
        Cell(preview if len(preview) <= PREVIEW else preview[:PREVIEW] + "…", words=whole),
    ]


def contests_json(state: RunState, contests: Sequence[CandidateRounds]) -> dict[str, Any]:
    """Every fact of the screen. Unknown numbers are null; money in US dollars."""
    return {
        "run_id": state.run_id,
        "session_id": state.session_id,
        "contests": [_contest(state, contest) for contest in contests],
    }


def _contest(state: RunState, contest: CandidateRounds) -> dict[str, Any]:
    place, question = contest.place, question_of(state, contest)
    standing = contest.entrant(contest.winner) if contest.winner is not None else None
    return {
        "branch": place.branch,
        "phase": None if contest.is_whole else place.phase,
        "visit": None if contest.is_whole else place.visit,
        "whole_cascade": contest.is_whole,
        "winner": standing.index if standing is not None else None,
        "question": None if question is None else dict(question.data),
        "rounds": [_round(state, contest, of) for of in contest.rounds],
    }


def _round(state: RunState, contest: CandidateRounds, of: Round) -> dict[str, Any]:
    rows = ranked_candidates(state, contest, of)
    return {
        "kind": of.kind,
        "step": of.step or None,
        "max_parallel": of.max_parallel or None,
        "winner": of.winner,
        "evaluation": dict(of.evaluation) if of.evaluation is not None else None,
        "said": why_text(of, rows) if of.evaluation is not None else None,
        "notes": [words for words, _ in notes(rows)],
        "exchange": [_exchange(call) for call in evaluator_calls(state, contest, of)],
        "candidates": [_candidate(row) for row in rows],
    }


def _exchange(call: CallState) -> dict[str, Any]:
    sent = [entry.sent for entry in call.entries if entry.sent is not None]
    return {
        "at": str(call.place),
        "purpose": call.purpose,
        "model": call.model,
        "messages": [{"role": message.role, "text": message.text} for message in sent],
        "answer": call.answer.text if call.answer is not None else None,
    }


def _candidate(row: RankedCandidate) -> dict[str, Any]:
    entrant = row.entrant
    return {
        "index": entrant.index,
        "number": row.number,
        "branch": entrant.branch,
        "session_id": entrant.session_id or None,
        "status": entrant.status,
        "reason": entrant.reason or None,
        "incumbent": row.incumbent,
        "model": row.model or None,
        "parameters": dict(entrant.parameters),
        "mutation_type": entrant.mutation_type or None,
        "mutation_template": entrant.mutation_template or None,
        "mutation_applied": entrant.mutation_applied or None,
        "score": row.score,
        "score_assumed": row.assumed_score,
        "quality": row.quality,
        "tokens": row.tokens,
        "cost": row.cost,
        "cost_grade": row.cost_grade,
        "cost_assumed": row.assumed_cost,
        "seconds": row.seconds,
        "failed_checks": list(row.failed_checks),
        "compared": row.compared,
        "pareto": row.on_front,
        "won": row.won,
        "stands": row.stands,
        "calls": [str(call.place) for call in row.calls],
        "output": row.output,
    }


def contest_name(contest: CandidateRounds) -> str:
    """``generate``, ``s0/generate#2``, ``the whole cascade``."""
    if contest.is_whole:
        return f"{contest.place.branch}/the whole cascade".strip("/")
    place = contest.place
    name = f"{flat(place.phase)}#{place.visit}" if place.visit > 1 else flat(place.phase)
    return f"{flat(place.branch)}/{name}" if place.branch else name


def contest_words(rows: CandidateRows) -> str:
    """``5 candidates · 2 reforge steps · 3 running``."""
    first = rows.contest.rounds[0] if rows.contest.rounds else None
    parts = [plural(len(first.entrants) if first else 0, "candidate")]
    steps = sum(1 for r in rows.contest.rounds if r.kind == "reforge")
    parts += [plural(steps, "reforge step")] if steps else []
    found = Counter(rows.status(e) for r in rows.contest.rounds for e in r.entrants)
    held, asking, running, queued = (found[status] for status in ("paused", "waiting", "running", "pending"))
    parts += [f"{held} paused"] if held else []
    parts += [f"{asking} waiting for you"] if asking else []
    parts += [f"{running} running"] if running else []
    parts += [f"{queued} queued"] if queued and (running or held or asking) else []
    winner = rows.by_index(rows.contest.winner) if rows.contest.winner is not None else None
    judged = all(r.evaluation is not None for r in rows.contest.rounds)
    if rows.question is not None:
        parts.append("you choose")
    elif rows.asks_more and not asking:
        parts.append("waiting for your answer")
    elif not judged and not running and not asking and not queued and rows.state.status == "running":
        parts.append("being judged")
    elif winner is not None and not running:
        *before, last = rows.contest.rounds
        chosen = next((of for of in reversed(before) if of.decided and of.winner == rows.contest.winner), None)
        if last.decided or chosen is None:
            parts.append(f"candidate {winner.number} {_outcome(last)}")
        else:
            parts.append(f"candidate {winner.number} won the {_round_name(chosen)}; {_round_name(last)} undecided")
    return " · ".join(parts)


def round_words(of: Round, rows: Sequence[RankedCandidate]) -> str:
    """``reforge step 2 · 2 candidates, 3 at once · refines r1.0``."""
    what = _round_name(of)
    at_once = f", {of.max_parallel} at once" if 0 < of.max_parallel < len(of.entrants) else ""
    refined = next((f" · refines {row.number}" for row in rows if row.incumbent), "")
    return f"{what} · {plural(len(of.entrants), 'candidate')}{at_once}{refined}"


def _round_name(of: Round) -> str:
    return {"soundings": "soundings", "cascade": "walks of the cascade", "reforge": f"reforge step {of.step}"}[of.kind]


def why_text(of: Round, rows: Sequence[RankedCandidate]) -> str:
    """``3 wins, 90 of 100: "covers …" (quality and cost; the evaluator's own pick was 2)``, with a person's reasons
    against the others."""
    data, names = of.evaluation or {}, {row.entrant.index: row.number for row in rows}
    if of.winner is None:
        return f"all {plural(len([r for r in rows if r.entrant.status == 'success']), 'output')} are joined"
    reason = flat(str(data.get("reason") or ""), 600)
    notes = [flat(str(data.get("decided_by") or ""))]
    own = data.get("evaluator_pick")
    if own is not None and own != of.winner:
        notes.append(f"the evaluator's own pick was {names.get(own, own)}")
    judged = flat(str(data.get("evaluator_reason") or ""), 400)
    notes += [f'the evaluator said "{judged}"'] if judged and judged != reason else []
    by = "" if notes == ["evaluator"] else f" ({'; '.join(filter(None, notes))})"
    said = f': "{reason}"' if reason else ""
    others = [f"{names[index]}: {why}" for index in names if (why := rejection(of, index))]
    rejected = f". Not chosen, {'; '.join(others)}" if others else ""
    return f"{names.get(of.winner, str(of.winner))} {_outcome(of)}{said}{by}{rejected}"


def rejection(of: Round, index: int) -> str:
    """The reason that a person gave for not choosing a candidate of a round; empty if there is none."""
    return flat(str(((of.evaluation or {}).get("rejected") or {}).get(str(index)) or ""), 400)


def _outcome(of: Round) -> str:
    return "wins" if of.decided else "stands, undecided"


def notes(rows: Sequence[RankedCandidate]) -> Iterator[tuple[str, str]]:
    """Yields the remarks that explain the numbers: ``(text, token)``."""
    scores = [row.number for row in rows if row.assumed_score]
    if scores:
        yield (
            f"~ no score from the evaluator for {', '.join(scores)}: its winner counts as 100, others as 50",
            "masked",
        )
    costs = [row.number for row in rows if row.assumed_cost is not None]
    if costs:
        yield f"~ the cost of {', '.join(costs)} is unknown: the mean of the known costs is used", "masked"
    predicted = [row.number for row in rows if row.cost_grade == "predicted" and row.assumed_cost is None]
    if predicted and len(predicted) < len(rows):
        yield (
            f"~ of {', '.join(predicted)} calls without a bill are predicted, without an output that has no price",
            "masked",
        )
    elif predicted:
        yield "~ calls without a bill are predicted, without an output that has no price", "masked"
    for row in rows:
        if row.entrant.reason:
            yield f"{row.number} {row.entrant.status}: {flat(row.entrant.reason, 300)}", "error"


def advice(found: Mapping[str, Any], rows: Sequence[RankedCandidate]) -> str:
    """The evaluator's own choice, for the person who decides."""
    pick = found.get("evaluator_pick")
    if pick is None:
        return ""
    name = next((row.number for row in rows if row.entrant.index == pick), str(pick))
    reason = flat(str(found.get("reason") or ""), 400)
    return f"the evaluator would pick {name}" + (f': "{reason}"' if reason else "")


def asked_words(question: Event) -> str:
    """The request to the person, shown where the choice is made."""
    how = {"rank_all": "rank them all", "rate_each": "rate each from 0 to 100"}
    what = how.get(str(question.data.get("mode")), "choose one")
    return f"The run waits for you: {what} ({flat(str(question.data.get('question', '')).partition(chr(10))[0], 200)})"


def change_words(contest: CandidateRounds, row: RankedCandidate) -> str:
    """``rewrite: Put the constraints first.``, ``baseline``, or empty if no prompt is varied."""
    entrant = row.entrant
    if entrant.mutation_type:
        return f"{flat(entrant.mutation_type)}: {flat(entrant.mutation_template)}"
    varied = any(e.mutation_type for r in contest.rounds for e in r.entrants)
    return "baseline" if varied and entrant.index < 1000 else ""


def score_words(row: RankedCandidate) -> str:
    if row.score is None:
        return ""
    return f"~{row.score:g}" if row.assumed_score else f"{row.score:g}"


def _tokens(row: RankedCandidate) -> str:
    return count(row.tokens, row.tokens_grade)


def cost_words(row: RankedCandidate) -> str:
    """``$0.0071``; ``~`` before a cost that is assumed, predicted or from another price list, as everywhere; ``…``
    after a part; empty before the first call."""
    value = row.cost if row.assumed_cost is None else row.assumed_cost
    if value is None:
        return UNPRICED if row.tokens is not None else ""
    words = money(value, exact=row.assumed_cost is None and Figures.of(row.calls).spent.worth.exact)
    return f"{words}…" if row.cost_grade == "so far" and row.assumed_cost is None else words


def _checks(row: RankedCandidate, width: int) -> tuple[Span, ...]:
    if row.failed_checks:
        names = f" {fit(', '.join(row.failed_checks), width - 2)}" if width > 2 else " " * (width - 1)
        return (sign("broken"), (names, "error"))
    done = row.entrant.status == "success"
    return (sign("done") if done else (" ", "plain"), (" " * (width - 1), "plain"))


def attempts_words(found: Mapping[str, Any] | None) -> str:
    """Returns which candidates an evaluator's attempts are, where a model compared them: it counts what it was shown
    from 1. ``found``: its verdict, or what a person who chooses was told of it."""
    data = found or {}
    compared = [index for index in data.get("compared") or () if isinstance(index, int)]
    if data.get("evaluator_pick") is None or not compared:
        return ""
    names = ", ".join(map(candidate_name, compared))
    return f"the evaluator calls {names} attempts 1 to {len(compared)}"


ALIKE = 10
"""Characters that the beginnings of two outputs share from which on they are left out."""


def previews(rows: Sequence[RankedCandidate]) -> dict[int, str]:
    """One line of each output, by the index of its candidate. What it begins with like another one is left out:
    JSON that differs in its values would show its first key alone.
    """
    lines = {row.entrant.index: flat(" ".join(_said(row).split()), UNLIMITED) for row in rows}
    found: dict[int, str] = {}
    for index, line in lines.items():
        others = (other for at, other in lines.items() if at != index and other != line)
        alike = max((_alike(line, other) for other in others), default=0)
        begun = re.search(r"\w*$", line[:alike])
        start = begun.start() if begun is not None else alike
        found[index] = f"…{line[start:]}" if start >= ALIKE else line
    return found


def _alike(a: str, b: str) -> int:
    """Characters with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _said(row: RankedCandidate) -> str:
    status = row.entrant.status
    if status == "pending":
        return "queued"
    return row.output or row.entrant.reason or ("…" if status == "running" else "(no text)")


def _said_token(row: RankedCandidate) -> str:
    if row.entrant.status in ("failed", "blocked"):
        return "error" if not row.output else "dim"
    return "faint" if row.entrant.status == "pending" else "plain"


def no_candidates(state: RunState) -> str:
    """The text if there is nothing to show."""
    if not state.run_id:
        return told("No run yet: {run.start} starts one.")
    return "No candidates ran in this run: no phase has soundings, or none was reached."
