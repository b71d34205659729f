"""One run: its head, its phases and calls in order, and its output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from os import getpid
from typing import Any

from msgspec import to_builtins

from workbench.analysis.prediction import CallInput, PredictedUsage, Residual
from workbench.context.place import WHOLE, Place
from workbench.dollars import money
from workbench.engine.journal.costs import Embeddings
from workbench.engine.journal.event import Event
from workbench.engine.journal.figures import Figures
from workbench.engine.journal.parts import CallState, VisitState
from workbench.engine.journal.state import RunState
from workbench.language.problem import Severity
from workbench.store.store import INTERRUPTED
from workbench.store.summary import RunSummary
from workbench.views.annotations import AnnotationsView, label_words
from workbench.views.cells import flat
from workbench.views.numbers import (
    JOINING,
    UNKNOWN,
    call_cost,
    call_time,
    call_tokens,
    count,
    figures_in_full,
    plural,
    seconds,
    spent_cell,
    times_beside,
    took_words,
)
from workbench.views.signs import status_cell, status_sign
from workbench.views.tree import ended, visit_status
from workbench.views.value import BLANK, Block, Cell, Column, Line, Piece, Table, TextBlock, View
from workbench.views.words import reason_words, words_of

_INSIDE = {"sub": "sub-cascade", "async": "async cascade", "spawn": "spawned"}


def origin_words(run: RunSummary, *, named: bool = True) -> str:
    """``fork of log_triage-7f3a at triage:2``, ``from a.traj (swe-agent)``; without the name if the list shows it below
    its parent."""
    if run.imported:
        file = flat(run.source_file.rpartition("/")[2])
        if file and run.source:
            return f"from {file} ({run.source})"
        return _source_words(file or run.source) if file or run.source else "imported"
    if not run.parent_run:
        return ""
    kind = {"fork": "fork", "replay": "replay", "rerun": "re-run"}.get(run.parent_kind)
    if kind is None:
        kind = _INSIDE.get(run.parent_kind, run.parent_kind or "child")
    of = f" of {run.parent_session or run.parent_run[-8:]}" if named else ""
    at = f" at {stop_words(run.parent_at)}" if run.parent_at else ""
    return kind + of + at


def stop_words(at: str) -> str:
    """Returns a journaled stop as people read it: ``triage:3`` before a call, ``triage`` before the phase, else with
    the kind of stop, ``triage:3 (after call)``. A text that is not a stop stays as it is.
    """
    text, _, stop = at.partition(" (")
    try:
        place = Place.parse(text)
    except ValueError:
        return at
    kind = stop.removesuffix(")")
    before = ("", "before_call", "before_phase" if not place.turn else "")
    return place.words + ("" if kind in before else f" ({kind.replace('_', ' ')})")


def note_of(run: RunSummary, *, named: bool = True) -> str:
    """All notes in one line, problems first; empty for a plain successful run."""
    parts = [
        f"damaged: {run.fault}" if run.fault else "",
        origin_words(run, named=named),
        "another text of the cascade" if run.redefined else "",
        f"{plural(run.recorded, 'answer')} recorded" if run.recorded else "",
        plural(run.edited, "edit") if run.edited else "",
        ("active here" if run.pid == getpid() else f"active in process {run.pid}") if run.pid else "",
        f"after {run.at}" if run.resumable and run.at else "",
        reason_words(run.reason) if run.reason not in (run.fault, INTERRUPTED) else "",
    ]
    return " · ".join(part for part in parts if part)


def counted(run: RunSummary, number: int, grade: str = "exact") -> str:
    """A count of a run: of a damaged one it is unknown, or a lower bound."""
    if not run.fault:
        return count(number, grade)
    return f"{count(number, grade)}+" if number else UNKNOWN


GOOD = 0.02
"""Share up to which a prediction counts as met: message overheads of providers differ by a few tokens."""


def off_by(share: float | None) -> str:
    """``+6.7%``, ``-0.4%``, ``exact``; a dash if unknown."""
    if share is None:
        return UNKNOWN
    return "exact" if share == 0 else f"{100 * share:+.1f}%"


def parts(found: Residual) -> Iterator[str]:
    """``in 1,812≈ → 1,934 +6.7%``, then the cached tokens, then the cost of the input."""
    predicted = found.predicted
    yield f"in {count(predicted.tokens, predicted.grade)} → {count(found.tokens)} {off_by(found.share)}"
    if predicted.cached is not None:
        if found.cached is None:
            yield f"cached {count(predicted.cached, predicted.grade)} → not said"
        else:
            change = found.cached - predicted.cached
            off = f"{change:+,}" if change else "exact"
            yield f"cached {count(predicted.cached, predicted.grade)} → {count(found.cached)} {off}"
    if found.cost is not None and predicted.cost is not None:
        yield f"input {money(predicted.cost)} → {money(found.cost, exact=True)}"
    if predicted.scale is not None:
        yield f"≈ scaled {predicted.scale:.2f}x by the call before"


class RunView(View):
    """A stored run as a whole."""

    def __init__(self, state: RunState) -> None:
        self.state = state

    def blocks(self) -> Iterator[Block]:
        yield from _head(self.state)
        if self.state.fault:
            yield ("damaged  ", Cell(self.state.fault, "error"))
        if self.state.annotations:
            yield BLANK
            yield from AnnotationsView(self.state.session_id or self.state.run_id, self.state.annotations).blocks()
        yield BLANK
        yield from steps(self.state)
        yield from _warnings(self.state)
        if self.state.output:
            yield BLANK
            yield (Cell("output", "head"),)
            yield TextBlock(self.state.output)

    def json(self) -> dict[str, Any]:
        return run_json(self.state) | {"fault": self.state.fault}


def local_time(at: str) -> str:
    """``2026-01-31 09:00:07`` in the time zone of the machine; as it stands when it is not a time."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return at


