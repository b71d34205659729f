"""``workbench diff``: one run under two strategies, or two runs, call by call and message by message."""

from __future__ import annotations

from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.analysis.compare import compare
from workbench.cli.apply_strategy import apply_change
from workbench.cli.comparison_options import plotting, prices_of, write_file, write_pictures
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import SessionName, as_json, find_run, plain, pricing, project_here, read_run
from workbench.cli.printer import Printer, talk, write_json
from workbench.cli.shell_completion import PlaceOfRun
from workbench.store.faults import UnknownRun
from workbench.views.compare import CompareView, comparison_html, comparison_json, plotted
from workbench.views.diffs import diff_blocks
from workbench.views.figure import lines_picture
from workbench.workspace.comparing import (
    change_for,
    changed_since,
    compare_strategies,
    images_of,
    recorded,
    texts_of,
)

if TYPE_CHECKING:
    from workbench.analysis.compare import CallPair, Comparison
    from workbench.context.cache import Prices
    from workbench.engine.journal.state import RunState
    from workbench.workspace.project import Project


@click.command(short_help="Compare two strategies on one run, or two runs.")
@click.argument("sessions", type=SessionName(), nargs=-1, metavar="[SESSION] | A B")
@click.option(
    "--strategies",
    "-s",
    nargs=2,
    metavar="A B",
    help="Specs, names of the file's strategies, 'file', or 'this': as recorded.",
)
@click.option(
    "--at",
    type=PlaceOfRun(),
    metavar="PLACE",
    help="Messages of this call: PHASE:TURN, or PHASE/VISIT/ATTEMPT/TURN/CALL.",
)
@click.option("--text", is_flag=True, help="Print differing messages in full, with the differing words marked.")
@plotting
@click.option("--html", "html_file", metavar="FILE", help="Write the comparison to one self-contained HTML file.")
@click.option("--apply", "applied", type=click.Choice(["A", "B"]), help="Write this strategy into the cascade's file.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --apply: write into this cascade file instead of the run's own; imported runs have none.",
)
@click.option("--yes", "-y", is_flag=True, help="With --apply: write without asking.")
@click.option("--changes", is_flag=True, help="Print what changed in the cascade's file since the run began.")
@pricing
@as_json
@plain
def command(
    sessions: tuple[str, ...],
    strategies: tuple[str, str] | None,
    at: str | None,
    text: bool,
    plot: bool,
    svg: str | None,
    png: str | None,
    html_file: str | None,
    applied: str | None,
    into: Path | None,
    yes: bool,
    changes: bool,
    provider: str | None,
    prices_file: str | None,
    cache_ttl: float | None,
    json: bool,
    plain: bool,
) -> None:
    """Compare what a run sent, would have cost and kept in the cache under two strategies; or two runs. No model is
    called: contexts are assembled again from the journal.

    \b
    Examples:
      workbench diff agent-1f3a --strategies selective 'selective+mask(after=3)'
      workbench diff --strategies everything 'in batches' --at review:1 --text
      workbench diff --strategies file 'mask(after=4,window=16)' --apply B
      workbench diff chat-1f3a -s file 'mask(after=4)' --apply B --into a.yaml
      workbench diff before-3b1c after-77d0 --html comparison.html
      workbench diff agent-1f3a --changes
    """
    if changes:
        if len(sessions) > 1 or strategies is not None or applied is not None or at is not None:
            raise Failure(Exit.USAGE, "--changes goes with one run alone", hint="workbench diff --help")
        _print_changes(project_here(), sessions[0] if sessions else None, Printer(plain), json=json)
        return
    if into is not None and applied is None:
        raise Failure(Exit.USAGE, "--into goes with --apply", hint="workbench diff --help")
    project = project_here()
    prices = prices_of(project, provider, prices_file, cache_ttl)
    state = None
    if strategies is None:
        comparison, title = _runs(project, _two(sessions, applied), prices), "two runs, as recorded"
    else:
        state = read_run(project, _one(sessions), defined=True)
        # The change goes into the file as it is now, so this is what it is compared with.
        today = changed_since(project, state) if applied is not None and into is None else None
        comparison = compare_strategies(state, strategies, prices, today)
        title = f"{state.session_id or state.run_id}  {state.cascade_file or state.cascade_id}"
    if not comparison.pairs:
        raise Failure(Exit.FAILED, "no calls to compare: nothing was sent inside a turn")
    is_what_if = state is not None
    shown = CompareView(comparison, title, is_what_if=is_what_if, at=_chosen(comparison, at), texts=text, plot=plot)
    if not json:
        Printer(plain).show(shown.blocks())
        _advise(comparison, at, provider)
    elif applied is None:
        write_json(shown.json())
    write_pictures(partial(lines_picture, plotted(comparison)), svg, png)
    if html_file is not None:
        compared = [state.run_id] if state is not None else [find_run(project, name) for name in sessions]
        images = images_of(project.store, compared)
        write_file(Path(html_file), comparison_html(comparison, title, images, is_what_if=is_what_if))
        talk(f"written: {html_file}")
    if applied is not None and strategies is not None and state is not None:
        spec = strategies["AB".index(applied)]
        _apply(project, state, comparison, spec, prices, into, yes=yes, json=json, printer=Printer(plain))


