"""One candidate as a document: its prompt and its output; two in parallel columns; the evaluator's verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from workbench.analysis.ranking import RankedCandidate, evaluator_calls
from workbench.context.message import Image
from workbench.dollars import UNPRICED
from workbench.engine.candidates.previews import PICTURES, rendered
from workbench.engine.journal.candidate_rounds import CandidateRounds, Round
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.json_text import pretty
from workbench.views.candidates import (
    CandidateRows,
    attempts_words,
    change_words,
    cost_words,
    rejection,
    score_words,
    why_text,
)
from workbench.views.cells import Span, flat
from workbench.views.diffs import DiffRows
from workbench.views.documents import image_lines, markdown_line, message_lines, painter
from workbench.views.model import Rows
from workbench.views.numbers import count, seconds
from workbench.views.picture import Gallery
from workbench.views.text import TextLine, TextRows, text_lines

NOTHING: Mapping[str, Any] = MappingProxyType({})
MARKDOWN = 20_000
"""Characters beyond which an output stays plain: rendering would be felt at each key."""
_STATUS_WORDS = {"pending": "queued", "waiting": "waiting for your answer"}
PICTURE_LINES = 16
"""Of a picture among candidates: two of them can be told apart."""


def candidate_doc(
    contest: CandidateRounds,
    row: RankedCandidate,
    *,
    whole: bool = False,
    shown: Mapping[str, Any] = NOTHING,
    gallery: Gallery | None = None,
    status: str = "",
) -> TextRows:
    """A candidate in full; while a person chooses, ``shown`` says in what form, and what is hidden from them.
    ``gallery`` draws the pictures that it made, where there is one; ``status`` is that of the list, if it says more
    than the candidate's own."""
    hidden = shown.get("hidden", ())
    bare = "metadata" in hidden
    title: tuple[Span, ...] = ((f"Candidate {row.number}", "title"), ("" if bare else f"  {flat(row.model)}", "name"))
    lines = list(_facts(contest, row, hidden, status or row.entrant.status))
    if row.output or shown:
        limit = None if whole else shown.get("limit")
        cut = limit is not None and len(row.output) > limit
        seen = f"{row.output[:limit]}…" if cut else row.output
        note = f"  the first {limit:,} of {len(row.output):,} characters" if cut else ""
        lines += [TextLine(""), TextLine(f"output{note}", "head")]
        lines += _output(row, seen, str(shown.get("render", "auto")), whole=whole, gallery=gallery)
    told = "" if "mutations" in hidden else prompt_of(row)
    if told:
        lines += [TextLine(""), TextLine("prompt", "head"), *text_lines(told, "dim", whole=whole)]
    known = [f"{count(row.tokens, row.tokens_grade)} tokens"] if row.tokens is not None else []
    known += [seconds(row.seconds)] if row.seconds is not None else []
    facts = ((" · ".join(known), "dim"),) if known and not bare else ()
    return TextRows(lines, title, facts, copy=row.output)


def choosing_doc(
    contest: CandidateRounds, row: RankedCandidate, rows: CandidateRows, gallery: Gallery | None = None
) -> Rows:
    """A candidate as the file wants it shown to the person who chooses: alone with tabs or a count above it
    (``tabbed``, ``carousel``), or beside the first one with what differs marked (``diff``)."""
    shown = rows.shown
    kind, at = shown.get("presentation"), row.entrant.index
    if at not in rows.offered:
        return candidate_doc(contest, row, shown=shown, gallery=gallery, status=rows.status(row.entrant))
    first = rows.by_index(rows.offered[0])
    if kind == "diff" and first is not None and first.entrant.index != at:
        return beside(first, row, "outputs", shown=shown, whole=False)
    made = candidate_doc(contest, row, shown=shown, gallery=gallery)
    names = [other.number if (other := rows.by_index(index)) else str(index) for index in rows.offered]
    here = rows.offered.index(at)
    if kind == "tabbed":
        tabs = [(f" {name} ", "cursor" if number == here else "dim") for number, name in enumerate(names)]
        made.title = (*made.title, ("  ", "plain"), *tabs)
    elif kind == "carousel":
        made.title = (*made.title, (f"  ↑ {here + 1} of {len(names)} ↓", "dim"))
    return made


def _output(row: RankedCandidate, output: str, render: str, *, whole: bool, gallery: Gallery | None) -> list[TextLine]:
    """The output in a form of ``preview_render``; if that leaves the form open, its pictures follow the text."""
    if render == "markdown" and len(output) <= MARKDOWN:
        return [markdown_line(output)]
    if render == "text":
        return text_lines(output, whole=whole)
    if render in PICTURES:
        pictures = image_lines(_images(row), gallery, PICTURE_LINES)
        return [*pictures, *text_lines(output, whole=whole)] if output else pictures
    text = rendered(output, render)
    token = "code-string" if render == "code" else "plain"
    pictures = image_lines(_images(row), gallery, PICTURE_LINES) if render == "auto" else []
    return [*text_lines(text, token, whole=whole, paint=painter(text)), *pictures]


