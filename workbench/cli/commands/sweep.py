"""``workbench sweep``: strategies by grid over stored runs."""

from __future__ import annotations

from pathlib import Path

import click

from workbench.cli.comparing import pricing
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import SessionName, as_json, find_run, plain, project_here, read_run
from workbench.cli.output import Printer, talk, write_json


@click.command(short_help="Strategies by grid over many runs: tokens, cost, what breaks.")
@click.argument("sessions", type=SessionName(), nargs=-1, metavar="SESSION...")
@click.option(
    "--strategy", "-s", "strategies", multiple=True, metavar="SPEC", help="A spec with ranges and lists; may repeat."
)
@click.option("--plot", is_flag=True, help="Draw tokens against cost below the table.")
@click.option("--svg", metavar="FILE", help="Write the plot to an SVG file.")
@pricing
@as_json
@plain
def command(
    sessions: tuple[str, ...],
    strategies: tuple[str, ...],
    plot: bool,
    svg: str | None,
    provider: str | None,
    prices_file: str | None,
    json: bool,
    plain: bool,
) -> None:
    """Assemble stored runs again under many strategies, without a model: tokens and cost relative to snowball, as
    median, minimum and maximum over the runs, invalid requests, and the strategies that no other one beats.

    Without --strategy: those that the cascades name under 'strategies'. Without SESSION: the newest run.

    \b
    Examples:
      workbench sweep agent-1f3a --strategy 'mask(after=1..10,step=[1,5])' --plot
      workbench sweep a1 b2 c3 --strategy 'clear(trigger=[2000,8000])' --json
      workbench sweep --provider anthropic/claude-sonnet-4.5 --svg sweep.svg
    """
    from workbench.cli.comparing import prices_of, spec_failure
    from workbench.cli.views.sweep import print_sweep, sweep_svg
    from workbench.context.spec import SpecError
    from workbench.engine.sweep import Candidate, Subject, candidates, shared_strategies, sweep
    from workbench.tui.rows.sweep_words import sweep_json
    from workbench.workspace.comparing import definition_of
    from workbench.workspace.wiring import encodings

    project = project_here()
    prices = prices_of(project, provider, prices_file)
    names = list(dict.fromkeys(find_run(project, session) for session in sessions or (None,)))
    states = [read_run(project, name, defined=True) for name in names]
    subjects = [Subject(state.session_id or state.run_id, state, definition_of(state)) for state in states]
    if len({subject.name for subject in subjects}) < len(subjects):
        subjects = [Subject(subject.state.run_id, subject.state, subject.definition) for subject in subjects]
    definitions = [subject.definition for subject in subjects]
    specs = strategies or tuple(shared_strategies(definitions))
    if not specs:
        raise Failure(Exit.USAGE, "no --strategy, and no name under 'strategies'", hint="--strategy 'mask(after=1..8)'")
    tried: list[Candidate] = []
    for spec in specs:
        try:
            tried += candidates((spec,), definitions)
        except SpecError as fault:
            raise spec_failure(spec, fault) from None
    found = sweep(subjects, list({one.label: one for one in tried}.values()), encodings(), prices)
    for name in found.skipped:
        talk(f"{name}: nothing was sent inside a turn, so it is left out", "warn")
    if not found.runs:
        raise Failure(Exit.FAILED, "no run with calls to compare")
    if json:
        write_json(sweep_json(found))
    else:
        print_sweep(found, Printer(plain), plot=plot)
    if svg is not None:
        from workbench.cli.comparing import write_file

        write_file(Path(svg), sweep_svg(found))
        talk(f"written: {svg}")