def totals_line(run: RunSummary) -> str:
    """``8 calls   in 5,116   out 230   cost ~$0.0038   4.2s``; empty for a run without an answer."""
    if not run.answers:
        return ""
    parts = (plural(run.calls, "call"), *figures_in_full(run), took_words(run.seconds, run.paused))
    return "   ".join(filter(None, parts))


Input = tuple[int, float | None]
"""Tokens and US dollars."""


def what_if_line(strategy: str, other: Input, sent: Input) -> str:
    """``mask(after=5): in ~1,204 instead of ~5,116, predicted ~$0.0012 instead of ~$0.0051``."""
    tokens = f"in {count(other[0], 'estimate')} instead of {count(sent[0], 'estimate')}"
    if other[1] is None and sent[1] is None:
        return f"{flat(strategy, 60)}: {tokens}, unpriced"
    return f"{flat(strategy, 60)}: {tokens}, predicted {money(other[1])} instead of {money(sent[1])}"


def what_if_words(data: Mapping[str, Any]) -> str:
    """The same of the data of a ``what_if`` event: all calls so far."""
    other, sent = ((data[f"all_{name}tokens"], data[f"all_{name}cost"]) for name in ("", "sent_"))
    return what_if_line(str(data["strategy"]), other, sent)


def answered_by(state: RunState) -> str:
    """The source of the answers: the models that were asked, what answered in their place, or the tool whose run was
    imported."""
    if source := state.ports.get("imported"):
        return _source_words(source)
    port = str(state.ports.get("model", "?"))
    if port != PROVIDERS:
        return f"model {port}"
    return f"model {flat(', '.join(models_of(state)) or str(state.options.get('default_model') or port))}"


def models_of(state: RunState) -> list[str]:
    """The models that its calls were sent to, in order."""
    return list(dict.fromkeys(call.model for call in state.calls if call.model))