def _two(sessions: tuple[str, ...], applied: str | None) -> tuple[str, ...]:
    """The two runs that are compared. Raises Failure."""
    if len(sessions) != 2:
        raise Failure(Exit.USAGE, "name two runs, or one with --strategies A B", hint="workbench diff --help")
    if applied is not None:
        raise Failure(Exit.USAGE, "--apply needs --strategies", hint="a run is not a strategy")
    return sessions


def _one(sessions: tuple[str, ...]) -> str | None:
    """The run that strategies are compared on; None for the newest. Raises Failure."""
    if len(sessions) > 1:
        raise Failure(Exit.USAGE, "with --strategies, name one run", hint="or leave it out for the newest")
    return sessions[0] if sessions else None


def _advise(comparison: Comparison, at: str | None, provider: str | None) -> None:
    """Say which options show what is not shown."""
    if at is None and len(comparison.differing) > 1:
        more = len(comparison.differing) - 1
        told = "1 more call differs" if more == 1 else f"{more} more calls differ"
        talk(f"{told}: --at PHASE:TURN shows one, --text whole texts")
    if provider is None and comparison.a.totals.unknown + comparison.b.totals.unknown:
        talk("prices are unknown: --provider openai/gpt-4.1-mini, say, or --prices FILE gives them")


def _print_changes(project: Project, session: str | None, printer: Printer, *, json: bool) -> None:
    """The file of a run as it is now, against the text that the run was started with."""
    state = read_run(project, session, defined=True)
    before, after = texts_of(project, state)
    if json:
        lines = unified_diff(before.splitlines(), after.splitlines(), "when the run began", "now", lineterm="")
        write_json({"file": state.cascade_file, "changed": before != after, "diff": "\n".join(lines)})
    elif before == after:
        talk(f"{state.cascade_file}: the file is as it was when the run began")
    else:
        printer.show(diff_blocks(before, after))


def _runs(project: Project, sessions: tuple[str, ...], prices: Prices) -> Comparison:
    sides = []
    for session in sessions:
        try:
            state = read_run(project, session)
        except UnknownRun as fault:
            if fault.candidates:
                raise
            raise Failure(Exit.USAGE, str(fault), hint="two strategies are compared with --strategies A B") from None
        side, note = recorded(state, prices)
        sides.append(side)
        if note:
            talk(note, "warning")
    return compare(*sides)


def _chosen(comparison: Comparison, at: str | None) -> CallPair | None:
    """The call whose messages are shown: the requested one, else the first that differs on both sides."""
    if at is None:
        return next((pair for pair in comparison.differing if pair.a is not None and pair.b is not None), None)
    found = [pair for pair in comparison.pairs if at in (pair.place.words, str(pair.place), _short(pair))]
    if not found:
        raise Failure(Exit.USAGE, f"no call at {at}", hint="as in the first column, or phase/visit/attempt/turn/call")
    return found[-1]


def _short(pair: CallPair) -> str:
    return f"{pair.place.phase}:{pair.place.turn}"


def _apply(
    project: Project,
    state: RunState,
    comparison: Comparison,
    spec: str,
    prices: Prices,
    into: Path | None,
    *,
    yes: bool,
    json: bool,
    printer: Printer,
) -> None:
    """Show what changes in the file, ask, write."""
    change = change_for(project, state, spec, prices, into)
    apply_change(change, spec, comparison_json(comparison) if json else None, yes=yes, printer=printer)
