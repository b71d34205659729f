"""The model of a task decomposition: a request, its entities, and sub-tasks with their dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, get_args

from msgspec import Struct

Action = Literal["tool", "inference", "skill"]
ACTIONS: tuple[Action, ...] = get_args(Action)
Relevance = Literal["all", "high", "medium", "low"]
RELEVANCES: tuple[Relevance, ...] = get_args(Relevance)
Summarize = Literal["truncate", "extract_key_sections", "none"]
SUMMARIZE: tuple[Summarize, ...] = get_args(Summarize)
SYNTHESIS, CLARIFICATION = "synthesis", "clarification"
"""Names of the phases that a decomposition has beside its sub-tasks, and of the entity that an answer becomes."""
MAX_OUTPUT = 2000
"""Characters of a dependency's output that are sent, unless the file says otherwise."""


class Entity(Struct, frozen=True):
    """A value that tasks have to respect."""

    name: str
    value: str
    type: str = ""
    """Type by the job's list; a task's own entities have none."""
    relevance: str = ""
    note: str = ""

    @property
    def level(self) -> Literal["high", "medium", "low"]:
        """How much it matters: ``constraint`` counts as high, ``partial`` as medium, all other words as low."""
        word = self.relevance.strip().lower()
        if word in ("high", "constraint"):
            return "high"
        return "medium" if word in ("medium", "partial") else "low"


class GivenOutput(Struct, frozen=True):
    """The output of a task as the file itself states it."""

    task: str
    output: str
    summary: str = ""


class SubTask(Struct, frozen=True):
    """One task."""

    id: str
    description: str = ""
    thought: str = ""
    action: Action = "inference"
    name: str = ""
    """Of the tool or skill."""
    prompt: str = ""
    """Of an inference."""
    params: Mapping[str, Any] = {}
    expected: str = ""
    dependencies: tuple[str, ...] = ()
    """Ids as the tasks are written, each once: those that the file lists, then those that a placeholder implies."""
    implied: frozenset[str] = frozenset()
    """Those of them that only a placeholder names."""
    entities: tuple[Entity, ...] = ()
    given: tuple[GivenOutput, ...] = ()
    index: int = 0
    """Which of the file's ``sub_tasks`` it is, from 0."""
    strategy: str = ""
    """The spec that the task's own configuration makes; empty for that of the job."""


class Job(Struct, frozen=True, dict=True):
    """A whole decomposition. The dependencies of its tasks are known and have no cycle once it has no error."""

    request: str = ""
    title: str = ""
    intent: str = ""
    sub_intents: tuple[str, ...] = ()
    entities: tuple[Entity, ...] = ()
    tasks: tuple[SubTask, ...] = ()
    synthesis: str = ""
    """The plan of the synthesis; empty for none."""
    question: str = ""
    """The question to a person before the first task; empty for none."""
    strategy: str = "entities"
    """The spec that the job's configuration makes."""
    max_parallel: int = 4
    """Tasks of a wave that run at once."""

    def task(self, id: str) -> SubTask | None:
        """The task of that id; of several the first."""
        return self._by_id.get(id)

    @cached_property
    def _by_id(self) -> Mapping[str, SubTask]:
        return {task.id: task for task in reversed(self.tasks)}