def _source_words(source: str) -> str:
    return f"recorded by {source}" if source in _WATCHED else f"imported from {source}"


PROVIDERS = "litellm"
"""The port of a run whose calls went to providers."""
_WATCHED = ("attach", "otlp")
"""What makes runs of a program while it runs."""


def _head(state: RunState) -> Iterator[Line]:
    """Model, session, time, and how it ended."""
    passed = state.seconds
    yield (
        Cell(state.session_id or state.run_id, "head"),
        "  ",
        status_cell(state.status),
        "  ",
        state.cascade_file or state.cascade_id,
    )
    if state.reason:
        yield ("reason   ", Cell(reason_words(state.reason), status_sign(state.status)[1]))
    yield (
        f"started  {local_time(state.started)}",
        f"   took {took_words(passed, state.paused, state.waited)}" if passed is not None else "",
        f"   {answered_by(state)}",
    )
    if state.parent:
        yield (f"from     {_parent(state)}",)
    for event in state.edits:
        yield ("edited   ", f"{stop_words(str(event.place))}   ", Cell(edit_words(event, state), "changed"))
    took = state.figures()
    yield (f"calls    {figures_words(took)}",)
    if took.runs or took.missing:
        yield (f"         {figures_words(state.own)}", Cell(" (its own)", "dim"))
    if unanswered := str(state.unanswered):
        yield ("besides  ", Cell(unanswered, "warning"))
    if other := state.other_strategy:
        yield (f"what if  {what_if_words(other)}",)
    if told := state.stated.to_json():
        names = {"calls": "calls", "input": "in", "output": "out", "cached": "cached", "reasoning": "reasoning"}
        parts = [f"{word} {count(told[name])}" for name, word in names.items() if name in told]
        parts += [f"cost {money(told['cost'], exact=True)}"] if "cost" in told else []
        yield (f"stated   {'   '.join(parts)}", Cell(" (by the file, of the whole run)", "dim"))
    if (embeddings := Embeddings.of(state.embedded)) is not None:
        failed = f"   {plural(embeddings.failed, 'request')} failed" if embeddings.failed else ""
        yield (
            f"embedded {plural(embeddings.texts, 'text')}   by {embeddings.by or 'an unnamed model'}",
            f"   in {count(embeddings.tokens)}   cost {money(embeddings.cost)}",
            Cell(" (in the cost above)" if embeddings.cost else "", "dim"),
            Cell(failed, "warning"),
        )
    if children := [child for visit in state.visits for child in visit.children]:
        named = ", ".join(f"{child.get('session_id', '?')} {child.get('status', 'started')}" for child in children)
        missing = f"   {plural(took.missing, 'run')} not counted above: nothing says what it took"
        yield (f"children {named}", Cell(missing if took.missing else "", "warning"))


def figures_words(took: Figures) -> str:
    """``8   in 5,116   out 230   cost $0.0038   3 answers recorded (in 2,048, out 96, $0.0031), not billed again``."""
    return "   ".join((f"{took.calls:,}", *figures_in_full(took)))


def _parent(state: RunState) -> str:
    """The parent of a run, and whether it runs another text than its parent did."""
    parent = state.parent
    at = f" at {stop_words(parent['at'])}" if parent.get("at") else ""
    other = parent.get("cascade_sha256") not in (None, "", state.cascade_sha256)
    text = ", with another text of the cascade" if other else ""
    return f"{parent.get('kind', '')} of {parent.get('session_id', '')}{at}{text}"


def edit_words(event: Event, state: RunState) -> str:
    """Describes an edit by a person, in the words of the log."""
    words = words_of(event, state)
    return words[1] if words is not None else ""