def _images(row: RankedCandidate) -> tuple[Image, ...]:
    """The pictures that the candidate's own tools made."""
    items = [entry.item for call in row.calls for entry in call.entries if entry.item.place.branch == row.place.branch]
    return tuple({image.digest: image for item in items for image in item.message.images}.values())


def _facts(contest: CandidateRounds, row: RankedCandidate, hidden: Collection[str], status: str) -> Iterator[TextLine]:
    entrant, said = row.entrant, _STATUS_WORDS.get(status, status)
    if "metadata" in hidden:
        yield TextLine(said, "bold")
        return
    words = [said]
    words += [f"score {score_words(row)}"] if row.score is not None else []
    words += [f"cost {cost_words(row)}"] if cost_words(row) else []
    words += ["refined here"] if row.incumbent else []
    words += ["won" if row.decided else "stands, undecided"] if row.won else []
    words += ["on the frontier"] if row.on_front else []
    yield TextLine(" · ".join(words), "bold")
    if entrant.reason:
        yield from text_lines(entrant.reason, "error")
    against = next(
        (why for of in contest.rounds if entrant in of.entrants and (why := rejection(of, entrant.index))), ""
    )
    if against:
        yield from text_lines(f"not chosen: {against}", "dim")
    if (change := change_words(contest, row)) and "mutations" not in hidden:
        yield TextLine(f"mutation  {change}", "dim")
    if entrant.parameters:
        yield TextLine("sent with " + ", ".join(f"{k} {v}" for k, v in entrant.parameters.items()), "dim")
    if entrant.session_id:
        yield TextLine(f"session   {flat(entrant.session_id)}", "dim")
    for name in row.failed_checks:
        yield TextLine(f"✗ {flat(name)}", "error")


def prompt_of(row: RankedCandidate) -> str:
    """Instructions of the candidate: its mutated instructions, else the last message of its first call."""
    if row.entrant.mutation_applied:
        return row.entrant.mutation_applied
    first = next((call for call in row.calls if not call.beside), None)
    sent = [entry.sent for entry in first.entries if entry.sent is not None] if first is not None else []
    tasks = [message.text for message in sent if message.role == "user"]
    return tasks[-1] if tasks else ""


def beside(
    a: RankedCandidate, b: RankedCandidate, what: str, *, shown: Mapping[str, Any] = NOTHING, whole: bool = True
) -> DiffRows:
    """Outputs (or ``prompts``) of two candidates, with what differs in red and green; without ``whole``, as much of an
    output as the file wants to be shown."""
    limit = None if whole else shown.get("limit")
    old, new = (prompt_of(a), prompt_of(b)) if what == "prompts" else (a.output[:limit], b.output[:limit])
    title: tuple[Span, ...] = ((what.capitalize(), "title"), (f"  {a.number} and {b.number}", "name"))
    bare = "metadata" in shown.get("hidden", ())
    labels = (a.number, b.number) if bare else (_label(a), _label(b))
    note: tuple[Span, ...] = (("equal", "ok"),) if old == new else ()
    if (old, new) != (a.output, b.output) and what != "prompts":
        note = (*note, (f"   the first {limit:,} characters", "dim"))
    return DiffRows((old, new), labels, title, note, copy=new)


def _label(row: RankedCandidate) -> str:
    score = f" · score {score_words(row)}" if row.score is not None else ""
    return f"{row.number}: {flat(row.model)}{score} · {cost_words(row) or UNPRICED}"


def evaluation_doc(state: RunState, contest: CandidateRounds, of: Round, rows: Sequence[RankedCandidate]) -> TextRows:
    """Returns how a round was settled: the verdict, and what the evaluator was asked and answered, word by word."""
    lines = (
        [TextLine(why_text(of, rows), "bold")] if of.evaluation is not None else [TextLine("not settled yet", "faint")]
    )
    if said := attempts_words(of.evaluation):
        lines.append(TextLine(said, "dim"))
    calls = evaluator_calls(state, contest, of)
    for call in calls:
        lines += [TextLine(""), TextLine(_exchange(call), "head")]
        for entry in call.entries:
            if entry.sent is not None:
                lines += [TextLine(entry.sent.role, "dim"), *message_lines(entry.sent, whole=True)]
        if call.answer is not None:
            answer = pretty(call.answer.text)
            lines += [TextLine(""), TextLine("answered", "dim"), *text_lines(answer, whole=True, paint=painter(answer))]
        lines += [TextLine(str(failure.get("error", {}).get("message", "")), "error") for failure in call.failures]
    if not calls and of.evaluation is not None:
        lines += [TextLine(""), TextLine("No model was asked.", "dim")]
    return TextRows(lines, (("Evaluation", "title"), (f"  {flat(contest.place.phase)}", "name")))


def _exchange(call: CallState) -> str:
    return f"{flat(call.name)} · {flat(call.model)} · {seconds(call.duration_s)}"
