"""``workbench training``: chosen runs as training data."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path

import click

from workbench.cli.comparison_options import write_file
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import SessionName, find_run, project_here
from workbench.cli.printer import talk
from workbench.language.clean import clean
from workbench.views.numbers import plural
from workbench.workspace.comparing import matching
from workbench.workspace.training_data import FORMS, scored_by_batch, scored_by_people, training_of


@click.command(short_help="Write chosen runs as data for fine-tuning.")
@click.argument("sessions", type=SessionName(), nargs=-1, metavar="SESSION...")
@click.option("--as", "form", type=click.Choice(FORMS), default="chat", show_default=True, help="Form of the data.")
@click.option("--filter", "-f", "filter_", metavar="FILTER", help="All runs that match, as 'workbench runs' filters.")
@click.option("--batch", metavar="NAME", help="The runs of a batch, with its scores.")
@click.option("--scorer", metavar="NAME", default="", help="With --batch: whose scores. Default: its first scorer.")
@click.option("--min-score", type=float, metavar="N", help="Only runs with this score or a higher one.")
@click.option("--phase", "-p", metavar="PHASE", default="", help="Only answers of this phase.")
@click.option("--output", "-o", metavar="FILE", help="Write there instead of stdout.")
def command(
    sessions: tuple[str, ...],
    form: str,
    filter_: str | None,
    batch: str | None,
    scorer: str,
    min_score: float | None,
    phase: str,
    output: str | None,
) -> None:
    """Write the answers of chosen runs as JSON lines for fine-tuning, each once, with secrets replaced. Runs are scored
    by a person (a thumb is 1 or 0); with --batch by a scorer.

    \b
    chat         a conversation for each phase, with its tools: messages as
                 sent, and the answer; of candidates only the winner
    preference   a better and a worse answer to the same request: winner
                 and losers of candidates, and runs with other scores
    pairs        prompt and completion as plain text

    \b
    Examples:
      workbench training --filter 'cascade:triage score>=4' -o chat.jsonl
      workbench training --batch triage-1f3a2b --min-score 1 -o good.jsonl
      workbench training --as preference --filter 'phase:write' -o dpo.jsonl
    """
    if sum((bool(sessions), filter_ is not None, batch is not None)) > 1:
        raise Failure(Exit.USAGE, "runs are named, or found by --filter, or those of --batch: one of them")
    if scorer and batch is None:
        raise Failure(Exit.USAGE, "--scorer goes with --batch NAME")
    project = project_here()
    if batch is not None:
        scores = scored_by_batch(project.store, batch, scorer)
    else:
        found = matching(project.store, filter_) if filter_ is not None else [find_run(project, s) for s in sessions]
        scores = scored_by_people(project.store, found or ([] if filter_ is not None else [find_run(project, None)]))
    made = training_of(project, scores, form, phase=phase, least=min_score)
    for reason, number in made.left_out.items():
        if number:
            talk(f"{plural(number, 'answer')} left out: {reason}", "dim")
    if made.replaced:
        talk(f"{plural(made.replaced, 'secret')} replaced", "warning")
    if not made.documents:
        raise Failure(Exit.FAILED, f"nothing to write of {plural(len(scores), 'run')}")
    text = "".join(json_.dumps(document, ensure_ascii=True) + "\n" for document in made.documents)
    if output is None:
        click.echo(clean(text) if sys.stdout.isatty() else text, nl=False)
    else:
        write_file(Path(output), text)
        talk(f"written: {output} ({plural(len(made.documents), 'example')})")
