"""The JSON Schema of task decompositions, draft 2020-12: what editors complete and check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.language.model.job import ACTIONS, MAX_OUTPUT, RELEVANCES, SUMMARIZE


def json_schema() -> dict[str, Any]:
    """The schema. It does not allow unknown keys, so that editors mark them; the loader accepts them, and `check` warns
    about them."""
    configs = {"entity_context_config": _ENTITY_CONFIG, "dependency_config": _DEPENDENCY_CONFIG}
    job = {
        "original_request": _text("What was asked for, in the words of the person."),
        "title": _text("A short name."),
        "intent": {
            "description": "What the request is about.",
            "anyOf": [
                _object(
                    {"primary": _text("The main intent."), "sub_intents": _list(_text("A part of it."))}, ["primary"]
                ),
                {"type": "string"},
            ],
        },
        "entities": _list(_JOB_ENTITY, "Values that were found in the request."),
        "sub_tasks": _list(_task(configs), "What is to be done. Tasks that wait for nothing run first, side by side."),
        "synthesis_plan": _text("How the results become one; empty, none or n/a for no synthesis."),
        "validation": _object(
            {
                "coverage": _text("How much of the request the tasks cover."),
                "gaps": _list(_text("What they leave out: `check` warns about each.")),
                "iteration_triggers": _list(_text("What would make another decomposition necessary.")),
            },
            [],
        ),
        "clarification_needed": {"type": "boolean", "default": False, "description": "Ask a person first."},
        "clarification_query": {"type": ["string", "null"], "description": "What the person is asked."},
        "max_parallel": {"type": "integer", "minimum": 1, "default": 4, "description": "Tasks of a wave at once."},
        **configs,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Task decomposition",
        **_object(job, ["original_request", "intent", "entities", "sub_tasks"]),
    }


def _task(configs: dict[str, Any]) -> dict[str, Any]:
    work = {
        "name": _text("The tool or skill; `inference` for a model."),
        "params": {
            "type": "object",
            "description": "Arguments of the tool; of an inference its `prompt`, and `model` where it wants another. "
            "`<Result of Task N>` stands for the whole result of a task.",
        },
    }
    known = {
        "id": {"type": ["string", "number"], "description": "By which dependencies name the task."},
        "description": _text("What it does, in a line."),
        "thought": _text("Why it is there."),
        "action_type": {"enum": list(ACTIONS), "description": "Who does it: a tool, a model, a skill."},
        "tool_or_prompt": _object(work, ["name"]),
        "expected_output": _text("What it should give."),
        "dependencies": _list({"type": ["string", "number"]}, "Ids of the tasks it waits for; none or empty for none."),
        "entity_context": _list(_OWN_ENTITY, "Values that bind this task: they stand before its prompt."),
        "dependency_outputs": _list(_GIVEN, "Outputs that the file itself states, instead of those of a run."),
        **configs,
    }
    return _object(known, ["id", "action_type", "tool_or_prompt", "dependencies"])


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _list(items: dict[str, Any], description: str = "") -> dict[str, Any]:
    told = {"description": description} if description else {}
    return {"type": "array", "items": items, **told}


def _object(properties: dict[str, Any], required: Sequence[str], description: str = "") -> dict[str, Any]:
    told = {"description": description} if description else {}
    body = {"type": "object", "properties": properties, "additionalProperties": False, **told}
    return body | ({"required": list(required)} if required else {})


_JOB_ENTITY = _object(
    {"entity": _text("Its name."), "type": _text("Its kind."), "grounded_value": _text("Its value.")},
    ["entity", "grounded_value"],
)
_OWN_ENTITY = _object(
    {
        "entity_name": _text("Its name."),
        "grounded_value": _text("Its value."),
        "intent_relevance": _text("constraint counts as high, partial as medium, all else as low."),
        "usage_note": _text("How the task is to use it."),
    },
    ["entity_name", "grounded_value"],
)
_GIVEN = _object(
    {"task_id": _text("The task."), "output": _text("What it gave."), "summary": _text("The same in short.")},
    ["task_id", "output"],
)
_ENTITY_CONFIG = _object(
    {
        "include_all": {"type": "boolean", "default": False, "description": "Add the entities of the whole job."},
        "filter_by_relevance": {
            "enum": list(RELEVANCES),
            "default": "all",
            "description": "The least relevance that an entity of the task must have.",
        },
        "include_entity_type": {
            "type": "boolean",
            "default": True,
            "description": "Name the type of an entity of the job.",
        },
    },
    [],
    "Which entities a task sees.",
)
_DEPENDENCY_CONFIG = _object(
    {
        "include_full_output": {"type": "boolean", "default": True, "description": "The output, and not its summary."},
        "max_output_length": {
            "type": ["integer", "null"],
            "minimum": 1,
            "default": MAX_OUTPUT,
            "description": "Characters of one output; null for all.",
        },
        "summarize_strategy": {
            "enum": list(SUMMARIZE),
            "default": "truncate",
            "description": "What becomes of longer outputs.",
        },
    },
    [],
    "What a task sees of the outputs it depends on.",
)
