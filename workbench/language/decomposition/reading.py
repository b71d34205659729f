"""The data of a decomposition file to a ``Job``, with a problem for everything that is tolerated or wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.language.clean import clean_line
from workbench.language.decomposition.placeholders import placeholders, same_id
from workbench.language.decomposition.waves import cycles
from workbench.language.model.job import (
    ACTIONS,
    CLARIFICATION,
    MAX_OUTPUT,
    RELEVANCES,
    SUMMARIZE,
    SYNTHESIS,
    Entity,
    GivenOutput,
    Job,
    SubTask,
)
from workbench.language.nearest import nearest
from workbench.language.problem import Path, Problem, Severity, path_text
from workbench.language.read.source import Source

NONE_WORDS = frozenset({"", "none", "n/a", "na", "null"})
"""The words that mean no synthesis and no dependency."""
JOB_KEYS = (
    *("original_request", "title", "intent", "entities", "sub_tasks", "synthesis_plan", "validation"),
    *("clarification_needed", "clarification_query", "entity_context_config", "dependency_config", "max_parallel"),
    *("$schema",),
)
TASK_KEYS = (
    *("id", "description", "thought", "action_type", "tool_or_prompt", "expected_output", "dependencies"),
    *("entity_context", "dependency_outputs", "entity_context_config", "dependency_config"),
)
_ENTITY_KEYS = ("entity", "entity_name", "type", "grounded_value")
_OWN_ENTITY_KEYS = ("entity_name", "entity", "intent_relevance", "grounded_value", "usage_note")
_ENTITY_CONFIG = {"include_all": "include_all", "filter_by_relevance": "relevance", "include_entity_type": "types"}
_DEPENDENCY_CONFIG = {
    "include_full_output": "full",
    "max_output_length": "max_output",
    "summarize_strategy": "summarize",
}
"""Keys of the two configurations, and the parameters of the strategy that they are."""


class Reader:
    """Reads one file. ``job`` holds what could be read; ``problems`` names the rest."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []
        data = source.data
        self.job = self._job(data if isinstance(data, Mapping) else {})

    # -- the job -----------------------------------------------------------------------------------------------------

    def _job(self, data: Mapping[str, Any]) -> Job:
        self._unknown(data, JOB_KEYS, ())
        self._settings = self._configs(data, ())
        for key in ("original_request", "intent", "entities"):
            if key not in data:
                self._tell(Severity.WARNING, "missing_field", f"'{key}' is missing", ())
        intent, sub_intents = self._intent(data.get("intent"))
        listed = self._sequence(data.get("sub_tasks"), ("sub_tasks",), "sub_tasks")
        ids = self._ids(listed)
        tasks = tuple(self._task(index, id, one, ids) for index, (id, one) in enumerate(zip(ids, listed, strict=True)))
        self._check_cycles(tasks)
        self._validation(data.get("validation"))
        entities = tuple(self._entity(one, index) for index, one in self._objects(data.get("entities"), ("entities",)))
        return Job(
            request=self._text(data.get("original_request"), ("original_request",)),
            title=self._text(data.get("title"), ("title",)),
            intent=intent,
            sub_intents=sub_intents,
            entities=entities,
            tasks=self._unique(tasks),
            synthesis=self._plan(data.get("synthesis_plan")),
            question=self._question(data),
            strategy=_spec(self._settings),
            max_parallel=self._whole(data.get("max_parallel", 4), ("max_parallel",), 4),
        )

    def _intent(self, value: Any) -> tuple[str, tuple[str, ...]]:
        if isinstance(value, Mapping):
            self._unknown(value, ("primary", "sub_intents"), ("intent",))
            listed = self._sequence(value.get("sub_intents"), ("intent", "sub_intents"), "sub_intents")
            subs = [self._text(one, ("intent", "sub_intents", i)) for i, one in enumerate(listed)]
            return self._text(value.get("primary"), ("intent", "primary")), tuple(subs)
        return self._text(value, ("intent",)), ()

    def _validation(self, value: Any) -> None:
        if value is None:
            return
        if not isinstance(value, Mapping):
            self._tell(Severity.WARNING, "wrong_type", "'validation' is not an object; it is not read", ("validation",))
            return
        self._unknown(value, ("coverage", "gaps", "iteration_triggers"), ("validation",))
        for index, gap in enumerate(self._sequence(value.get("gaps"), ("validation", "gaps"), "gaps")):
            told = clean_line(self._text(gap, ("validation", "gaps", index)), 200)
            self._tell(Severity.WARNING, "gap", f"the decomposition names a gap: {told}", ("validation", "gaps", index))

    def _plan(self, value: Any) -> str:
        text = self._text(value, ("synthesis_plan",))
        return "" if text.strip().lower() in NONE_WORDS else text

    def _question(self, data: Mapping[str, Any]) -> str:
        needed, query = data.get("clarification_needed", False), data.get("clarification_query")
        if isinstance(needed, str):
            needed = needed.strip().lower() == "true"
        elif not isinstance(needed, bool) and needed is not None:
            self._tell(
                Severity.ERROR, "wrong_type", "'clarification_needed' must be true or false", ("clarification_needed",)
            )
        if needed is not True:
            return ""
        text = self._text(query, ("clarification_query",))
        if not text.strip():
            message = "a clarification is needed, but 'clarification_query' asks nothing"
            self._tell(Severity.ERROR, "no_question", message, ("clarification_needed",), "write the question")
        return text

    def _entity(self, one: Mapping[str, Any], index: int) -> Entity:
        path: Path = ("entities", index)
        self._unknown(one, _ENTITY_KEYS, path)
        key = "entity" if "entity" in one else "entity_name"
        return Entity(
            self._text(one.get(key), (*path, key)),
            self._text(one.get("grounded_value"), (*path, "grounded_value")),
            self._text(one.get("type"), (*path, "type")),
        )

    # -- one task ----------------------------------------------------------------------------------------------------

    def _ids(self, listed: Sequence[Any]) -> list[str]:
        """The ids of all tasks. Missing ones are generated; missing and repeated ids are reported."""
        ids: list[str] = []
        first: dict[str, int] = {}
        for index, one in enumerate(listed):
            path: Path = ("sub_tasks", index)
            if not isinstance(one, Mapping):
                self._tell(Severity.ERROR, "wrong_type", "a sub-task must be an object", path)
                ids.append(f"#{index + 1}")
                continue
            id = self._text(one.get("id"), (*path, "id")).strip()
            if not id:
                self._tell(Severity.ERROR, "no_id", "the sub-task has no 'id'", path, "dependencies name it")
            elif "/" in id or "\n" in id:
                message = f"id '{clean_line(id, 60)}' holds '/' or a line break"
                self._tell(Severity.ERROR, "bad_id", message, (*path, "id"))
            elif id in (SYNTHESIS, CLARIFICATION):
                message = f"id '{id}' is that of a phase which the workbench adds"
                self._tell(Severity.ERROR, "bad_id", message, (*path, "id"), f"'{id}_task', say")
            elif id in first:
                line = self.source.span(("sub_tasks", first[id], "id")).line
                message = f"id '{clean_line(id, 60)}' is there twice, first in line {line}"
                self._tell(Severity.ERROR, "duplicate_id", message, (*path, "id"), "dependencies could mean either")
            first.setdefault(id, index)
            ids.append(id or f"#{index + 1}")
        return ids

    def _task(self, index: int, id: str, one: Any, ids: Sequence[str]) -> SubTask:
        path: Path = ("sub_tasks", index)
        if not isinstance(one, Mapping):
            return SubTask(id, index=index)
        self._unknown(one, TASK_KEYS, path)
        named = ("description", "thought", "expected_output")
        texts = {name: self._text(one.get(name), (*path, name)) for name in named}
        for name in texts:
            if name not in one:
                self._tell(Severity.WARNING, "missing_field", f"task {id}: '{name}' is missing", path)
        action = self._action(one, path, id)
        name, params, prompt = self._work(one, path, id, action, texts["description"])
        listed = self._dependencies(one, path, id, ids)
        own = {key: value for key, value in params.items() if action != "inference" or key != "prompt"}
        looked = {**own, "prompt": prompt} if action == "inference" else own
        implied = self._implied(looked, path, id, ids, listed)
        return SubTask(
            id=id,
            description=texts["description"],
            thought=texts["thought"],
            action=action,
            name=name,
            prompt=prompt,
            params=own,
            expected=texts["expected_output"],
            dependencies=(*listed, *implied),
            implied=frozenset(implied),
            entities=tuple(self._own_entities(one, path)),
            given=tuple(self._given(one, path, ids)),
            index=index,
            strategy=_spec({**self._settings, **own_settings}) if (own_settings := self._configs(one, path)) else "",
        )

    def _action(self, one: Mapping[str, Any], path: Path, id: str) -> Any:
        written = one.get("action_type")
        if written in ACTIONS:
            return written
        at = (*path, "action_type") if "action_type" in one else path
        if written is None:
            message = f"task {id}: 'action_type' is missing"
        else:
            message = f"task {id}: action_type '{clean_line(str(written), 40)}' is not known"
        near = nearest(str(written or ""), ACTIONS)
        hint = f"did you mean '{near}'?" if near else f"one of {', '.join(ACTIONS)}"
        self._tell(Severity.ERROR, "bad_action", message, at, hint)
        return "inference"

    def _work(
        self, one: Mapping[str, Any], path: Path, id: str, action: str, description: str
    ) -> tuple[str, Mapping[str, Any], str]:
        """Name, parameters and prompt of a task."""
        work, at = one.get("tool_or_prompt"), (*path, "tool_or_prompt")
        if not isinstance(work, Mapping):
            if "tool_or_prompt" in one and work is not None:
                self._tell(Severity.ERROR, "wrong_type", f"task {id}: 'tool_or_prompt' must be an object", at)
            elif action != "inference":
                message = f"task {id}: 'tool_or_prompt' is missing"
                self._tell(Severity.ERROR, "no_tool", message, path, "it names the tool")
            work = {}
        else:
            self._unknown(work, ("name", "params"), at)
        name = self._text(work.get("name"), (*at, "name")).strip()
        params = work.get("params")
        if params is not None and not isinstance(params, Mapping):
            self._tell(Severity.ERROR, "wrong_type", f"task {id}: 'params' must be an object", (*at, "params"))
        params = params if isinstance(params, Mapping) else {}
        if action != "inference":
            if not name and work:
                message = f"task {id}: the {action} has no name"
                self._tell(Severity.ERROR, "no_tool", message, at, "'name' says which one runs")
            return name, params, ""
        prompt = self._text(params.get("prompt"), (*at, "params", "prompt"))
        if not prompt.strip():
            prompt = description
            if prompt.strip():
                message = f"task {id}: 'params.prompt' is missing; the description is used"
                self._tell(Severity.WARNING, "no_prompt", message, at if work else path)
            else:
                message = f"task {id}: there is no prompt and no description to use"
                self._tell(Severity.ERROR, "no_prompt", message, at if work else path)
        return name, params, prompt

    def _dependencies(self, one: Mapping[str, Any], path: Path, id: str, ids: Sequence[str]) -> list[str]:
        at, value = (*path, "dependencies"), one.get("dependencies")
        if value is None or isinstance(value, str | int):
            value = [] if value is None or str(value).strip().lower() in NONE_WORDS else [value]
        if not isinstance(value, Sequence):
            self._tell(Severity.ERROR, "wrong_type", f"task {id}: 'dependencies' must be a list of ids", at)
            return []
        found: list[str] = []
        for index, item in enumerate(value):
            where = (*at, index) if self.source.has((*at, index)) else at
            written = self._text(item, where).strip()
            if written.lower() in NONE_WORDS:
                continue
            meant = same_id(written, ids)
            if not meant:
                near = nearest(written, tuple(ids))
                hint = f"did you mean '{near}'?" if near else f"there are {_some(ids)}"
                message = f"task {id} depends on '{clean_line(written, 60)}', which is not a task"
                self._tell(Severity.ERROR, "unknown_dependency", message, where, hint)
                continue
            if meant != written:
                self._tell(Severity.INFO, "id_form", f"'{clean_line(written, 60)}' is read as task '{meant}'", where)
            if meant not in found:
                found.append(meant)
        return found

    def _implied(
        self, params: Mapping[str, Any], path: Path, id: str, ids: Sequence[str], listed: Sequence[str]
    ) -> list[str]:
        """The tasks whose results the parameters name without a declared dependency."""
        found: list[str] = []
        base: Path = (*path, "tool_or_prompt", "params")
        for inner, at, written in placeholders(params):
            meant = same_id(written, ids)
            where = (*base, *inner) if self.source.has((*base, *inner)) else path
            if not meant:
                near = nearest(written, tuple(ids))
                message = f"task {id} asks for the result of '{clean_line(written, 60)}', which is not a task"
                hint = (f"did you mean '{near}'? " if near else "") + "it stays as it is written"
                self._tell_inside(Severity.WARNING, "unknown_result", message, where, at, hint)
            elif meant not in listed and meant not in found:
                found.append(meant)
                message = f"task {id} uses the result of {meant} without depending on it; the edge is added"
                self._tell_inside(Severity.WARNING, "implied", message, where, at, f"add '{meant}' to 'dependencies'")
        return found

    def _own_entities(self, one: Mapping[str, Any], path: Path) -> Iterator[Entity]:
        at: Path = (*path, "entity_context")
        for index, entity in self._objects(one.get("entity_context"), at):
            self._unknown(entity, _OWN_ENTITY_KEYS, (*at, index))
            key = "entity_name" if "entity_name" in entity else "entity"
            yield Entity(
                self._text(entity.get(key), (*at, index, key)),
                self._text(entity.get("grounded_value"), (*at, index, "grounded_value")),
                relevance=self._text(entity.get("intent_relevance"), (*at, index, "intent_relevance")),
                note=self._text(entity.get("usage_note"), (*at, index, "usage_note")),
            )

    def _given(self, one: Mapping[str, Any], path: Path, ids: Sequence[str]) -> Iterator[GivenOutput]:
        at: Path = (*path, "dependency_outputs")
        for index, given in self._objects(one.get("dependency_outputs"), at):
            self._unknown(given, ("task_id", "output", "summary"), (*at, index))
            written = self._text(given.get("task_id"), (*at, index, "task_id"))
            message = f"the file itself states an output of task '{clean_line(written, 60)}'; it is used"
            self._tell(Severity.WARNING, "given_output", message, (*at, index))
            yield GivenOutput(
                same_id(written, ids) or written.strip(),
                self._text(given.get("output"), (*at, index, "output")),
                self._text(given.get("summary"), (*at, index, "summary")),
            )

    def _unique(self, tasks: Sequence[SubTask]) -> tuple[SubTask, ...]:
        """Of several tasks with one id the first."""
        first = {task.id: task for task in reversed(tasks)}
        return tuple(task for task in tasks if first[task.id] is task)

    def _check_cycles(self, tasks: Sequence[SubTask]) -> None:
        lines = {task.id: self.source.span(("sub_tasks", i, "id")).line for i, task in reversed(list(enumerate(tasks)))}
        places = {task.id: index for index, task in reversed(list(enumerate(tasks)))}
        for group in cycles({task.id: task.dependencies for task in reversed(tasks)}):
            group = tuple(sorted(group, key=places.__getitem__))
            path: Path = ("sub_tasks", places[group[0]], "dependencies")
            if len(group) == 1:
                self._tell(Severity.ERROR, "cycle", f"task {group[0]} depends on itself", path)
                continue
            named = ", ".join(f"{id} (line {lines[id]})" for id in group)
            message = f"these tasks wait for each other, so none can begin: {named}"
            self._tell(Severity.ERROR, "cycle", message, path, "one of their dependencies has to go")

    # -- configurations ----------------------------------------------------------------------------------------------

    def _configs(self, one: Mapping[str, Any], path: Path) -> dict[str, str]:
        """Returns the values of the two configurations of an object, by the parameters of the strategy."""
        said: dict[str, str] = {}
        for key, names in (("entity_context_config", _ENTITY_CONFIG), ("dependency_config", _DEPENDENCY_CONFIG)):
            if key not in one or one[key] is None:
                continue
            block, at = one[key], (*path, key)
            if not isinstance(block, Mapping):
                self._tell(Severity.ERROR, "wrong_type", f"'{key}' must be an object", at)
                continue
            self._unknown(block, tuple(names), at)
            for name, parameter in names.items():
                if name in block and (value := self._setting(parameter, block[name], (*at, name))) is not None:
                    said[parameter] = value
        return said

    def _setting(self, parameter: str, value: Any, at: Path) -> str | None:
        """One value in the form of the spec; None if it has no such form."""
        choices = {"relevance": RELEVANCES, "summarize": SUMMARIZE}.get(parameter)
        if choices is not None:
            if value in choices:
                return str(value)
            expected = f"one of {', '.join(choices)}"
        elif parameter == "max_output":
            if value is None:
                return "none"
            if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
                return str(value)
            expected = f"a number of characters from 1 on, or null (it is {MAX_OUTPUT:,})"
        else:
            if isinstance(value, bool):
                return str(value).lower()
            expected = "true or false"
        shown = clean_line(json.dumps(value, ensure_ascii=False), 40)
        self._tell(Severity.ERROR, "bad_setting", f"'{at[-1]}' is {shown}", at, f"it is {expected}")
        return None

    # -- values ------------------------------------------------------------------------------------------------------

    def _text(self, value: Any, path: Path) -> str:
        """A value as text: a number as it is written, anything else that is not text as JSON, which is told."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            spot = self.source.spot(path)
            return self.source.text[spot.start : spot.end].strip() if spot is not None else str(value)
        self._tell(Severity.INFO, "as_json", f"'{path_text(path)}' is not text; it is taken as JSON", path)
        return json.dumps(value, ensure_ascii=False)

    def _whole(self, value: Any, path: Path, fallback: int) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        self._tell(Severity.ERROR, "bad_setting", f"'{path_text(path)}' must be a number from 1 on", path)
        return fallback

    def _sequence(self, value: Any, path: Path, name: str) -> Sequence[Any]:
        if value is None:
            return ()
        if isinstance(value, Sequence) and not isinstance(value, str):
            return value
        self._tell(Severity.ERROR, "wrong_type", f"'{name}' must be a list", path)
        return ()

    def _objects(self, value: Any, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for index, one in enumerate(self._sequence(value, path, path_text(path[-1:]))):
            if isinstance(one, Mapping):
                yield index, one
            else:
                self._tell(Severity.ERROR, "wrong_type", f"an item of '{path[-1]}' must be an object", (*path, index))

    def _unknown(self, data: Mapping[str, Any], known: Sequence[str], path: Path) -> None:
        for key in data:
            if key in known:
                continue
            near = nearest(str(key), tuple(known))
            place = f" in {path_text(path)}" if path else ""
            hint = (f"did you mean '{near}'? " if near else "") + "it is kept, and nothing reads it"
            span = self.source.key_span((*path, key))
            name = clean_line(str(key), 60)
            self.problems.append(
                Problem(
                    Severity.WARNING,
                    "unknown_key",
                    f"unknown key '{name}'{place}",
                    self.source.file,
                    span,
                    (*path, key),
                    hint,
                )
            )

    def _tell(self, severity: Severity, code: str, message: str, path: Path, hint: str = "") -> None:
        span = self.source.span(path)
        self.problems.append(Problem(severity, code, message, self.source.file, span, path, hint))

    def _tell_inside(self, severity: Severity, code: str, message: str, path: Path, at: int, hint: str) -> None:
        """At a position inside a text."""
        value: Any = self.source.data
        for part in path:
            value = value[part]
        if not isinstance(value, str):
            self._tell(severity, code, message, path, hint)
            return
        before = value[:at].split("\n")
        span = self.source.inner_span(path, len(before), len(before[-1]) + 1)
        self.problems.append(Problem(severity, code, message, self.source.file, span, path, hint))


def _spec(settings: Mapping[str, str]) -> str:
    return f"entities({','.join(f'{name}={value}' for name, value in settings.items())})" if settings else "entities"


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(clean_line(id, 20) for id in ids[:8])
    return f"{shown}, …" if len(ids) > 8 else shown
