"""Plans a batch from its options: opens the cascades, makes the variants, reads the rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.batch.grid import GridError, Variant, variants_of, written
from workbench.analysis.batch.matrix import BatchPlan, PlannedVariant
from workbench.analysis.batch.rows import InputRow, canonical, cell_key, row_of
from workbench.analysis.batch.scoring import Scorer, ScorerError
from workbench.analysis.sweep import BASELINE, FILE, shared_strategies
from workbench.context.strategy import SpecError, grid, with_named
from workbench.engine.model_name import OFFLINE
from workbench.language.edit.edits import replace as written_into
from workbench.language.edit.errors import EditError
from workbench.workspace.batch.inputs import BadRecord, Records
from workbench.workspace.batch.results import names_by_id
from workbench.workspace.model_choice import choose_model
from workbench.workspace.run_builder import new_options

if TYPE_CHECKING:
    from workbench.engine.definition import Definition, Options
    from workbench.workspace.model_choice import ModelChoice
    from workbench.workspace.opened_cascade import OpenedCascade
    from workbench.workspace.project import Project


_UNKNOWN_KEY = "L201"
"""The check that finds keys of which the language knows nothing."""


class BatchError(Exception):
    """A batch that cannot be run as requested; the message says why."""


class CannotRun(BatchError):
    """A cascade, or a variant of it, that has errors."""

    def __init__(self, message: str, opened: OpenedCascade) -> None:
        super().__init__(message)
        self.opened = opened


class BatchRequest(Struct, frozen=True):
    """The request of a person; see the options of ``workbench batch``."""

    cascades: tuple[Path, ...]
    source: str
    """The file of the inputs or the query, in words."""
    settings: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    scorers: tuple[str, ...] = ()
    model: str = ""
    sandbox: str = ""
    repeat: int = 1
    name: str = ""
    asked: int | None = None
    """The most rows that a query is asked for, 0 for all; None for a file."""


class VariantSetup(Struct, frozen=True):
    """The parts from which a run of one variant is made."""

    variant: Variant
    file: Path
    definition: Definition
    choice: ModelChoice
    options: Options
    """Without a session id of its own."""
    input: Mapping[str, Any]
    """The values of ``--set input.NAME``; they win over those of the row."""

    @property
    def asked(self) -> Mapping[str, Any]:
        """The model and its settings, as far as they distinguish cells."""
        choice, options = self.choice, self.options
        asked = {
            "file": self.variant.cascade,
            "model": choice.default_model,
            "offline": choice.offline,
            "url": choice.base_url,
        }
        return asked | {"strategy": options.strategy, "includes": dict(self.definition.includes)}


class PreparedBatch(Struct, frozen=True):
    """A plan, and what its runs are made from, by the place of the variant."""

    plan: BatchPlan
    setups: tuple[VariantSetup, ...]
    sandbox: str = ""

    def input(self, row: int, variant: int) -> dict[str, Any]:
        """The input of a cell."""
        return {**self.plan.rows[row].input, **self.setups[variant].input}


def prepared(project: Project, request: BatchRequest, records: Records) -> PreparedBatch:
    """Open, check and combine. Raises BatchError, CannotOpen."""
    opened: dict[str, OpenedCascade] = {}
    for file in request.cascades:
        one = project.open(file)
        if one.definition is None:
            raise CannotRun("the cascade cannot run as it is", one)
        opened[project.shown(file)] = one
    definitions = [one.definition for one in opened.values() if one.definition is not None]
    try:
        strategies = [spec for text in request.strategies for spec in _specs(text, definitions)]
        variants = variants_of(tuple(opened), request.settings, strategies)
        scorers = _named_apart(tuple(Scorer.parse(text) for text in request.scorers))
    except SpecError as fault:
        raise BatchError(f"--strategy: {fault}") from fault
    except GridError as fault:
        raise BatchError(f"--set: {fault}") from fault
    except ScorerError as fault:
        raise BatchError(f"--score: {fault}") from fault
    setups = tuple(_setup(project, opened[one.cascade], one, request.model) for one in variants)
    rows = _rows(records, opened, {name for one in setups for name in one.input})
    cells: dict[str, tuple[int, int, int]] = {}
    seen: Counter[str] = Counter()
    for at, row in enumerate(rows):
        seen[canonical(row.input)] += 1
        copy = seen[canonical(row.input)]
        for number, setup in enumerate(setups if not row.fault else ()):
            input = {**row.input, **setup.input}
            for repetition in range(request.repeat):
                key = cell_key(setup.definition.sha256, setup.asked, input, copy, repetition)
                cells[key if key not in cells else f"{key}-{number}"] = (at, number, repetition)
    labels = tuple(
        PlannedVariant(one.variant.label, one.variant.cascade, one.choice.label, one.options.strategy) for one in setups
    )
    name = batch_name(project, request)
    plan = BatchPlan(
        name,
        request.source,
        rows,
        labels,
        cells,
        request.repeat,
        scorers,
        request.asked,
        names_by_id(project.store, name),
    )
    return PreparedBatch(plan, setups, request.sandbox)


def _specs(text: str, definitions: Sequence[Definition]) -> list[str]:
    """The strategies that a spec with ranges and lists means; empty for the file's own. Raises SpecError."""
    named = shared_strategies(definitions)
    if text.strip() == FILE:
        return [""]
    if text.strip() in named:
        return [str(with_named(named)(text.strip()))]
    return [BASELINE] if text.strip() == BASELINE else [str(strategy) for strategy in grid(text)]


