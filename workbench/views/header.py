"""The line above everything: which cascade, which run, what it is doing, which model, what it cost so far."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

from msgspec import Struct
from rich.cells import cell_len

from workbench.engine.journal.figures import Figures
from workbench.engine.journal.state import RunState
from workbench.views.cells import Span, Target, crop, fit, flat, joined, width_of
from workbench.views.keys import told
from workbench.views.numbers import plural, spent_cell, tokens_in_full
from workbench.views.signs import sign
from workbench.views.words import ended_words

ROOMY = 100
"""Cells from which nothing has to be abbreviated."""
NAMES = "› "
"""Stands between a cascade and the name of its run."""


BRIEF = 12
"""Cells of the cascade's name where the number of calls would have no room otherwise."""


class HeaderState(Struct, frozen=True):
    """Facts that the header shows beside the run."""

    cascade: str = ""
    file: str = ""
    saved: str = ""
    """Time of day of the last save that was taken over."""
    changed: bool = False
    """Whether the file differs from the definition of the run."""
    errors: int = 0
    good: bool = True
    """Whether a version of the file can run, if not the newest."""
    model: str = ""
    base_url: str = ""
    held: str = ""
    """The stop at which the run is paused, if it is: ``before investigate:9``."""
    waits: str = ""
    """How long the client of a call that is paused has waited, if one does: ``12 s of 600 s``."""
    at: str = ""
    """The place that runs now: ``investigate:9``."""
    question: bool = False
    elsewhere: bool = False
    """Whether another process runs it: it asks there."""
    waiting: str = ""
    """The reason why a call in progress waits: ``provider 34 s, retry 2``."""
    stepping: bool = False
    starting: bool = False
    """Whether a run was begun whose first event is not there yet."""
    unsaved: bool = False
    """The disk does not take the run."""
    inside: Mapping[str, Figures] = {}
    """Figures of unfinished runs inside it, by run id."""
    tick: int = 0


def header(run: RunState | None, facts: HeaderState, width: int) -> tuple[Span, ...]:
    """One line; what matters least goes first when there is little room."""
    called = flat(facts.cascade) or flat(facts.file)
    name: list[Span] = [(Target(called, "view.edit"), "bold")]
    begun: list[Span] = [(Target(fit(called, BRIEF).rstrip(), "view.edit"), "bold")]
    status, model = _status(run, facts, brief=True), flat(facts.model)
    told_why = _status(run, facts, brief=False) if width >= ROOMY else status
    gap = "   " if width >= ROOMY else "  "
    titled = joined((name, told_why), " " if told_why[0][0] == NAMES else gap)
    doing = _doing(run, facts) if run is not None and run.run_id and not facts.starting else status
    shorter = _doing(run, facts, short=True) if doing is not status and run is not None else doing
    server, brand = flat(facts.base_url), model.partition(" as ")[0].rpartition("/")[2]
    where: list[Span] = [("at ", "faint"), (Target(server, "app.settings"), "dim")] if server else []
    long: list[Span] = [("model ", "faint"), (Target(model, "app.settings"), "plain")] if model else []
    short: list[Span] = [(Target(brand, "app.settings"), "dim")] if model else []
    file, brief = _file(facts), _file(facts, brief=True)
    # An offline run must never be taken for a real one: that it is offline gives way last.
    who = short if model.startswith("offline") else []
    whole, fewer, cost = _totals(run, facts.inside)
    ended_for = run.reason if run is not None and run.status in BADGES else ""
    spans: tuple[Span, ...] = ()
    forms = (
        ((titled, file, long, where), whole),
        ((titled, file, short), whole),
        ((titled, brief, short), whole),
        *([((titled, brief, short), fewer)] if ended_for else []),  # Why it ended matters more than tokens.
        ((name, status, file, long, where), whole),
        ((name, status, file, long), whole),
        ((name, status, file, short), whole),
        ((name, status, brief, short), whole),
        ((name, status, brief, who), whole),
        ((name, status, brief, who), fewer),
        ((begun, status, brief, who), fewer),
        ((begun, doing, brief, who), fewer),
        ((doing, brief, who), fewer),
        ((begun, doing, who), fewer),
        ((doing, who), fewer),
        ((name, status, who), cost),
        ((status, who), fewer),
        ((status, who), cost),
        ((doing, who), cost),
        ((doing, who), ()),
        ((doing,), ()),
        ((shorter,), ()),
    )
    bare = _bare_badges(run)
    needs = width_of(((f": {flat(run.reason)}", ""),)) if run is not None and bare else 0
    # First a form that leaves room for why the run failed; a reason that has to be cut takes that of what it can.
    for why, (parts, right) in product((True, False), forms):
        spans = joined(parts, gap)
        room = width - 2 - width_of(spans) - width_of(right)
        if room < (2 if right else 1):
            continue
        cut = room - 2 < needs and not bare.isdisjoint(spans)
        if why and cut and file != brief and any(part is file for part in parts):
            continue
        if run is not None and room - 2 >= LEAST_REASON:
            spans = tuple(_with_reason(span, run.reason, room - 2) if span in bare else span for span in spans)
        if not why or bare.isdisjoint(spans):
            spans = _widened(spans, run, width - 2 - width_of(spans) - width_of(right) - 2)
            room = width - 2 - width_of(spans) - width_of(right)
            return ((" ", "plain"), *spans, (" " * room, "plain"), *right, (" ", "plain"))
    return ((" ", "plain"), *crop(spans, width - 1))


