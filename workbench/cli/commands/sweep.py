"""``workbench sweep``: strategies by grid over stored runs, at the prices of one provider or of several."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.sweep import FILE, RECORDED, candidates_among, shared_strategies, sweep
from workbench.attach.recorder import FORMAT
from workbench.cli.apply_strategy import apply_change
from workbench.cli.archive_options import (
    archive_words,
    cut_off,
    done_words,
    going_on,
    require_table_file,
    workers_of,
    working,
)
from workbench.cli.batch_progress import ProgressLine
from workbench.cli.comparison_options import (
    own_prices,
    plotting,
    pricings_of,
    write_file,
    write_pictures,
)
from workbench.cli.errors import Exit, Failure, writing
from workbench.cli.options import (
    SessionName,
    as_json,
    find_run,
    plain,
    pricing_by_several,
    project_here,
    quiet_option,
    read_run,
)
from workbench.cli.printer import Printer, talk, write_json
from workbench.cli.running import Verdict, drive
from workbench.models.encodings import encodings
from workbench.views.live_runs import LiveRunsView, plan_lines
from workbench.views.page import page
from workbench.views.sweep import TABLE, TOLD, SweepView, sweep_json, sweep_picture, table_rows
from workbench.workspace.archive.sources import RunPlace
from workbench.workspace.archive.sweeping import ArchiveSweep, Selected, SweepJob, matching_by, sampled, shared_in
from workbench.workspace.archive.table_file import write_table
from workbench.workspace.comparing import change_into, strategy_of, subjects_of
from workbench.workspace.live_runs import MOST, LiveResult, next_to_run, plan_live, ran_under, run_live

if TYPE_CHECKING:
    from workbench.analysis.sweep import Pricing, Subject, Sweep, TriedStrategy
    from workbench.workspace.archive.workers import Workers
    from workbench.workspace.project import Project


@click.command(short_help="Try many strategies on many runs: tokens, cost, what breaks.")
@click.argument("sessions", type=SessionName(), nargs=-1, metavar="SESSION...")
@click.option(
    "--strategy", "-s", "strategies", multiple=True, metavar="SPEC", help="A spec with ranges and lists. Repeatable."
)
@click.option("--filter", "-f", "filter_", metavar="FILTER", help="All runs that match, as 'workbench runs' filters.")
@click.option(
    "--at", metavar="PLACE", help="Runs of another store: its folder, or a URL that fsspec opens (s3://bucket/store)."
)
@plotting
@click.option("--html", "html_file", metavar="FILE", help="Write table and plot to one self-contained HTML file.")
@click.option(
    "--apply",
    "applied",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the cheapest strategy into this cascade file.",
)
@click.option("--take", metavar="STRATEGY", help="With --apply: write this strategy instead.")
@click.option(
    "--live",
    "lives",
    multiple=True,
    metavar="K|STRATEGY",
    help="Then run this strategy, or the K cheapest that were never run live, from the input of each run. Repeatable.",
)
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="With --live: budget for all these runs.")
@click.option("--model", "-m", default="", metavar="MODEL", help="With --live: the default model of these runs.")
@click.option("--yes", "-y", is_flag=True, help="With --apply and --live: do not ask.")
@pricing_by_several
@click.option(
    "--sample", type=click.IntRange(2), metavar="N", help="Only N of the runs, drawn at random; with intervals."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a row for each run, strategy and provider: .parquet, .csv or .jsonl.",
)
@working
@click.option("--anew", is_flag=True, help="Start over instead of continuing an earlier command.")
@quiet_option
@as_json
@plain
def command(
    sessions: tuple[str, ...],
    strategies: tuple[str, ...],
    filter_: str | None,
    at: str | None,
    plot: bool,
    svg: str | None,
    png: str | None,
    html_file: str | None,
    applied: Path | None,
    take: str | None,
    lives: tuple[str, ...],
    max_cost: float | None,
    model: str,
    yes: bool,
    provider: tuple[str, ...],
    prices_file: str | None,
    cache_ttl: float | None,
    sample: int | None,
    seed: int,
    output: Path | None,
    processes: int | None,
    dask: str | None,
    anew: bool,
    quiet: bool,
    json: bool,
    plain: bool,
) -> None:
    """Assemble stored runs again under many strategies, without a model: tokens and cost relative to snowball, as
    median, minimum and maximum over the runs; the sum in US dollars, with the runs and calls behind it; invalid
    requests, and the strategies that no other one beats. Several --provider stand side by side.

    The strategy of the file, and those under its 'strategies', are always tried. Without SESSION and --filter: the
    newest run. Results are predictions; --live runs strategies for real: it states the expected cost first, and stops
    at a budget of twice that, or at --max-cost.

    More than 200 runs, and sweeps with --at, --sample, --output, --processes or --dask, use processes or a cluster;
    after Ctrl+C or a crash the same command continues. --at sweeps all runs of that store, unless --filter chooses.

    \b
    Examples:
      workbench sweep agent-1f3a --strategy 'mask(after=1..10,step=[1,5])' --plot
      workbench sweep --filter 'cascade:triage' -s 'clear(trigger=[2000,8000])'
      workbench sweep --provider recorded --provider openai/gpt-5 --html a.html
      workbench sweep a1 b2 --strategy 'mask(after=1..4)' --apply agent.yaml
      workbench sweep agent-1f3a -s 'mask(after=1..4)' --live 2 --max-cost 0.10
      workbench sweep -f 'age<30d' -s 'mask(after=3)' --sample 2000 -o a.parquet
      workbench sweep --at s3://bucket/store -s 'mask(after=3)' --sample 2000
    """
    _require_fitting(applied, take, lives, max_cost, model, output, yes=yes)
    project = project_here()
    asked = _Asked(
        project,
        _place(project, at, sessions, filter_, applied),
        sessions,
        filter_,
        at,
        strategies,
        tuple(dict.fromkeys(name or RECORDED for name in provider)) or (RECORDED,),
        own_prices(project, prices_file),
        cache_ttl,
        sample,
        seed,
    )
    pricings = pricings_of(asked.prices, asked.providers, cache_ttl)
    workers = workers_of(processes, dask)
    is_large = anew or any(one is not None for one in (at, sample, output, processes, dask))
    named = () if is_large else asked.named(workers)
    is_large = is_large or len(named) > LARGE
    if lives and is_large:
        raise Failure(Exit.USAGE, f"--live goes with at most {LARGE} runs", hint="name them, or --filter fewer")
    printer = Printer(plain)
    with ExitStack() as stack:
        work: ArchiveSweep | None = None
        subjects: Iterable[Subject]
        if is_large:
            work = stack.enter_context(asked.archive(named, workers, anew=anew))
            _try_all(work, workers, plain=plain, quiet=quiet)
            found, subjects = work.sweep(), _subjects(project, work)
        else:
            found, subjects = _tried_here(project, named, strategies, pricings)
        _require_calls(found)
        if not json:
            printer.show(SweepView(found, plot=plot).blocks())
        elif applied is None and not lives:
            write_json(SweepView(found).json())
        write_pictures(partial(sweep_picture, found), svg, png)
        if html_file is not None:
            _write_page(Path(html_file), found)
        if output is not None:
            assert work is not None
            _write_table(output, work)
        if applied is not None:
            _apply(project, subjects, found, applied, take, yes=yes, json=json, printer=printer)
        if work is not None:
            work.finish()
    if lives:
        _run_live(project, list(subjects), found, lives, max_cost, model, yes=yes, json=json, printer=printer)
    elif not json and applied is None and not is_large:
        _advise(subjects, found)


def _require_fitting(
    applied: Path | None,
    take: str | None,
    lives: tuple[str, ...],
    max_cost: float | None,
    model: str,
    output: Path | None,
    *,
    yes: bool,
) -> None:
    """Raises Failure for options that do not go together, and for a kind of table that cannot be written."""
    if applied is None and take is not None:
        raise Failure(Exit.USAGE, "--take goes with --apply FILE", hint="workbench sweep --help")
    if not lives and (max_cost is not None or model):
        raise Failure(Exit.USAGE, "--max-cost and --model go with --live", hint="workbench sweep --help")
    if yes and applied is None and not lives:
        raise Failure(Exit.USAGE, "--yes goes with --apply FILE and with --live", hint="workbench sweep --help")
    if lives and applied is not None:
        raise Failure(Exit.USAGE, "--live and --apply exclude each other", hint="apply what proved good")
    if any(one.isdigit() and not int(one) for one in lives):
        raise Failure(Exit.USAGE, "--live 0 runs nothing", hint="--live 2, or --live STRATEGY")
    if output is not None:
        require_table_file(output)


class _Asked(Struct, frozen=True):
    """The runs to sweep, the strategies to try, and the prices to predict with."""

    project: Project
    place: RunPlace
    sessions: tuple[str, ...]
    filter_: str | None
    at: str | None
    specs: tuple[str, ...]
    providers: tuple[str, ...]
    prices: Mapping[str, Mapping[str, float]]
    """The user's own, by model."""
    cache_ttl: float | None
    sample: int | None
    seed: int

    def named(self, workers: Workers) -> tuple[str, ...]:
        """The runs that are named and those that match, each once. Raises Failure."""
        named = [find_run(self.project, session) for session in self.sessions]
        if self.filter_ is not None:
            named += matching_by(workers, RunPlace.of(self.project.store), self.filter_)
            if not named:
                raise Failure(Exit.FAILED, f"no stored run matches {self.filter_}", hint="workbench runs lists them")
        elif not named:
            named = [find_run(self.project, None)]
        return tuple(dict.fromkeys(named))

    def archive(self, named: tuple[str, ...], workers: Workers, *, anew: bool) -> ArchiveSweep:
        """The sweep as a job that can be continued, of the ``named`` runs if they are known already. Raises Failure."""

        def select() -> Selected:
            found = (named or self.named(workers)) if self.at is None else self._there(workers)
            chosen = sampled(found, self.sample, self.seed)
            with self.place.open() as store:  # Of a URL none is copied for that.
                tried = _candidates(self.specs, shared_in(store, () if self.place.is_remote else chosen))
            specs = tuple((one.label, None if one.strategy is None else str(one.strategy)) for one in tried)
            return Selected(chosen, len(found), specs)

        def job(selected: Selected) -> SweepJob:
            return SweepJob(self.place, selected.tried, self.providers, self.prices, self.cache_ttl)

        about = {
            "runs": [self.sessions, self.filter_, self.at],
            "strategies": self.specs,
            "sample": self.sample,
            "prices": [self.providers, self.prices, self.cache_ttl],
        }
        return ArchiveSweep(self.project.store.root, about, select, job, seed=self.sample and self.seed, anew=anew)

    def _there(self, workers: Workers) -> tuple[str, ...]:
        """The runs of another store, those that match. Raises Failure."""
        place, filter_ = self.place, self.filter_
        found = place.run_ids() if filter_ is None else tuple(matching_by(workers, place, filter_))
        if not found:
            raise Failure(Exit.FAILED, f"{place.root} holds no run" + (f" that matches {filter_}" if filter_ else ""))
        return found


