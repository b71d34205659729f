"""Lets a person choose among candidates: what is shown, which answers are allowed, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.dollars import GRADE_SIGN, money
from workbench.engine.candidates.previews import difference, rendered
from workbench.engine.contracts import Question
from workbench.engine.faults import PhaseFailed
from workbench.engine.human.people import TimedOut
from workbench.engine.journal.candidate_rounds import candidate_name
from workbench.language.clean import clean_line
from workbench.language.model.candidates import HumanEval

if TYPE_CHECKING:
    from workbench.engine.candidates.candidates import Candidate, CandidateTask

REJECT = "reject all"
TIE = "tie"
_PICK = re.compile(
    r"\s*(?:(?:candidate|attempt)\s*)?(?P<number>\d+)\b[\s:.,–—-]*(?P<reason>.*)", re.IGNORECASE | re.DOTALL
)
_REASON = re.compile(
    r"(?:^|[;\n])\s*(?:attempt\s*|candidate\s*)?(?P<name>r\d+\.\d+|s?\d+)\s*[:.)–—-]\s*(?P<reason>[^;\n]*)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_HOW = {
    "pick_one": "",
    "rank_all": "Answer with the numbers of all candidates, the best first: 2, 1, 3",
    "rate_each": "Answer with a number from 0 to 100 for each candidate, in their order: 70, 90, 55",
}


class Pick(Struct, frozen=True):
    """A person's choice. Positions count within what was offered."""

    winner: int
    reason: str = ""
    scores: dict[int, float] = field(default_factory=dict)
    """Scores from 0 to 100, if the candidates were rated."""
    rejected: dict[int, str] = field(default_factory=dict)
    """Reasons against the candidates that were not chosen, if the file asks for them."""
    tied: bool = False
    """The person saw no difference; the winner is the first."""
    fault: str = ""
    """Why no answer could be used; the winner is then not a person's choice."""


async def pick(
    contest: CandidateTask,
    offered: Sequence[Candidate],
    judging: str,
    scores: Mapping[int, float],
    judged: Mapping[str, Any],
    *,
    raises: bool,
) -> Pick:
    """Ask the person. ``judging`` is how to judge; ``scores`` by position are shown, and all of ``judged`` on a screen.

    Raises PhaseFailed when all are rejected, TimedOut, and RunStopped when no person is attached (NoPersonAttached, if
    ``raises``).
    """
    return await _PickQuestion(contest, offered, judging, scores, judged, raises).pick()


class _PickQuestion(Struct, frozen=True):
    """One question: which candidates compete, and what is shown of them. The fields are the parameters of ``pick``."""

    contest: CandidateTask
    offered: Sequence[Candidate]
    judging: str
    scores: Mapping[int, float]
    judged: Mapping[str, Any]
    raises: bool

    @property
    def rule(self) -> HumanEval:
        return self.contest.soundings.human_eval or HumanEval()

    async def pick(self) -> Pick:
        found = await self._winner()
        if found.fault:
            return found
        others = [position for position in range(len(self.offered)) if position != found.winner]
        if not self.rule.capture_rejected_reasons or not others:
            return found
        question = (
            f"Why not {self._named(others)}? One reason for all, or one for each: {self._listed(others[0])}: …; …"
        )
        try:
            said = await self._ask(Question(question))
        except TimedOut:
            return found
        return replace(found, rejected=read_reasons(said, others, {self._listed(one): one for one in others}))

    async def _winner(self) -> Pick:
        """By one question, or pair by pair in a tournament."""
        rule = self.rule
        pairs = rule.selection_mode == "tournament" or (
            rule.presentation == "tournament" and rule.selection_mode == "pick_one"
        )
        if pairs and len(self.offered) > 2:
            found = Pick(0)
            tied = False
            for other in range(1, len(self.offered)):
                found = await self._among([found.winner, other], "pick_one")
                if found.fault:
                    break
                # A tie on the way counts only where what was taken for the better wins in the end.
                tied = found.tied or (tied and found.winner != other)
            return replace(found, tied=tied)
        mode = "pick_one" if rule.selection_mode == "tournament" else rule.selection_mode
        return await self._among(range(len(self.offered)), mode)

    async def _among(self, positions: Sequence[int], mode: str) -> Pick:
        """One question, repeated while the answer names no candidate."""
        rule = self.rule
        options = [f"Candidate {number + 1}" for number in positions] if mode == "pick_one" else []
        options += [TIE] if rule.allow_tie and mode == "pick_one" else []
        options += [REJECT] if rule.allow_reject_all else []
        first = self.offered[positions[0]] if rule.presentation == "diff" else None
        shown = "\n\n".join(self._shown(position, first) for position in positions)
        words = "\n".join(filter(None, (self.judging, _HOW[mode])))
        indices = tuple(self.offered[position].index for position in positions)
        more: dict[str, Any] = {"candidates": indices, "mode": mode, "judged": self.judged, "shown": _how(rule)}
        answer = ""
        for text in (words, f"That names none of these candidates. {words}"):
            answer = await self._ask(Question(text, shown, tuple(options), "choice", **more))
            if answer.strip().lower() == REJECT and rule.allow_reject_all:
                raise PhaseFailed("all candidates were rejected", "soundings")
            found = read_pick(answer, positions, mode, allow_tie=rule.allow_tie)
            if found is not None:
                return await self._reasoned(found)
        return Pick(positions[0], fault=f"'{clean_line(answer, 80)}' names no candidate")

    async def _reasoned(self, found: Pick) -> Pick:
        if not self.rule.require_reasoning or found.reason:
            return found
        reason = await self._ask(Question(f"Why candidate {self._named([found.winner])}?"))
        return replace(found, reason=reason.strip())

    async def _ask(self, question: Question) -> str:
        return await self.contest.conversation.ask(question, raises=self.raises, timeout=self.rule.timeout_seconds)

    def _named(self, positions: Sequence[int]) -> str:
        """Candidates by the numbers that answers use, and by those that a screen lists them under."""
        return ", ".join(f"{position + 1} ({self._listed(position)})" for position in positions)

    def _listed(self, position: int) -> str:
        return candidate_name(self.offered[position].index)

    def _shown(self, position: int, first: Candidate | None) -> str:
        """A candidate as text, for people without a screen; as its difference from ``first``, if given."""
        candidate, rule, score = self.offered[position], self.rule, self.scores.get(position)
        notes = [candidate_name(candidate.index)] if rule.show_index else []
        if rule.show_metadata:
            spent = self.contest.engine.candidate_spent(candidate.conversation.place())
            priced = "cost unknown" if spent.cost is None else money(spent.cost, exact=spent.exact)
            tokens = f"{GRADE_SIGN[spent.grade] if spent.tokens else ''}{spent.tokens:,} tokens"
            notes += [candidate.conversation.model, tokens, priced]
            notes += [f"score {score:g}"] if score is not None else []
        if rule.show_mutations and candidate.mutation is not None:
            notes.append(f"{candidate.mutation.mode}: {candidate.mutation.template}")
        if candidate.verdict is not None and not candidate.verdict.valid:
            notes.append(f"rejected by the validator: {candidate.verdict.reason}")
        output = _preview(candidate, rule)
        if first is not None and first is not candidate:
            output = difference(_preview(first, rule), output, ("the first", f"candidate {position + 1}"))
        about = f"\n({' · '.join(notes)})" if notes else ""
        return f"Candidate {position + 1}:{about}\n{output}"


