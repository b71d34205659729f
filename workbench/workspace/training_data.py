"""Answers of stored runs as training data: conversations, preferences, and pairs of texts.

``chat`` and ``preference`` are the forms of OpenAI's fine-tuning API (supervised, and direct preference optimization);
``pairs`` is the plain ``prompt`` and ``completion`` that most other trainers read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from workbench.context.wire import to_wire
from workbench.engine.contracts import Images
from workbench.engine.journal.state import RunState
from workbench.exporters.messages import bare
from workbench.store.faults import StoreError
from workbench.store.store import Store
from workbench.workspace.batch.results import stored_matrix
from workbench.workspace.project import Project
from workbench.workspace.recorded_runs import StoredImages

FORMS = ("chat", "preference", "pairs")


class Sample(Struct, frozen=True):
    """One visit of a phase: what its last call was sent, what it answered, and what that is worth."""

    run: str
    phase: str
    sent: tuple[Mapping[str, Any], ...]
    answer: Mapping[str, Any]
    tools: tuple[Mapping[str, Any], ...] = ()
    score: float | None = None
    """Score of the run; None if it has none."""
    contest: str = ""
    """The round of candidates that it was part of; empty for none."""
    won: bool = True
    """Whether it won that round."""

    @property
    def prompt(self) -> str:
        """The same for samples that answer the same request."""
        return json.dumps([self.sent, self.tools], sort_keys=True)


class TrainingData(Struct):
    """Documents for a trainer, and why other samples were left out."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """How many, by reason."""
    replaced: int = 0
    """Secrets that were replaced."""


def samples_of(state: RunState, images: Images, score: float | None) -> Iterator[Sample]:
    """The visits of a run that ended well; of candidates also those that lost, told apart by ``won``."""
    stood: dict[str, tuple[str, bool]] = {}
    for contest in state.contests:
        for number, one in enumerate(contest.rounds):
            if one.winner is None or not one.decided:
                continue
            for entrant in one.entrants:
                name = f"{state.run_id} {contest.place} {number}"
                stood[entrant.branch] = (name, entrant.index == one.winner)
    for visit in state.visits:
        answered = [call for call in visit.calls if call.answer is not None and not call.beside]
        if not answered or visit.status != "success":
            continue
        last = answered[-1]
        assert last.answer is not None
        sent = tuple(bare(to_wire(entry.sent, images)) for entry in last.entries if entry.sent is not None)
        tools = tuple(dict(tool) for tool in state.tool_schemas.get(last.tools_hash, []))
        contest_name, won = stood.get(visit.branch, ("", not visit.branch))
        answer = bare(to_wire(last.answer, images))
        yield Sample(state.run_id, visit.phase, sent, answer, tools, score, contest_name, won)


def training_data(
    samples: Iterable[Sample],
    form: str,
    redact: Callable[[str], tuple[str, int]],
    *,
    least: float | None = None,
) -> TrainingData:
    """Samples in one of ``FORMS``, each document once, without secrets. ``least``: the score that a run must have to be
    an example; a preference needs it of its winner alone. Raises ValueError for another form."""
    if form not in FORMS:
        raise ValueError(f"there is no form '{form}': {', '.join(FORMS)}")
    made = TrainingData()
    found = _preferences(list(samples), made, least) if form == "preference" else _examples(samples, form, made, least)
    seen: set[str] = set()
    for document in found:
        body = _clean(document, redact, made)
        text = json.dumps(body, sort_keys=True)
        if text in seen:
            made.left_out["the same as another one"] += 1
            continue
        seen.add(text)
        made.documents.append(body)
    return made


def _examples(
    samples: Iterable[Sample], form: str, made: TrainingData, least: float | None
) -> Iterator[dict[str, Any]]:
    for one in samples:
        if not one.won:
            made.left_out["a candidate that lost"] += 1
        elif _below(one.score, least):
            made.left_out["no score, or too low"] += 1
        elif form == "chat":
            yield {"messages": [*one.sent, one.answer], **({"tools": list(one.tools)} if one.tools else {})}
        elif one.answer.get("tool_calls") or not (completion := _text(one.answer)).strip():
            made.left_out["its answer is not text"] += 1
        else:
            yield {"prompt": "\n\n".join(filter(None, map(_text, one.sent))), "completion": completion}


def _preferences(samples: Sequence[Sample], made: TrainingData, least: float | None) -> Iterator[dict[str, Any]]:
    """A pair for each loser of a round of candidates, and for each two answers of runs to the same request of which
    one has the higher score."""
    by_prompt: dict[str, list[Sample]] = {}
    for one in samples:
        by_prompt.setdefault(one.prompt, []).append(one)
    paired: set[int] = set()
    for group in by_prompt.values():
        for winner in group:
            for loser in group:
                if not _beats(winner, loser) or _below(winner.score, least):
                    continue
                if winner.answer == loser.answer:
                    made.left_out["both answers are the same"] += 1
                    continue
                paired |= {id(winner), id(loser)}
                yield _preference(winner, loser)
    made.left_out["no other answer to the same request that is better or worse"] += len(samples) - len(paired)


def _beats(one: Sample, other: Sample) -> bool:
    if one.contest and one.contest == other.contest:
        return one.won and not other.won
    known = one.score is not None and other.score is not None
    return known and one.won and other.won and one.score > other.score  # type: ignore[operator]


def _preference(winner: Sample, loser: Sample) -> dict[str, Any]:
    input: dict[str, Any] = {"messages": list(winner.sent)}
    if winner.tools:
        input |= {"tools": list(winner.tools), "parallel_tool_calls": True}
    return {"input": input, "preferred_output": [winner.answer], "non_preferred_output": [loser.answer]}


def _below(score: float | None, least: float | None) -> bool:
    return least is not None and (score is None or score < least)


def _text(message: Mapping[str, Any]) -> str:
    """The text of a message; of parts those that are text."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")