def _subjects(project: Project, work: ArchiveSweep) -> Iterator[Subject]:
    """The runs of a large sweep, one at a time in memory."""
    return (one for run_id in work.selected.run_ids for one in subjects_of(project.store, [run_id])[0])


def _require_calls(found: Sweep) -> None:
    """Raises Failure if no run could be compared, after saying why."""
    if not found.count:
        for one in found.excluded[:TOLD]:
            talk(f"{one.run} is left out: {one.reason}", "warning")
        raise Failure(Exit.FAILED, "no run with calls to compare")


def _write_page(file: Path, found: Sweep) -> None:
    title = f"{found.count:,} runs" if found.count > 1 else found.runs[0]
    write_file(file, page(title, "strategies compared", SweepView(found, whole=True).blocks()))
    talk(f"written: {file}")


def _advise(subjects: Iterable[Subject], found: Sweep) -> None:
    """Say how the strategies that look best can be tried; runs of other programs cannot be run again here."""
    labels, ports = next_to_run(found, MOST), [subject.state.ports for subject in subjects]
    if labels and any("imported" not in one for one in ports):
        talk(f"next: --live {min(2, len(labels))} runs the cheapest of them, after saying what it costs")
        return
    label = next((one for one in labels if one != FILE), None)
    if label is not None and any(one.get("imported") == FORMAT for one in ports):
        words = f"workbench attach --strategy {shlex.quote(label)} -- COMMAND"
        talk(f"next: {words} sends what the cheapest one leaves")