def _bare_badges(run: RunState | None) -> set[Span]:
    """Returns the badges that say that a run failed and leave out why; none for a run without a reason."""
    if run is None or not run.reason:
        return set()
    return {(f" {word} ", token) for word, token in BADGES.values() if token == "error-badge"}


def _widened(spans: Sequence[Span], run: RunState | None, free: int) -> tuple[Span, ...]:
    """Returns a line whose cut reason takes the cells that are ``free``, too."""
    if run is None or free <= 0 or run.status not in BADGES:
        return tuple(spans)
    word, token = BADGES[run.status]
    begun, reason = f" {word}: ", flat(run.reason)
    cut = [span for span in spans if span[1] == token and span[0].startswith(begun) and reason not in span[0]]
    return tuple(
        (f" {_why(word, run.reason, width_of((span,)) - 2 + free)} ", token) if span in cut else span for span in spans
    )


def _with_reason(badge: Span, reason: str, room: int) -> Span:
    """Returns a badge with as much of the reason as fits into ``room`` more cells."""
    word = badge[0].strip()
    return f" {_why(word, reason, len(word) + room)} ", badge[1]


_ANSWERED = re.compile(r"(^|: )\S[^:]*(?::\S[^:]*)* answered \d{3}: (?=\S)")
"""Who answered, and with which status: ``: http://localhost:40000/v1 answered 400: ``."""


def _why(word: str, reason: str, cells: int) -> str:
    """Returns how a run ended and why. Where that is cut, it is without who answered, which says least."""
    whole = ended_words(word, flat(reason))
    if cell_len(whole) > cells:
        whole = ended_words(word, _ANSWERED.sub(r"\1", flat(reason), count=1))
    return fit(whole, cells).rstrip()


def _totals(
    run: RunState | None, known: Mapping[str, Figures]
) -> tuple[tuple[Span, ...], tuple[Span, ...], tuple[Span, ...]]:
    """The totals, the totals without tokens, and the cost alone."""
    whole = totals(run, known)
    if not whole:
        return (), (), ()
    calls, _, (cost, token) = whole
    return whole, (calls, (cost, token)), ((Target(cost.strip(), "app.runs"), token),)


def _file(facts: HeaderState, *, brief: bool = False) -> list[Span]:
    """The facts about the file; ``brief`` leaves only problems and news."""
    if facts.errors:
        more = "" if brief or not facts.good else "; the last good version stays"
        words = f" {plural(facts.errors, 'error')} in the file{more}"
        return [sign("failed"), (Target(words, "tab.problems"), "error")]
    if facts.changed:
        said = f" saved {facts.saved}" if facts.saved and not brief else " changed"
        return [sign("changed"), (Target(said, "view.edit"), "changed")]
    return [(Target(f"saved {facts.saved}", "view.edit"), "faint")] if facts.saved and not brief else []