def steps(state: RunState) -> Iterator[Table]:
    """Phases and their calls in order; with the error of each prediction, if a provider counted."""
    rows: list[list[Piece]] = []
    edited = state.edited_places

    def call_row(call: CallState, *, edited: bool) -> list[Piece]:
        over = state.status != "running"
        return _call_row(call, label_words(state.annotations.at(call.place)), edited=edited, over=over)

    for visit in state.visits:
        rows.append(_visit_row(visit, state))
        judged = visit.judged if visit.failed_checks else {}
        rows += [_check_row(*check) for check in judged.get(0, ())]
        for number, call in enumerate(visit.calls, 1):
            rows.append(call_row(call, edited=call.place in edited))
            rows += [_check_row(*check) for check in judged.get(number, ())]
    if beside := [call for call in state.calls if state.visit_of(call.place) is None]:
        rows.append(_beside_row(beside, state))
        rows += [call_row(call, edited=False) for call in beside]
    for name, spent in times_beside(state).items() if rows else ():
        about = Cell(beside_words(name, state), "dim")
        rows.append([Cell(name, "name"), "", "", "", "", "", "", seconds(spent), about])
    if not rows:
        return
    residuals = any(Residual.of(call) is not None for call in state.calls)
    yield Table(
        (
            Column("step", flexible=True),
            Column("status"),
            Column("in", right=True, leaves=6),
            *([Column("off by", right=True, leaves=1)] if residuals else []),
            Column("cached", right=True, leaves=2),
            Column("out", right=True, leaves=4),
            Column("cost", right=True, leaves=7),
            Column("time", right=True, leaves=3),
            Column("", flexible=True, leaves=5),
        ),
        rows if residuals else [[*row[:3], *row[4:]] for row in rows],
    )


def beside_words(name: str, state: RunState) -> str:
    """Says what a run did in the time that no phase took; ``name`` is of ``times_beside``."""
    if name == JOINING:
        return "went on after the phases"
    return f"start, {'recorded answers, ' if state.own.recorded else ''}work between phases"


def _beside_row(calls: Sequence[CallState], state: RunState) -> list[Piece]:
    """The calls of no phase."""
    took = state.figures_of_calls(calls)
    name = WHOLE if all(call.place.is_whole for call in calls) else "beside the phases"
    tokens = count(took.tokens_in, took.grade_in)
    return [Cell(name, "name"), "", tokens, "", "", count(took.told_out), spent_cell(took.spent), "", ""]


def visit_name(visit: VisitState) -> str:
    name = visit.phase + (f"#{visit.visit}" if visit.visit > 1 else "")
    # The branch of a task of a wave says nothing that its own name does not say.
    return f"{visit.branch}/{name}" if visit.branch and not visit.wave else name


def _visit_row(visit: VisitState, state: RunState) -> list[Piece]:
    took = state.figures_of([visit])
    way = f"{visit.route} ({visit.route_rule})" if visit.route else ""
    return [
        Cell(visit_name(visit), "name"),
        status_cell(visit_status(state, visit)),
        count(took.tokens_in, took.grade_in) if took.answers else "",
        "",
        "",
        count(took.told_out) if took.answers else "",
        spent_cell(took.spent, took.missing),
        seconds(visit.seconds),
        visit.reason or (Cell(f"→ {way}", "", f"then {way}") if way else ""),
    ]


def _call_row(call: CallState, said: str, *, edited: bool, over: bool) -> list[Piece]:
    """``said``: what people say of it. ``over``: the run is not running any more."""
    found = Residual.of(call)
    tools = ", ".join(tool.tool + ("" if tool.status != "failed" else " (error)") for tool in call.tools)
    failure = str((call.failures[-1].get("error") or {}).get("message", "")) if call.status == "failed" else ""
    return [
        Cell(f"  {call.name} ✎", "changed", f"  {call.name} (edited)") if edited else f"  {call.name}",
        status_cell("recorded" if call.recorded and call.status == "done" else ended(call.status, over=over)),
        call_tokens(call.tokens_in, call.grade_in, recorded=call.recorded),
        off_by(found.share) if found is not None and not call.beside else "",
        _cached(call),
        call_tokens(call.usage.output, recorded=call.recorded),
        call_cost(Figures.of([call]).spent),
        call_time(call.duration_s, recorded=call.recorded),
        "   ".join(filter(None, (said, failure or tools))),
    ]