LARGE = 200
"""Runs that one process sweeps with all of them in memory; more are done as an archive."""


def _try_all(work: ArchiveSweep, workers: Workers, *, plain: bool, quiet: bool) -> None:
    """Try what is open, and say how far it is. Raises Failure."""
    if not quiet:
        going_on(work.progress, work.began)
    with cut_off(lambda: done_words(work.progress)), ProgressLine(plain, archive_words, quiet=quiet) as line:
        work.run(workers, line)


def _write_table(file: Path, work: ArchiveSweep) -> None:
    labels = [label for label, _ in work.selected.tried]
    with writing(file):
        write_table(file, TABLE, table_rows(work.runs(), labels, work.job.providers))
    talk(f"written: {file}")


def _tried_here(
    project: Project, named: Sequence[str], strategies: tuple[str, ...], pricings: list[Pricing]
) -> tuple[Sweep, list[Subject]]:
    """A few runs, in this process; a single one has to be whole. Raises Failure."""
    if len(set(named)) == 1:
        read_run(project, named[0], defined=True)  # Says what is wrong with it, in full.
    subjects, lost = subjects_of(project.store, named)
    tried = _candidates(strategies, shared_strategies([subject.definition for subject in subjects]))
    found = sweep(subjects, tried, encodings(), pricings).with_lost(lost)
    return replace(found, ran=ran_under(project.store, subjects, tried)), subjects


