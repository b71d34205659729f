"""One run of a cascade for each row of a table or each item of a list: ``for_each_row`` and ``map_cascade``."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct

from workbench.context.place import Place
from workbench.engine.contracts import Divergence, ToolResult
from workbench.engine.conversation import Conversation
from workbench.engine.definition import Definition
from workbench.engine.faults import PhaseFailed
from workbench.engine.gate import RunStopped
from workbench.engine.run.children import Children, ChildRun, in_time
from workbench.engine.tables import tables_of
from workbench.engine.validators import Child
from workbench.json_text import as_value
from workbench.language.model.base import seconds
from workbench.language.model.flow import ForEachRow, OnRowError

MAX_ITEMS = 1000
"""Runs that one phase may start."""
FOR_EACH_ROW = "for_each_row"


class MappingJob(Struct, frozen=True):
    """The cascade to run, and the rows or items to run it over."""

    definition: Definition
    items: Sequence[Mapping[str, Any]]
    """The values that each row of the result begins with."""
    inputs: Sequence[Mapping[str, Any]]
    max_parallel: int
    on_error: str
    """continue, fail_fast or collect_errors."""
    timeout_s: float | None = None
    table: str = ""
    mode: str = "aggregate"
    """aggregate, first_valid or all_or_nothing."""


class CascadeMapping:
    """Runs a cascade for each of many inputs, for one execution of a phase."""

    def __init__(self, conversation: Conversation, children: Children) -> None:
        self._conversation = conversation
        self._children = children

    async def run_rows(self, rule: ForEachRow, place: Place) -> ToolResult:
        """The phase's cascade, or task, for each row. Raises PhaseFailed, RunStopped, Divergence."""
        tables = tables_of(self._conversation.world.outputs)
        if rule.table not in tables:
            known = ", ".join(sorted(tables)) or "none"
            raise PhaseFailed(f"for_each_row: no table is called '{rule.table}'; there are: {known}", FOR_EACH_ROW)
        rows, path = tables[rule.table], (*self._conversation.path, FOR_EACH_ROW)
        names = [{"row": row, "row_index": index} for index, row in enumerate(rows)]
        if rule.cascade is not None:
            definition = self._children.found(rule.cascade)
            inputs: list[Mapping[str, Any]] = [
                {
                    key: self._conversation.render(text, (*path, "inputs", key), **about)
                    for key, text in rule.inputs.items()
                }
                if rule.inputs
                else dict(row)
                for row, about in zip(rows, names, strict=True)
            ]
        else:
            definition = self._step()
            tasks = [self._conversation.render(rule.instructions, (*path, "instructions"), **about) for about in names]
            inputs = [{"task": task, "row": row} for task, row in zip(tasks, rows, strict=True)]
        job = MappingJob(definition, rows, inputs, rule.max_parallel, rule.on_error, table=rule.result_table or "")
        return await self._run(job, place)

    async def map_cascade(self, arguments: Mapping[str, Any], place: Place) -> ToolResult:
        """``map_cascade(cascade, map_over, input_key, mode, max_parallel, on_error, timeout)``."""
        unknown = [name for name in arguments if name not in _ARGUMENTS]
        if unknown:
            return ToolResult(
                f"map_cascade does not take '{unknown[0]}'; it takes {', '.join(_ARGUMENTS)}", is_error=True
            )
        missing = [name for name in ("cascade", "map_over") if not arguments.get(name)]
        if missing:
            return ToolResult(f"map_cascade needs '{missing[0]}'", is_error=True)
        items = _items(arguments["map_over"])
        key = str(arguments.get("input_key") or "item")
        try:
            parallel = max(1, int(arguments.get("max_parallel") or 5))
            limit = seconds(_number(arguments["timeout"])) if arguments.get("timeout") else None
        except ValueError as fault:
            return ToolResult(f"map_cascade: {fault}", is_error=True)
        definition = self._children.found(str(arguments["cascade"]))
        rows = [item if isinstance(item, dict) else {key: item} for item in items]
        on_error, mode = str(arguments.get("on_error") or "continue"), str(arguments.get("mode") or "aggregate")
        for name, value, known in (("on_error", on_error, get_args(OnRowError)), ("mode", mode, _MODES)):
            if value not in known:
                return ToolResult(
                    f"map_cascade: '{name}' is one of {', '.join(known)}; got '{value[:60]}'", is_error=True
                )
        job = MappingJob(definition, rows, [{key: item} for item in items], parallel, on_error, limit, mode=mode)
        return await self._run(job, place)

    def _step(self) -> Definition:
        """A cascade whose only phase does the given task."""
        name = f"{self._conversation.phase.name}_row"
        phase: dict[str, Any] = {"name": name, "instructions": "{{ input.task }}"}
        if self._conversation.phase.model:
            phase["model"] = self._conversation.phase.model
        schema = {"task": "what to do", "row": "the row"}
        document = {"cascade_id": name, "inputs_schema": schema, "phases": [phase]}
        return Definition.of(json.dumps(document, ensure_ascii=False, indent=1), name)

    async def _run(self, job: MappingJob, place: Place) -> ToolResult:
        """Run all of them, at most ``max_parallel`` at once; the results in the order of the items."""
        if len(job.inputs) > MAX_ITEMS:
            return ToolResult(f"{len(job.inputs):,} items are more than the {MAX_ITEMS:,} that one phase may run", True)
        limit = asyncio.Semaphore(job.max_parallel)
        # All are journaled at once and in order: which of them begins first is chance.
        started = [ChildRun(self._children, job.definition, input, "row", place) for input in job.inputs]
        failed = asyncio.Event()

        async def one(child: ChildRun) -> Child | str:
            async with limit:
                if failed.is_set():
                    return "not run: another one had failed"
                self._conversation.engine.check_limits()
                ended, late = await in_time(child.execute(), job.timeout_s)
                if ended is not None:
                    self._children.paid(ended, place)
                lost = late or ended is None or ended.outcome.status not in ("success", "stopped", "diverged")
                if lost and job.on_error == "fail_fast":
                    failed.set()
                return f"took longer than {job.timeout_s:g} s" if late or ended is None else ended

        tasks = [asyncio.ensure_future(one(child)) for child in started]
        try:
            ended = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        for child, end in zip(started, ended, strict=True):
            if isinstance(end, Child):
                child.finished(end)
            else:
                child.stopped(end)
        for child, end in zip(started, ended, strict=True):
            if isinstance(end, Child) and end.outcome.status == "stopped":
                raise RunStopped(end.outcome.reason)
            if isinstance(end, Child) and end.outcome.status == "diverged":
                raise Divergence(place, f"in {child.session_id}: {end.outcome.reason}")
        return self._collected(job, started, ended)

    def _collected(self, job: MappingJob, started: Sequence[ChildRun], ended: Sequence[Child | str]) -> ToolResult:
        """Their results as the output of the phase."""
        rows: list[dict[str, Any]] = []
        results: list[Any] = []
        errors: list[dict[str, Any]] = []
        for index, (item, child, end) in enumerate(zip(job.items, started, ended, strict=True)):
            about = {"index": index, "session_id": child.session_id}
            if isinstance(end, str) or end.outcome.status != "success":
                reason = end if isinstance(end, str) else f"{end.outcome.status}: {end.outcome.reason}"
                errors.append({**about, "error": reason, "row": dict(item)})
                continue
            outputs = {f"output_{phase}": output for phase, output in end.outputs.items()}
            results.append(as_value(end.outcome.output))
            made = {"result": results[-1], "result_state": {**end.outcome.state, **outputs}}
            rows.append({"_index": index, **item, **made, "result_session_id": child.session_id})
        total = len(job.items)
        told = "; ".join(f"{error['index']}: {error['error']}" for error in errors[:5])
        all_needed = job.on_error == "fail_fast" or job.mode == "all_or_nothing"
        if errors and (all_needed or not rows):
            return ToolResult(f"{len(errors)} of {total} failed: {told}", is_error=True)
        if errors:
            self._conversation.engine.warn(
                FOR_EACH_ROW, f"{len(errors)} of {total} failed and are left out: {told}", self._conversation.path
            )
        if job.mode == "first_valid":
            rows, results = rows[:1], results[:1]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        body: dict[str, Any] = {
            "results": results,
            "rows": rows,
            "columns": columns,
            "row_count": len(rows),
            "count": len(rows),
            "total": total,
            "type": "dataframe",
            "_route": "success",
        }
        if job.mode == "first_valid":
            body["result"] = results[0] if results else None
        if job.on_error == "collect_errors":
            body["errors"] = errors
        if job.table:
            body["table"] = job.table
        return ToolResult(json.dumps(body, indent=2, ensure_ascii=False), value=body, sandbox=f"{total} runs")


_ARGUMENTS = ("cascade", "map_over", "input_key", "mode", "max_parallel", "on_error", "timeout")
_MODES = ("aggregate", "first_valid", "all_or_nothing")


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and value.replace(".", "", 1).isdigit() else value


def _items(value: Any) -> list[Any]:
    """A list, as it is, as JSON, as Python writes it, or separated by commas."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            try:
                value = ast.literal_eval(value.strip())
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                value = [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list | tuple) else [value]
