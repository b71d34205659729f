"""The context of an inference in a decomposition: the values that bind it and the results that it depends on, before
its own prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct

from workbench.context.assembly import Action, MessagePart, Reason
from workbench.context.message import Message
from workbench.context.part import OWN, EnteredMessages, MessageDecision, Part, Role, require
from workbench.context.scope import PhaseScope, VisitRecord
from workbench.language.decomposition.placeholders import placeholders, same_id
from workbench.language.model.job import CLARIFICATION, SYNTHESIS, Entity, Job, Relevance, SubTask, Summarize

ENTITIES_HEAD = "## Entity Constraints and Values"
OUTPUTS_HEAD = "## Outputs from Dependent Tasks"
_LEVELS = {"high": 3, "medium": 2, "low": 1, "all": 0}
_HEADING = re.compile(r"#{1,6}[ \t]+\S")
_FENCE = re.compile(r"\s*(```|~~~)")


class DependencyOutput(Struct, frozen=True):
    """The output of a task that this one depends on."""

    id: str
    description: str
    text: str
    source: str
    """``fetch.output``, or ``file`` if the file itself states it."""
    summary: str = ""


class Entities(Part, frozen=True):
    """Entities and the outputs of dependencies, in one message with the task."""

    NAME: ClassVar[str] = "entities"
    ROLE: ClassVar[Role] = Role.ENTERS

    include_all: bool = False
    """Whether the job's entities follow those of the task."""
    relevance: Relevance = "all"
    """The least relevance of the task's entities: ``constraint`` counts as high, ``partial`` as medium, else low."""
    types: bool = True
    """Whether an entity of the job is named with its type."""
    max_output: int | None = 2000
    """Characters of one output; ``none`` for all."""
    summarize: Summarize = "truncate"
    """How longer outputs are shortened: cut, reduced to their key sections, or (``none``) sent whole."""
    full: bool = True
    """Whether the output is sent, and not its summary."""

    def __post_init__(self) -> None:
        require(self, max_output=1)

    def enter(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        """Adds no message of its own: everything stands in the task's. Reports which parts its rules leave out."""
        notes: list[str] = []
        if self.summarize == "none" and self.max_output is not None:
            long = [one for one in _outputs(scope) if len(one.text) > self.max_output]
            notes += [f"output of {one.id}: {len(one.text):,} characters, sent whole: summarize=none" for one in long]
        return EnteredMessages(notes=tuple(notes))

    def task(self, scope: PhaseScope, message: Message, count: Callable[[Message], int]) -> MessageDecision:
        """The task as it is sent: entities, outputs, then the prompt as it is."""
        parts: list[MessagePart] = []
        blocks = [*self._entities(scope, parts, count), *self._dependencies(scope, parts, count)]
        if not blocks:
            return MessageDecision(message, Action.KEPT, Reason("task"), scope.rule("instructions"), tuple(parts))
        own = count(message)
        sent = message.with_text_before("".join(f"{block}\n\n" for block in blocks))
        reason = Reason("entities", (_counted(sum(part.action is not Action.DROPPED for part in parts)),))
        shortened = any(part.action is Action.TRUNCATED for part in parts)
        frame = max(count(sent) - own - sum(part.tokens_sent for part in parts), 0)
        parts.append(MessagePart("headings", Action.KEPT, "", frame, frame))
        parts.append(MessagePart(OWN, Action.KEPT, "", own, own))
        action = Action.TRUNCATED if shortened else Action.INJECTED
        return MessageDecision(sent, action, reason, self.rule("*", scope), tuple(parts))

    # -- entities ----------------------------------------------------------------------------------------------------

    def _entities(self, scope: PhaseScope, parts: list[MessagePart], count: Callable[[Message], int]) -> Iterator[str]:
        job = scope.graph.job if scope.graph is not None else None
        lines: list[str] = []
        least = _LEVELS[self.relevance]
        for entity in _own_entities(scope, job):
            line = _line(entity, types=False)
            size = count(Message("user", line))
            if entity.name != CLARIFICATION and _LEVELS[entity.level] < least:
                why = f"relevance {entity.relevance or 'none'}, {self.relevance} and above are sent"
                parts.append(MessagePart(f"entity {entity.name}", Action.DROPPED, why, size, 0))
                continue
            lines.append(line)
            parts.append(MessagePart(f"entity {entity.name}", Action.KEPT, "", size, size))
        named = {entity.name for entity in _own_entities(scope, job)}
        for entity in job.entities if job is not None else ():
            line = _line(entity, types=self.types)
            size = count(Message("user", line))
            if entity.name in named:
                continue
            named.add(entity.name)
            if self.include_all:
                lines.append(line)
                parts.append(MessagePart(f"entity {entity.name}", Action.KEPT, "of the job", size, size))
            else:
                parts.append(MessagePart(f"entity {entity.name}", Action.DROPPED, "include_all=false", size, 0))
        if lines:
            yield "\n".join((ENTITIES_HEAD, *lines))

    # -- outputs -----------------------------------------------------------------------------------------------------

    def _dependencies(
        self, scope: PhaseScope, parts: list[MessagePart], count: Callable[[Message], int]
    ) -> Iterator[str]:
        inside = _in_the_prompt(scope)
        blocks: list[str] = []
        for output in _outputs(scope):
            whole = count(Message("user", output.text))
            if output.id in inside:
                why = "its result stands in the prompt"
                parts.append(MessagePart(output.source, Action.DROPPED, why, whole, 0))
                continue
            text, why = self._shortened(output)
            size = count(Message("user", text)) if why else whole
            action = Action.TRUNCATED if why else Action.KEPT
            parts.append(MessagePart(output.source, action, why, whole, size))
            blocks.append(f"### Task {output.id}: {output.description}\n**Output:**\n{text}\n\n---")
        if blocks:
            yield "\n\n".join((OUTPUTS_HEAD, *blocks))

    def _shortened(self, output: DependencyOutput) -> tuple[str, str]:
        """The text sent of an output, and why it is not the whole output; the reason is empty if it is."""
        text, why, limit = output.text, "", self.max_output
        if not self.full and output.summary:
            text, why = output.summary, "its summary: full=false"
        if limit is None or len(text) <= limit or self.summarize == "none":
            return text, why
        if self.summarize == "extract_key_sections" and (sections := key_sections(text)):
            text, why = sections, "key sections"
        if len(text) > limit:
            text, why = f"{text[:limit]}...", f"{f'{why}, ' if why else ''}{limit:,} characters of {len(text):,}"
        return text, why


def _counted(number: int) -> str:
    """``3 parts``."""
    return f"{number:,} part{'' if number == 1 else 's'}"


def key_sections(text: str) -> str:
    """The headings of a Markdown text, each with its first paragraph; empty without any heading."""
    kept: list[str] = []
    state = "skip"
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        if not fenced and _HEADING.match(line):
            kept += ["", line] if kept else [line]
            state = "before"
        elif line.strip() and state in ("before", "inside"):
            kept.append(line)
            state = "inside"
        elif not line.strip() and state == "inside":
            state = "skip"
    return "\n".join(kept)


def _line(entity: Entity, *, types: bool) -> str:
    kind = f" [{entity.type}]" if types and entity.type else ""
    relevance = f" ({entity.relevance})" if entity.relevance else ""
    note = f" — {entity.note}" if entity.note else ""
    return f"- {entity.name}{kind}: {entity.value}{relevance}{note}"


def _own_entities(scope: PhaseScope, job: Job | None) -> Sequence[Entity]:
    """Those of the task, then what a person answered before anything started."""
    task = _task(scope, job)
    own = {entity.name: entity for entity in (task.entities if task is not None else ())}
    answer = next((w.value for w in reversed(scope.writes) if w.key == CLARIFICATION), None)
    if job is not None and job.question and answer is not None:
        own[CLARIFICATION] = Entity(CLARIFICATION, str(answer))
    return tuple(own.values())


def _task(scope: PhaseScope, job: Job | None) -> SubTask | None:
    return job.task(scope.phase.name) if job is not None else None


def _outputs(scope: PhaseScope) -> Iterator[DependencyOutput]:
    """Yields the outputs of the nodes before this one, in the order of its dependencies; in a graph that is walked,
    those of the latest visits of the nodes that an edge leads from."""
    graph = scope.graph
    if graph is None:
        return
    task = _task(scope, graph.job)
    given = {one.task: one for one in (task.given if task is not None else ())}
    latest: Mapping[str, VisitRecord] = {v.phase: v for v in scope.visits if v.status in ("success", "partial_success")}
    for id in dict.fromkeys(edge.src for edge in graph.into(scope.phase.name) if edge.src != CLARIFICATION):
        node = graph.node(id)
        description = node.label if node is not None else ""
        if id in given:
            yield DependencyOutput(id, description, given[id].output, f"{id}.output of the file", given[id].summary)
        elif id in latest and latest[id].output:
            yield DependencyOutput(id, description, latest[id].output, f"{latest[id].label}.output")
        given.pop(id, None)
    for id, one in given.items():
        node = graph.node(id)
        yield DependencyOutput(
            id, node.label if node is not None else "", one.output, f"{id}.output of the file", one.summary
        )


def _in_the_prompt(scope: PhaseScope) -> frozenset[str]:
    """Tasks whose results replace a placeholder in the prompt."""
    graph = scope.graph
    job = graph.job if graph is not None else None
    if job is None:
        return frozenset()
    task = _task(scope, job)
    prompt = task.prompt if task is not None else job.synthesis if scope.phase.name == SYNTHESIS else ""
    ids = [one.id for one in job.tasks]
    return frozenset(same_id(written, ids) for _, _, written in placeholders(prompt))