def _run_live(
    project: Project,
    subjects: list[Subject],
    found: Sweep,
    lives: tuple[str, ...],
    max_cost: float | None,
    model: str,
    *,
    yes: bool,
    json: bool,
    printer: Printer,
) -> None:
    """State the cost of the runs, ask, run them. Exits with 1 if one of them did not succeed."""
    labels: list[str] = []
    for one in lives:
        if one.isdigit():
            labels += next_to_run(found, int(one))
        else:
            labels.append(row.label if (row := found.named(one)) is not None else one)
    plan = plan_live(project, subjects, found, list(dict.fromkeys(labels)), max_cost, model)
    for line in plan_lines(plan):
        talk(line, "dim")
    if not yes and not (sys.stdin.isatty() and click.confirm("Run them?", default=False, err=True)):
        raise Failure(Exit.FAILED, "nothing was run", hint="--yes runs without asking")

    def changed(result: LiveResult) -> None:
        talk(f"{result.run.label}: {result.status}{f', {result.reason}' if result.reason else ''}", "dim")

    verdict = Verdict()
    results = drive(run_live(project, plan, changed), verdict)
    view = LiveRunsView(plan, results)
    if json:
        write_json(SweepView(found).json() | {"live": view.json()})
    else:
        printer.show(view.blocks())
        if done := [result.session_id for result in results if result.session_id]:
            talk(f"compare: workbench diff {found.runs[0]} {done[0]}")
    if verdict.signal:
        raise click.exceptions.Exit(128 + verdict.signal)
    if any(result.status != "success" for result in results):
        raise click.exceptions.Exit(Exit.FAILED)


def _place(
    project: Project, at: str | None, sessions: tuple[str, ...], filter_: str | None, applied: Path | None
) -> RunPlace:
    """Returns where the runs lie. Raises Failure."""
    if at is None:
        return RunPlace.of(project.store)
    if sessions or applied is not None:
        raise Failure(Exit.USAGE, "--at goes with neither SESSION nor --apply", hint="--filter names runs there")
    place = RunPlace.at(at)
    if place.is_remote and filter_ is not None:
        raise Failure(Exit.USAGE, "--filter reads every run, which are at a URL here", hint="--sample N takes some")
    return place


def _candidates(specs: tuple[str, ...], shared: Mapping[str, str]) -> Sequence[TriedStrategy]:
    """The strategies that the specs mean, each once. Raises Failure, SpecError."""
    if not specs and not shared:
        raise Failure(Exit.USAGE, "no --strategy, and no name under 'strategies'", hint="--strategy 'mask(after=1..8)'")
    return candidates_among(specs, shared)


def _apply(
    project: Project,
    subjects: Iterable[Subject],
    found: Sweep,
    file: Path,
    take: str | None,
    *,
    yes: bool,
    json: bool,
    printer: Printer,
) -> None:
    """Write a strategy into a file, the one that is taken or the cheapest overall, after showing the change."""
    left_out = {one.run for one in found.excluded}
    used = (subject for subject in subjects if subject.name not in left_out)
    first = next(used)
    label = take or _cheapest(found)
    if (row := found.named(label)) is None:
        raise Failure(Exit.USAGE, f"'{label}' is none of the strategies tried", hint="--strategy tries it")
    if not file.exists() and found.named(str(file)) is not None:
        hint = "--apply FILE names the cascade file, --take the strategy"
        raise Failure(Exit.USAGE, f"'{file}' is a strategy, not a file", hint=hint)
    strategy = strategy_of(first.definition, row.spec or row.label)
    if strategy is None:
        said = f"'{row.label}' is what the file says already: nothing else costs less; --take names another"
        raise Failure(Exit.USAGE, said)
    change = change_into(project, file, strategy, (one.state for one in chain((first,), used)))
    body = sweep_json(found) if json else None
    apply_change(change, row.label, body, yes=yes, printer=printer)


def _cheapest(found: Sweep) -> str:
    """The strategy that costs least in the sum at every provider. Raises Failure if there is none."""
    cheapest = {pricing: found.cheapest(pricing) for pricing in found.pricings}
    labels = list(dict.fromkeys(row.label for row in cheapest.values() if row is not None))
    if not labels:
        raise Failure(Exit.FAILED, "no strategy has a known cost", hint="--take STRATEGY names one to write")
    if len(labels) > 1:
        told = ", ".join(f"{row.label} at {pricing}" for pricing, row in cheapest.items() if row is not None)
        raise Failure(Exit.USAGE, f"another strategy is cheapest elsewhere: {told}", hint="--take STRATEGY decides")
    return labels[0]
