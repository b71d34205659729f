"""``workbench analyze``: what the soundings of stored runs say of the prompts of a cascade."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.analysis.soundings import Variant, analysed
from workbench.cli.comparison_options import write_file
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import CascadeFile, as_json, plain, project_here
from workbench.cli.printer import talk, write_view
from workbench.engine.mutation import Mutation
from workbench.files import write_whole
from workbench.language.edit.edits import remove, replace
from workbench.language.edit.errors import EditError
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.read.source import Source
from workbench.language.read.text import read_source
from workbench.views.analysis import AnalysisView

if TYPE_CHECKING:
    from workbench.analysis.soundings import PhaseAnalysis
    from workbench.workspace.project import Project

ENOUGH = 10


@click.command(short_help="Suggest prompts, from the soundings of stored runs.")
@click.argument("file", type=CascadeFile())
@click.option("--phase", "-p", metavar="PHASE", default="", help="Only the soundings of this phase.")
@click.option(
    "--min-runs",
    type=click.IntRange(1),
    default=ENOUGH,
    show_default=True,
    help="Least number of runs for a suggestion.",
)
@click.option("--apply", is_flag=True, help="Write the suggestions into FILE.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write the analysis as JSON to this file.")
@as_json
@plain
def command(file: Path, phase: str, min_runs: int, apply: bool, output: Path | None, json: bool, plain: bool) -> None:
    """Find the variants of a prompt (mutations, models) that win more often than chance explains, over all stored runs
    of a cascade: what they cost, and how the outputs of winners and losers differ. No model is called.

    With --apply, the prompt of such a variant replaces the one in the file, which keeps its comments and soundings;
    the next runs try variants of the new prompt.

    \b
    Examples:
      workbench analyze cascades/slogans.yaml
      workbench analyze cascades/slogans.yaml --phase write --min-runs 20 --json
      workbench analyze cascades/slogans.yaml --apply
    """
    project = project_here()
    shown = project.shown(file)
    runs = [run for run in project.store.runs() if run.cascade_file == shown and run.status != "running"]
    found = analysed((project.store.state(run.run_id) for run in reversed(runs)), phase)
    enough = [one for one in found if one.runs >= min_runs]
    view = AnalysisView(shown, len(runs), enough)
    if output is not None:
        write_file(output, dumps(view.json(), indent=2, ensure_ascii=False) + "\n")
    write_view(view, json=json, plain=plain)
    for one in found:
        if one.runs < min_runs:
            talk(
                f"{one.phase}: soundings of {one.runs} of {min_runs} runs; --min-runs {one.runs} looks at them",
                "warning",
            )
    if not runs and not file.exists():
        raise Failure(Exit.USAGE, "no such file, and no stored run of it", file=shown)
    if not found:
        where = f"phase '{phase}' of " if phase else ""
        raise Failure(Exit.FAILED, f"no stored run has soundings with a winner in {where}{shown}")
    if not enough:
        raise Failure(Exit.FAILED, f"too few runs of {shown} for a suggestion")
    if apply:
        _apply(project, file, enough)


class CannotApply(Exception):
    """A suggestion that cannot be written into the file; the message says why. The file is unchanged."""


def apply_suggestions(project: Project, file: Path, best: Sequence[tuple[str, Variant]]) -> list[str]:
    """Make each variant what its phase says from now on: ``(phase, variant)``. Returns a line for each change.

    Raises CannotApply, and CannotOpen for a file that cannot be read.
    """
    told: list[str] = []
    opened = project.open(file)
    for name, variant in best:
        if opened.cascade is None or opened.errors:
            raise CannotApply("the file has errors; workbench check lists them")
        index, phase = _phase(opened.cascade, name)
        path = ("phases", index)
        try:
            if variant.key.mutation_type:
                text = replace(opened.source, (*path, "instructions"), _instructions(phase, variant))
                told.append(f"{name}: instructions taken from {variant.key.words()}")
                opened = project.check(file, project.load(file, text))
            if variant.key.model:
                text = _with_model(opened.source, (*path,), phase, variant.key.model)
                told.append(f"{name}: model {variant.key.model}")
                opened = project.check(file, project.load(file, text))
        except EditError as fault:
            raise CannotApply(f"phase '{name}': {fault}") from fault
    write_whole(file, (opened.source.bom + opened.source.text).encode())
    return told


def _phase(cascade: Cascade, name: str) -> tuple[int, Phase]:
    for index, phase in enumerate(cascade.phases):
        if phase.name == name:
            return index, phase
    raise CannotApply(f"the file has no phase '{name}' any more")


def _instructions(phase: Phase, variant: Variant) -> str:
    written = phase.instructions or ""
    if written.startswith("@"):
        raise CannotApply(f"phase '{phase.name}' takes its instructions from {written[1:].strip()}: change that file")
    if variant.key.mutation_type != "rewrite":
        return Mutation(variant.key.mutation_type, variant.key.mutation).varied(written)
    if "{{" in written or "{%" in written:
        raise CannotApply(
            f"phase '{phase.name}': the rewritten instructions hold the input of one run; take them over by hand, and "
            "put the templates back"
        )
    return variant.applied


def _with_model(source: Source, path: tuple[str | int, ...], phase: Phase, model: str) -> str:
    """The text with one model for every candidate; their number stays."""
    text = replace(source, (*path, "model"), model)
    soundings = phase.soundings
    if soundings is None or not soundings.models:
        return text
    if "factor" not in soundings.model_fields_set or soundings.shares_total:
        text = replace(read_source(text, source.file)[0], (*path, "soundings", "factor"), soundings.candidates)
    return remove(read_source(text, source.file)[0], (*path, "soundings", "models"))


def _apply(project: Project, file: Path, found: Sequence[PhaseAnalysis]) -> None:
    """Write the suggestions into the file. Raises Failure if one of them cannot be written."""
    shown = project.shown(file)
    best = [(one.phase, one.best) for one in found if one.best is not None]
    if not best:
        talk("nothing to apply: no variant wins more often than chance explains", "warning")
        return
    try:
        lines = apply_suggestions(project, file, best)
    except CannotApply as fault:
        raise Failure(Exit.FAILED, str(fault), file=shown) from fault
    for line in lines:
        talk(f"{shown}: {line}", "ok")