def read_reasons(said: str, others: Sequence[int], listed: Mapping[str, int] | None = None) -> dict[int, str]:
    """Reasons by position, from ``2: too long; 3: off topic`` or from one text that counts for all. ``listed``: the
    positions of candidates by the names that screens list them under, which an answer may use, too.

    >>> read_reasons("2: too long; s2: off topic", [1, 2], {"s2": 2})
    {1: 'too long', 2: 'off topic'}
    """
    found = dict[int, str]()
    for match in _REASON.finditer(said):
        named = (listed or {}).get(match["name"].lower())
        position = named if named is not None else int(match["name"]) - 1 if match["name"].isdecimal() else -1
        if position in others and (reason := match["reason"].strip()):
            found[position] = reason
    return found or {position: said.strip() for position in others if said.strip()}


def read_pick(answer: str, positions: Sequence[int], mode: str, *, allow_tie: bool = False) -> Pick | None:
    """The meaning of an answer; None if it names no offered candidate.

    >>> read_pick("Candidate 2: clearer", range(3), "pick_one")
    Pick(winner=1, reason='clearer', scores={}, rejected={}, tied=False, fault='')
    """
    if mode == "pick_one":
        if allow_tie and answer.strip().lower() == TIE:
            return Pick(min(positions), TIE, tied=True)
        match = _PICK.match(answer)
        if match is None or int(match["number"]) - 1 not in positions:
            return None
        return Pick(int(match["number"]) - 1, match["reason"].strip())
    numbers = [float(number) for number in _NUMBER.findall(answer)]
    if mode == "rank_all":
        ranked = [int(number) - 1 for number in numbers]
        return Pick(ranked[0], f"ranked {answer.strip()}") if sorted(ranked) == sorted(positions) else None
    if len(numbers) != len(positions) or any(number > 100 for number in numbers):
        return None
    scores = dict(zip(positions, numbers, strict=True))
    return Pick(max(scores, key=lambda i: (scores[i], -i)), f"rated {answer.strip()}", scores)


def _how(rule: HumanEval) -> dict[str, Any]:
    """Returns how the candidates are shown, if the file changes the default."""
    hidden = [name for name in ("metadata", "mutations") if not getattr(rule, f"show_{name}")]
    return {
        **({"presentation": rule.presentation} if rule.presentation != "side_by_side" else {}),
        **({"render": rule.preview_render} if rule.preview_render != "auto" else {}),
        **({"hidden": hidden} if hidden else {}),
        **({"reason": True} if rule.require_reasoning else {}),
        **({"limit": rule.max_preview_length} if rule.max_preview_length is not None else {}),
    }


def _preview(candidate: Candidate, rule: HumanEval) -> str:
    """As much of an output as is shown."""
    output, limit = rendered(candidate.output, rule.preview_render, candidate.images), rule.max_preview_length
    return output if limit is None or len(output) <= limit else f"{output[:limit]}… ({len(output):,} characters)"
