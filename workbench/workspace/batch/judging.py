"""Scores the outputs of a batch: by built-in scorers, validators, functions and cascades."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.analysis.batch.matrix import DONE
from workbench.analysis.batch.rows import InputRow, canonical
from workbench.analysis.batch.scoring import PURE, Score, Scorer, ScorerError, checked_schema, read_score, score
from workbench.context.place import Place
from workbench.engine.contracts import CascadeNotFound, ValidatorFault
from workbench.engine.current import judging
from workbench.engine.definition import Definition
from workbench.engine.validators import as_cascade
from workbench.files import read_given
from workbench.store.faults import StoreError
from workbench.tools.calling import call_function
from workbench.workspace.batch.resuming import going_on, output_of, settled
from workbench.workspace.cascade_library import CascadeLibrary
from workbench.workspace.model_choice import choose_model
from workbench.workspace.model_ports import model_for
from workbench.workspace.run_builder import CommonPorts, RunAttachments, Start, common_ports, new_options, run_new
from workbench.workspace.system import SystemIds

if TYPE_CHECKING:
    from workbench.engine.contracts import Model
    from workbench.store.summary import RunSummary
    from workbench.tools.registry import Tool
    from workbench.tools.toolbox import Toolbox
    from workbench.workspace.batch.planning import VariantSetup
    from workbench.workspace.model_choice import ModelChoice
    from workbench.workspace.project import Project

TIMEOUT_S = 60.0
"""Seconds that a function may take for one output."""
_INLINE = "validator.yaml"
"""Where a cascade that stands inside of another one would be a file."""


class NeedsTrust(ScorerError):
    """A function of a folder that no person has trusted."""


class JudgedCell(Struct, frozen=True):
    """The output of a cell, and what a scorer may know beside it."""

    key: str
    output: str
    row: InputRow
    run: str = ""
    """The run that has this output, and its session."""
    session: str = ""
    earlier: str = ""
    """The run that an earlier command began to score it by, if it did."""
    begun: Callable[[str], None] = lambda run_id: None
    """Told of a run before it begins."""


class Judges:
    """The scorers of one batch, ready to be asked. Every fault of a scorer is a score without a value."""

    def __init__(
        self,
        project: Project,
        scorers: tuple[Scorer, ...],
        setup: VariantSetup,
        watch: Callable[[str, bool], RunAttachments],
        model: str = "",
    ) -> None:
        """``setup`` is the variant whose folder has the functions and cascades that scorers name; ``watch`` gives what
        watches and holds the scoring runs of a cell, new or resumed, for they cost money, too. Raises ScorerError for
        a scorer that cannot work."""
        self._project = project
        self._folder = setup.file.parent
        self._watch = watch
        self._model = model
        self._toolbox = project.environment.toolbox(self._folder)
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._functions: dict[str, Tool] = {}
        self._cascades: dict[str, _ScoringCascade] = {}
        self._texts: dict[str, str] = {}
        """By scorer the text of what it names: where that is edited, its scores are old."""
        self._inline = setup.definition.cascade.validators
        self._cascade_id = setup.definition.cascade.cascade_id
        for one in scorers:
            self._ready(one)

    def _ready(self, one: Scorer) -> None:
        match one.kind:
            case "schema":
                text = self._texts[one.name] = self._text(one.argument)
                self._schemas[one.name] = checked_schema(text, one.argument)
            case "python":
                tool = self._toolbox.registry.get(one.argument)
                if tool is None:
                    raise ScorerError(f"no function '{one.argument}' in the tools/ folders of the workspace")
                if tool.refusal:
                    raise NeedsTrust(f"'{one.argument}' may not run: {tool.refusal}")
                self._functions[one.name] = tool
                self._texts[one.name] = _text_of(tool)
            case "validator":
                self._ready_validator(one)
            case "cascade":
                opened = self._project.open(self._path(one.argument))
                if opened.definition is None:
                    raise ScorerError(f"{opened.errors[0] if opened.errors else one.argument}")
                self._cascades[one.name] = self._scoring(opened.definition, opened.file)
                self._texts[one.name] = opened.definition.source.text

    def _ready_validator(self, one: Scorer) -> None:
        inline = self._inline.get(one.argument)
        if inline is not None and inline.language:
            self._texts[one.name] = inline.code
            return
        if inline is None and self._toolbox.validators.describe(one.argument) is not None:
            tool = self._toolbox.registry.get(one.argument)
            if tool is not None and tool.refusal:
                raise NeedsTrust(f"'{one.argument}' may not run: {tool.refusal}")
            self._texts[one.name] = _text_of(tool) if tool is not None else ""
            return
        try:
            library = CascadeLibrary(self._project, self._folder)
            found = as_cascade(one.argument, inline) if inline is not None else library.by_name(one.argument)
        except CascadeNotFound as fault:
            raise ScorerError(str(fault)) from fault
        if found is None:
            known = ", ".join([*self._inline, *self._toolbox.validators.names()][:12])
            raise ScorerError(f"no validator is called '{one.argument}'; there are {known}")
        self._cascades[one.name] = self._scoring(found, None)
        self._texts[one.name] = found.source.text

    def _scoring(self, definition: Definition, file: Path | None) -> _ScoringCascade:
        project = self._project
        choice = choose_model(project, definition.cascade, file, self._model)
        common = common_ports(project, file or self._folder / _INLINE, choice)
        model = model_for(project, choice, file, common.env, common.prices)
        return _ScoringCascade(definition, file, choice, model, common)

    def _path(self, name: str) -> Path:
        """A file that a scorer names: relative to the current folder, else beside the cascade."""
        return here if (here := Path(name)).is_file() else self._folder / name

    def _text(self, name: str) -> str:
        try:
            return read_given(self._path(name))
        except (OSError, UnicodeDecodeError) as fault:
            why = fault.strerror if isinstance(fault, OSError) else "not UTF-8"
            raise ScorerError(f"{name}: cannot be read: {why}") from fault

    def depends(self, one: Scorer, row: InputRow) -> str:
        """Returns the facts beside the output that a score depends on: the scorer, the value that it compares with, and
        the text of what it names."""
        text = self._texts.get(one.name, "")
        more = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]] if text else []
        return canonical([*_compared(one, row), *more])

    def holds(self, by: str, one: Scorer, row: InputRow) -> bool:
        """Returns whether a score that was given ``by`` these facts still counts. Scores of before the text was one of
        them do, for many were paid for."""
        return by in (self.depends(one, row), canonical(_compared(one, row)))

    @property
    def models(self) -> list[Model]:
        """The models of scoring runs: opened and closed with those of the batch."""
        return [one.model for one in self._cascades.values()]

    @property
    def toolbox(self) -> Toolbox:
        """The tools of the first variant, with the functions that score."""
        return self._toolbox

    async def aclose(self) -> None:
        """End what functions and validators have left running."""
        await self._toolbox.aclose()

    async def score(self, one: Scorer, cell: JudgedCell) -> Score | None:
        """The scorer's verdict on the output of a cell; None if a person scores."""
        output, row = cell.output, cell.row
        if one.kind == "person":
            return None
        if one.kind in PURE:
            return score(one, output, row, self._schemas.get(one.name))
        try:
            if one.name in self._cascades:
                return await self._by_cascade(one, cell)
            with judging(cell.session, cell.run, self._cascade_id, row.input):
                if one.name in self._functions:
                    return read_score(await self._by_function(self._functions[one.name], output, row))
                return await self._by_validator(one, output, row)
        except ValidatorFault as fault:
            return Score(fault=str(fault)[:500])
        except StoreError:
            raise
        except Exception as fault:  # noqa: BLE001 - a function of the user's may raise anything: the cell records it
            return Score(fault=f"{one.name} raised {type(fault).__name__}: {fault}"[:500])

    async def _by_function(self, tool: Tool, output: str, row: InputRow) -> Any:
        given = {
            "output": output,
            "content": output,
            "input": dict(row.input),
            "expected": row.expected,
            "row": dict(row.columns),
        }
        takes = inspect.signature(tool.function).parameters
        arguments = {key: value for key, value in given.items() if key in takes}
        return await call_function(tool.function, arguments, tool.timeout_s or TIMEOUT_S, tool.users)

    async def _by_validator(self, one: Scorer, output: str, row: InputRow) -> Score:
        inline = self._inline.get(one.argument)
        validators = self._toolbox.validators
        if inline is not None and inline.language:
            name, language, code = one.argument, inline.language, inline.code
            verdict = await validators.judge_code(name, language, code, output, row.input, Place(), 0)
        else:
            verdict = await validators.judge(one.argument, output, row.input, {}, Place(), 0)
        return Score(float(verdict.valid) if verdict.score is None else verdict.score, verdict.reason)

    async def _by_cascade(self, one: Scorer, cell: JudgedCell) -> Score:
        """By the run of an earlier command, where it succeeded or can go on, else by a new one."""
        judge, project = self._cascades[one.name], self._project
        given = {"content": cell.output, "original_input": dict(cell.row.input), "expected": cell.row.expected}
        options = new_options(project, judge.definition.cascade.cascade_id, judge.choice)
        stored = await settled(project, cell.earlier) if cell.earlier else None
        if stored is not None and stored.status == "success":
            return replace(read_score(output_of(project, stored.run_id)), run=stored.run_id, cost=stored.cost)
        goes_on = stored is not None and stored.status not in DONE
        if stored is not None and goes_on:
            run_id, options = stored.run_id, replace(options, session_id=stored.session_id)
        else:
            run_id = SystemIds().run_id()
            cell.begun(run_id)
        start = Start(judge.definition, judge.file or self._folder / _INLINE, given, judge.choice, options)
        ended: list[RunSummary] = []
        attached = self._watch(cell.key, goes_on)
        attached = replace(attached, model=judge.model, common=judge.common, summarized=ended.append)
        run = (
            going_on(project, run_id, start, attached) if goes_on else run_new(project, start, attached, run_id=run_id)
        )
        outcome = await run
        if outcome.status != "success":
            found = Score(fault=f"the scoring run is {outcome.status}: {outcome.reason}"[:500])
        else:
            found = read_score(outcome.output)
        return replace(found, run=run_id, cost=ended[-1].cost if ended else None)


def _compared(one: Scorer, row: InputRow) -> list[Any]:
    return [one.spec, row.columns.get(one.argument) if one.kind == "exact" else row.expected]


def _text_of(tool: Tool) -> str:
    """The file that a function stands in; empty where it has none, or is part of this program."""
    if tool.users is None or not tool.file:
        return ""
    try:
        return read_given(Path(tool.file))
    except (OSError, UnicodeDecodeError):
        return ""


class _ScoringCascade(Struct, frozen=True):
    """A cascade that judges, and the model that answers it."""

    definition: Definition
    file: Path | None
    choice: ModelChoice
    model: Model
    common: CommonPorts