def _check_row(name: str, check: Mapping[str, Any]) -> list[Piece]:
    """A check below the attempt that it judged. Checks are shown of a phase where one failed."""
    passed = check.get("valid", True)
    token = "dim" if passed else "error"
    word = Cell("passed", token) if passed else Cell("failed", token)
    return [Cell(f"    {name}", token), word, "", "", "", "", "", "", Cell(str(check.get("reason", "")), token)]


def _cached(call: CallState) -> str:
    """Tokens from the provider's cache; ``~`` when only predicted."""
    took = CallInput.of(call)
    return count(took.cached, took.cached_grade) if took.cached or call.usage.cached is not None else ""


def _warnings(state: RunState) -> Iterator[Line]:
    """The warnings of the run, with the line of the file."""
    for event in state.warnings:
        data = event.data
        line = f":{data['line']}:{data.get('column', 1)}" if data.get("line") else ""
        place = f"{data['file']}{line}: " if data.get("file") else ""
        yield (Cell(f"{place}{Severity.WARNING}: {data.get('message', '')} [{data.get('code', '')}]", "warning"),)


def run_json(state: RunState) -> dict[str, Any]:
    """All that ``show`` prints, and the answers; money in US dollars, null if unknown."""
    made = Embeddings.of(state.embedded)
    return {
        "run_id": state.run_id,
        "session_id": state.session_id,
        "cascade_id": state.cascade_id,
        "cascade_file": state.cascade_file,
        "cascade_sha256": state.cascade_sha256,
        "status": state.status,
        "reason": state.reason,
        "started": state.started,
        "finished": state.finished or None,
        "seconds": state.seconds,
        "paused_s": state.paused,
        "overhead_s": state.overhead,
        "inside_s": state.joining,
        "model": state.ports.get("model", ""),
        "models": models_of(state),
        "parent": dict(state.parent) or None,
        "imported": imported_json(state),
        "input": dict(state.input),
        "output": state.output,
        "state": state.state,
        "totals": {
            **figures_json(state.figures()),
            "own": figures_json(state.own),
            "unanswered": state.unanswered.to_json(),
            "embeddings": None if made is None else to_builtins(made),
        },
        "phases": [visit_json(visit, state) for visit in state.visits],
        "beside_phases": [call_json(call) for call in state.calls if state.visit_of(call.place) is None],
        "edited": state.edited,
        "edits": [{"at": str(event.place), "said": edit_words(event, state), **event.data} for event in state.edits],
        "warnings": [dict(event.data) for event in state.warnings],
        "annotations": state.annotations.to_json(),
    }


def figures_json(took: Figures) -> dict[str, Any]:
    """Tokens, calls and money (US dollars); null if unknown. Child runs (``runs``) are included, those of
    ``missing_runs`` are not.
    """
    return {
        "calls": took.calls,
        "recorded_calls": took.recorded,
        "recorded_tokens_in": took.recorded_tokens_in,
        "recorded_tokens_out": took.recorded_told_out,
        "tools": took.tools,
        "tokens_in": took.tokens_in,
        "tokens_in_grade": str(took.grade_in),
        "tokens_out": took.told_out,
        "cost": took.cost,
        "predicted_cost": took.spent.predicted or None,
        "recorded_cost": took.spent.recorded or None,
        "unknown_costs": took.spent.unbilled,
        "runs": took.runs,
        "missing_runs": took.missing,
    }


def imported_json(state: RunState) -> dict[str, Any] | None:
    """For a run of another tool: its file and format, what was left out, and the figures that the file states of the
    whole.
    """
    if "imported" not in state.ports:
        return None
    told = state.imported
    return {
        "format": told.get("format", state.ports["imported"]),
        "file": told.get("file", ""),
        "left_out": list(told.get("left_out") or ()),
        "stated": state.stated.to_json(),
    }