def _clean(value: Any, redact: Callable[[str], tuple[str, int]], made: TrainingData) -> Any:
    if isinstance(value, str):
        text, count = redact(value)
        made.replaced += count
        return text
    if isinstance(value, Mapping):
        return {key: _clean(one, redact, made) for key, one in value.items()}
    return [_clean(one, redact, made) for one in value] if isinstance(value, list | tuple) else value


def scored_by_people(store: Store, run_ids: Sequence[str]) -> dict[str, float | None]:
    """Returns the scores that people gave to runs: the score, else a thumb as 1 or 0."""
    found: dict[str, float | None] = {}
    for run_id in run_ids:
        said = store.annotations(run_id).run
        found[run_id] = said.score if said.score is not None else {"up": 1.0, "down": 0.0}.get(said.thumb)
    return found


def scored_by_batch(store: Store, name: str, scorer: str = "") -> dict[str, float | None]:
    """The runs of a batch with the score of a scorer, its first one if none is named. Raises UnknownRun, StoreError."""
    matrix = stored_matrix(store, name)
    names = [one.name for one in matrix.plan.scorers]
    if scorer and scorer not in names:
        raise StoreError(f"batch {name} has no scorer '{scorer}': {', '.join(names) or 'it has none'}")
    wanted = scorer or next(iter(names), "")
    found: dict[str, float | None] = {}
    for _, _, _, one in matrix.all():
        if one.run and one.status == "success":
            score = one.scores.get(wanted)
            found[one.run] = None if score is None else score.value
    return found


def training_of(
    project: Project, scores: Mapping[str, float | None], form: str, *, phase: str = "", least: float | None = None
) -> TrainingData:
    """Runs, by id with their scores, in one form; of one phase, if it is named. Secrets are replaced, key-shaped texts
    too. A run that cannot be read is left out. Raises ValueError for an unknown form."""
    lost: list[str] = []

    def samples() -> Iterator[Sample]:
        for run_id, score in scores.items():
            try:
                state = project.store.state(run_id)
                yield from (
                    one
                    for one in samples_of(state, StoredImages(project.store, run_id), score)
                    if phase in ("", one.phase)
                )
            except StoreError:
                lost.append(run_id)

    made = training_data(samples(), form, project.redactor(shapes=True), least=least)
    if lost:
        made.left_out["a run that cannot be read"] += len(lost)
    return made