def _status(run: RunState | None, facts: HeaderState, *, brief: bool) -> list[Span]:
    if facts.starting:
        return [(" STARTING ", "running-badge")]
    if run is None or not run.run_id:
        return [(" NOT RUN ", "idle-badge")]
    name = Target(run_label(run), "app.runs")
    return [("" if brief else NAMES, "faint"), (name, "plain"), ("  ", "plain"), *_doing(run, facts, brief=brief)]


BADGES = {
    "success": ("DONE", "ok-badge"),
    "failed": ("FAILED", "error-badge"),
    "blocked": ("BLOCKED", "error-badge"),
    "stopped": ("STOPPED", "held-badge"),
    "interrupted": ("INTERRUPTED", "held-badge"),
    "diverged": ("DIVERGED", "held-badge"),
}
"""How the end of a run is named, and the colour of it."""
LEAST_REASON = 12
"""Cells from which on a reason is begun that cannot be written whole."""
REASON = 60
"""Cells of why a run failed; the log has all of it."""


def _doing(run: RunState, facts: HeaderState, *, brief: bool = True, short: bool = False) -> list[Span]:
    """Says what the run does, or how it ended; before that, that the disk is full. ``short``: how long a client
    waits, in fewer words."""
    lost: list[Span] = [sign("failed"), (" not saved", "error"), ("  ", "plain")] if facts.unsaved else []
    if facts.question and facts.elsewhere:
        return [*lost, (" WAITING FOR YOU, in another window ", "waiting-badge")]
    if facts.question:
        return [*lost, (Target(told(" WAITING FOR YOU  {run.answer} answers "), "run.answer"), "waiting-badge")]
    if facts.held:
        waits = f"waits {facts.waits.partition(' of ')[0]}" if short else f"client waits {facts.waits}"
        held = f"{flat(facts.held)}, {waits}" if facts.waits else flat(facts.held)
        return [*lost, (f" PAUSED {held} ", "held-badge")]
    if run.status == "running":
        text = facts.waiting or flat(facts.at)
        return [*lost, (f" RUNNING {text} " if text else " RUNNING ", "running-badge")]
    word, token = BADGES.get(run.status, (flat(run.status).upper(), "held-badge"))
    if brief or word == "DONE" or not run.reason:
        return [*lost, (f" {word} ", token)]
    return [*lost, (f" {_why(word, run.reason, len(word) + REASON)} ", token)]


def run_label(run: RunState) -> str:
    """A short name of a run: its session without the cascade's name, or the end of its id."""
    name = flat(run.session_id)
    short = name.removeprefix(f"{flat(run.cascade_id)}-") if run.cascade_id else name
    return (short or name)[:24] if name else run.run_id[-4:]


def totals(run: RunState | None, known: Mapping[str, Figures] | None = None) -> tuple[Span, ...]:
    """``3 calls  in 8,911  out 293  ~$0.0131``, ``1 call ⟲2  …`` if a recording answered two more; with the runs
    inside it (``known``: what those took that have not ended). A call counts when it is answered, its cost as billed or
    else as predicted, and embeddings cost what they did. Costs that are neither are said to be missing."""
    if run is None:
        return ()
    took = run.figures(known)
    if not took.answers:
        return ()
    kept = f" {sign('recorded')[0]}{took.recorded:,}" if took.recorded else ""
    calls: Span = (Target(f"{plural(took.calls, 'call')}{kept}", "app.runs"), "dim")
    cost = Target(f"  {spent_cell(took.spent, took.missing)}", "app.runs")
    taken, given = tokens_in_full(took)
    tokens = Target(f"  {taken}  {given}", "app.runs")
    return (calls, (tokens, "dim"), (cost, "plain"))


def waiting(since_s: float, tries: int, pause_s: float = 0.0) -> str:
    """``provider 34 s, retry 2``; before the next try ``retry 2 in 4 s``; empty in the first second of a call."""
    if pause_s >= 0.5:
        return f"retry {tries - 1} in {pause_s:.0f} s"
    if since_s < 1 and tries == 1:
        return ""
    return f"provider {since_s:.0f} s" + (f", retry {tries - 1}" if tries > 1 else "")