def visit_json(visit: VisitState, state: RunState) -> dict[str, Any]:
    """One visit with its calls; its sums are with the runs that it started."""
    took = state.figures_of([visit])
    return {
        "branch": visit.branch,
        "name": visit.phase,
        "visit": visit.visit,
        "kind": visit.kind,
        "status": visit_status(state, visit),
        "reason": visit.reason,
        "model": visit.model,
        "attempts": visit.attempts,
        "tokens_in": took.tokens_in,
        "tokens_out": took.told_out,
        "cost": took.cost,
        "predicted_cost": took.spent.predicted or None,
        "recorded_tokens_in": took.recorded_tokens_in,
        "recorded_tokens_out": took.recorded_told_out,
        "recorded_cost": took.spent.recorded or None,
        "started": visit.started,
        "finished": visit.finished or None,
        "seconds": visit.seconds,
        "route": visit.route or None,
        "route_rule": visit.route_rule or None,
        "checks": [dict(check) for check in visit.checks],
        "state_set": visit.state_set,
        "output": visit.output,
        "calls": [call_json(call) for call in visit.calls],
    }


def call_json(call: CallState) -> dict[str, Any]:
    """One call without its entries, which ``context --json`` gives."""
    usage = call.usage
    return {
        "at": str(call.place),
        "turn": call.place.turn,
        "attempt": call.place.attempt,
        "call": call.place.call,
        "purpose": call.purpose,
        "status": call.status,
        "recorded": call.recorded,
        "model": call.model,
        "answered_by": call.answered_by,
        "strategy": call.strategy,
        "digest": call.digest,
        "tokens_full": call.tokens_full,
        "tokens_sent": call.tokens_sent,
        "grade": str(call.grade),
        "tokens_in": call.tokens_in,
        "grade_in": str(call.grade_in),
        "predicted": _predicted_json(call),
        "residual": _residual_json(call),
        "usage": {
            "input": usage.input,
            "output": usage.output,
            "cached": usage.cached,
            "written": usage.written,
            "reasoning": usage.reasoning,
            "written_hour": usage.written_hour,
        },
        "predicted_cost": call.paid.predicted,
        "cost": call.paid.own,
        "recorded_cost": call.paid.before,
        "cost_grade": call.cost_grade,
        "duration_s": call.duration_s,
        "finish_reason": call.finish_reason,
        "answer": call.answer.text if call.answer else None,
        "problems": [broken.message for broken in call.problems],
        "failures": [dict(failure) for failure in call.failures],
        "tools": [
            {
                "tool": tool.tool,
                "arguments": tool.arguments,
                "status": tool.status,
                "result": tool.text,
                "duration_s": tool.duration_s,
                "sandbox": tool.sandbox,
            }
            for tool in call.tools
        ],
    }


def _predicted_json(call: CallState) -> dict[str, Any]:
    """The prediction; an estimate is scaled by the report of the call before."""
    predicted = PredictedUsage.of(call)
    return {
        "tokens": predicted.tokens,
        "cached": predicted.cached,
        "input_cost": predicted.cost,
        "grade": str(predicted.grade),
        "low": predicted.low,
        "high": predicted.high,
        "input_cost_low": predicted.cost_low,
        "input_cost_high": predicted.cost_high,
        "scale": predicted.scale,
    }


def _residual_json(call: CallState) -> dict[str, Any] | None:
    """Reported minus predicted; null if no provider counted."""
    found = Residual.of(call)
    if found is None:
        return None
    cached = found.predicted.cached
    return {
        "tokens": found.tokens - found.predicted.tokens,
        "share": found.share,
        "cached": None if found.cached is None or cached is None else found.cached - cached,
        "reported_input_cost": found.cost,
    }
