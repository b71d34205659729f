"""``workbench context``: the entries that a model call saw, with reasons, and the request as sent."""

from __future__ import annotations

import json as jsonlib
import sys
from typing import TYPE_CHECKING

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, plain, pricing, read_run, session_argument, stored_here
from workbench.cli.printer import Printer, talk, write_json_list
from workbench.cli.shell_completion import PhaseOfRun, PlaceOfRun
from workbench.context.assembly import Grade
from workbench.context.place import Place, visit_named
from workbench.context.wire import wire_bytes
from workbench.dollars import money
from workbench.engine.journal.parts import CallState
from workbench.views.call import CallView
from workbench.views.numbers import count, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.engine.journal.state import RunState


@click.command(short_help="Show what a model call saw, entry by entry, and why.")
@session_argument
@click.option("--phase", "-p", type=PhaseOfRun(), metavar="PHASE", help="Only calls of this phase (latest visit).")
@click.option("--turn", "-t", type=click.IntRange(1), metavar="N", help="Only calls of this turn (last attempt).")
@click.option(
    "--at", type=PlaceOfRun(), metavar="PLACE", help="One call: [BRANCH/]PHASE:TURN, or PHASE/VISIT/ATTEMPT/TURN/CALL."
)
@click.option("--strategy", "-s", metavar="SPEC", help="What-if: assemble it under this strategy; no call is made.")
@pricing
@click.option("--text", is_flag=True, help="Print what was sent below each entry, long messages once.")
@click.option("--wire", is_flag=True, help="The exact request body as it was sent, JSON; one line per call.")
@as_json
@plain
def command(
    session: str | None,
    phase: str | None,
    turn: int | None,
    at: str | None,
    strategy: str | None,
    provider: str | None,
    prices_file: str | None,
    cache_ttl: float | None,
    text: bool,
    wire: bool,
    json: bool,
    plain: bool,
) -> None:
    """Show what the calls of a run saw: each message of the history, sent or not, and the rule that decided.

    Without SESSION, the newest run. SPEC is a strategy or the name that the cascade gives to one. With other prices or
    another lifetime of the cache, the calls are predicted anew, under the strategy of the file if no other is given.

    \b
    Examples:
      workbench context --phase triage --turn 3
      workbench context log_triage-1f3a --at triage:3 --text
      workbench context --at triage:6 --strategy 'selective+mask(after=1)'
      workbench context --cache-ttl 1h
      workbench context --json | jq '.[] | {at, tokens_sent, cost}'
    """
    if strategy is None and (provider, prices_file, cache_ttl) != (None, None, None):
        strategy = "file"
    project = stored_here()
    state = read_run(project, session, defined=strategy is not None)
    calls = _chosen(state, phase, turn, at)
    if wire:
        if strategy is not None:
            raise Failure(Exit.USAGE, "--wire shows what was sent; a strategy, prices or a lifetime ask what was not")
        _print_wire(state, calls)
        return
    if strategy is not None:
        # Loads the language and the encodings (600 ms), which a journal is read without.
        from workbench.cli.comparison_options import calls_under, prices_of

        prices = prices_of(project, provider, prices_file, cache_ttl)
        others = calls_under(state, strategy, prices)
        before = [call for call in calls if call.place in others]
        calls = [others[call.place] for call in before]
        talk(_difference(before, calls), "accent")

    filed = "imported" not in state.ports
    if json:
        write_json_list(CallView(call, filed=filed).json() for call in calls)
        return
    printer = Printer(plain)
    talk(f"{state.session_id or state.run_id}: {state.cascade_file or state.cascade_id}, {state.status}", "dim")
    texts: dict[str, str] | None = {} if text else None
    for number, call in enumerate(calls):
        if number:
            printer.line()
        printer.show(CallView(call, texts, filed=filed).blocks())


def _chosen(state: RunState, phase: str | None, turn: int | None, at: str | None) -> list[CallState]:
    """The requested calls. Raises Failure, which lists the calls of the run, if there are none."""
    if at is not None:
        return _at(state, at)
    calls = state.calls
    if phase is not None:
        names = dict.fromkeys(visit.phase for visit in state.visits)
        branch, name, wanted = visit_named(phase, names)
        visits = [
            visit
            for visit in state.visits
            if visit.phase == name and branch in ("", visit.branch) and wanted in (0, visit.visit)
        ]
        if not visits:
            raise Failure(Exit.USAGE, f"phase '{phase}' did not run", hint=f"ran: {', '.join(names) or 'none'}")
        key = (name, visits[-1].visit)
        calls = [call for call in calls if call.place[1:3] == key and branch in ("", call.place.branch)]
    if turn is not None:
        calls = [call for call in calls if call.place.turn == turn]
        last = {call.place.visit_key: call.place.attempt for call in calls}
        calls = [call for call in calls if call.place.attempt == last[call.place.visit_key]]
    if not calls:
        raise Failure(Exit.USAGE, "no such call in this run", hint="workbench show lists them")
    return list(calls)


def _at(state: RunState, at: str) -> list[CallState]:
    """``[branch/]phase:turn`` (latest visit or that of ``phase#visit``, last attempt) or the full form of a place."""
    name, colon, number = at.rpartition(":")
    if colon and number.isdigit():
        return _chosen(state, name, int(number), None)
    try:
        place = Place.parse(at)
    except ValueError as error:
        raise Failure(Exit.USAGE, str(error), hint="or phase:turn") from None
    call = state.call_at(place)
    if call is None:
        raise Failure(Exit.USAGE, f"no call at {at}", hint="workbench show lists them")
    return [call]


def _difference(before: Sequence[CallState], after: Sequence[CallState]) -> str:
    """Both sums in one line: tokens sent and the predicted cost of the input."""
    sent = [
        count(sum(call.tokens_in for call in calls), Grade.of_sum(call.grade_in for call in calls))
        for calls in (after, before)
    ]
    costs = [_predicted(calls) for calls in (after, before)]
    return (
        f"what-if over {plural(len(after), 'call')}: {sent[0]} tokens instead of {sent[1]}, "
        f"{money(costs[0])} instead of {money(costs[1])} predicted for the input"
    )


def _predicted(calls: Sequence[CallState]) -> float | None:
    costs = [call.forecast.cost if call.forecast else None for call in calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) and known else None


def _print_wire(state: RunState, calls: list[CallState]) -> None:
    """One body per line, byte for byte as it left; on a terminal, set out for reading."""
    # Loads the language (400 ms), which other readings of a journal do without.
    from workbench.engine.past.recording import wire_body

    out = sys.stdout.buffer
    readable, found, rewritten = sys.stdout.isatty(), False, 0
    for call in calls:
        if call.wire is None or (body := wire_body(state, call.place)) is None:
            continue
        found, style = True, call.wire.style
        rewritten += not style
        exact = wire_bytes(body, style or "spaced")
        out.write((jsonlib.dumps(body, indent=2).encode() if readable else exact) + b"\n")
    out.flush()
    if rewritten:
        talk(f"{rewritten} of these went out in another spelling of the same JSON", "warning")
    if not found:
        offline = state.ports.get("model") == "offline"
        hint = "the offline model sends nothing" if offline else "the run ended before it was sent"
        raise Failure(Exit.FAILED, "no request body is stored", hint=hint)