def _rows(records: Records, opened: Mapping[str, OpenedCascade], given: set[str]) -> tuple[InputRow, ...]:
    """``given`` are inputs that settings give every row."""
    declared: dict[str, None] = {}
    for one in opened.values():
        declared |= dict.fromkeys(one.cascade.inputs_schema if one.cascade is not None else ())
    wanted = [name for name in declared if name not in given]
    rows = []
    for number, (where, record) in enumerate(records.found, 1):
        if isinstance(record, BadRecord):
            rows.append(InputRow(number, where, fault=record.reason))
        else:
            rows.append(row_of(number, where, record, wanted))
    return tuple(rows)


def _setup(project: Project, opened: OpenedCascade, variant: Variant, model: str) -> VariantSetup:
    """Raises CannotRun, BatchError."""
    settings = dict(written(variant.settings, inputs=False))
    chosen = str(settings.pop("model", "") or "")
    changed = opened
    for path, value in _edits(changed, settings, chosen):
        try:
            text = written_into(changed.source, path, value)
        except EditError as fault:
            where = ".".join(map(str, path))
            raise BatchError(f"--set: '{where}' cannot be set in {opened.shown}: {fault}") from fault
        changed = project.check(opened.file, project.load(opened.file, text))
        unknown = next((one for one in changed.problems if one.code == _UNKNOWN_KEY and one.path == path), None)
        if unknown is not None:  # In a file it is a warning; a person who sets it means it.
            raise BatchError(f"--set: {unknown.message}" + (f" ({unknown.hint})" if unknown.hint else ""))
    if changed.definition is None:
        raise CannotRun(f"the variant '{variant.label}' cannot run", changed)
    cascade = changed.definition.cascade
    if model == OFFLINE or not chosen:
        choice = choose_model(project, cascade, opened.file, model, chosen)
    else:
        choice = choose_model(project, cascade, opened.file, chosen)
    options = replace(new_options(project, cascade.cascade_id, choice, "batch"), strategy=variant.strategy)
    input = written(variant.settings, inputs=True)
    return VariantSetup(variant, opened.file, changed.definition, choice, options, input)


def _edits(opened: OpenedCascade, settings: Mapping[str, Any], model: str) -> list[tuple[tuple[str | int, ...], Any]]:
    """The path of each setting. Raises BatchError."""
    cascade = opened.cascade
    phases = [phase.name for phase in cascade.phases] if cascade is not None else []
    found: list[tuple[tuple[str | int, ...], Any]] = []
    if model and model != "offline" and cascade is not None:
        found += [(("phases", at, "model"), model) for at, phase in enumerate(cascade.phases) if phase.model]
    for key, value in settings.items():
        head, *rest = key.split(".")
        if head in phases and rest:
            found.append((("phases", phases.index(head), *rest), value))
        elif head == "phases" or (rest and opened.source.data.get(head) is None):
            raise BatchError(f"--set: '{head}' is not a phase of {opened.shown}; there are {', '.join(phases)}")
        else:
            found.append(((head, *rest), value))
    return found


def _named_apart(scorers: Sequence[Scorer]) -> tuple[Scorer, ...]:
    """The scorers, each with a name of its own."""
    named: dict[str, Scorer] = {}
    for one in scorers:
        name, number = one.name, 2
        while name in named:
            name, number = f"{one.name}_{number}", number + 1
        named[name] = replace(one, name=name)
    return tuple(named.values())


def batch_name(project: Project, request: BatchRequest) -> str:
    """Returns the name of a batch: the same for the same cascades and inputs, so that the same command finds its batch
    again, and one that adds a variant or a scorer finds what it has in common with it."""
    if request.name:
        return request.name
    body = "\n".join([*dict.fromkeys(map(project.shown, request.cascades)), request.source])
    stem = "".join(c if c.isalnum() or c in "_-" else "-" for c in request.cascades[0].stem if c.isascii())
    return f"{stem.strip('-_')[:60] or 'batch'}-{hashlib.sha256(body.encode('utf-8', 'replace')).hexdigest()[:6]}"
