"""A run with contests of every kind, in which the same branch names stand for other candidates again and again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.engine.support import Played, ScriptedModel, call, play
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.engine.contracts import Answer, Images
from workbench.engine.definition import Options
from workbench.engine.journal.usage import Usage

PICKS = {"a": 1, "b": 2, "c": 1}
"""Which attempt the evaluator of a phase picks, from 0; of the refinements it picks the last."""
WHOLE = 1
"""Which walk of the whole cascade wins."""


class PricedModel(ScriptedModel):
    """Answers with the place of its call. Every call has a price of its own; an evaluator picks by ``PICKS``."""

    def __init__(self) -> None:
        super().__init__([])
        self.costs: dict[Place, float] = {}

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        self.requests.append((place, request))
        self.costs[place] = 0.001 * (1 + len(self.costs))
        return Answer(self._said(request, place), usage=Usage(input=100, output=10), cost=self.costs[place])

    def _said(self, request: Request, place: Place) -> str:
        if place.turn:
            route = (
                call("route_to", target="a" if place.visit == 1 else "d")
                if (place.phase, place.turn) == ("c", 1)
                else ""
            )
            return f"text of {place}\n{route}"
        count = len(re.findall(r"^## Attempt \d+", request.messages[1].text, re.MULTILINE))
        refined = place.phase == "b" and place.call == 2
        winner = WHOLE if not place.visit else count - 1 if refined else PICKS[place.phase]
        scores = ", ".join(f'"{n + 1}": {90 if n == winner else 10 + n}' for n in range(count))
        return f'{{"winner": {winner + 1}, "scores": {{{scores}}}, "reason": "as planned"}}'


def many_contests(*, walks: int = 2) -> Played:
    """Three phases with candidates, of which one refines its winner and all are visited twice, in ``walks`` whole
    walks that compete (1: there is one walk, on the main line)."""
    soundings: dict[str, Any] = {"max_parallel": 1, "evaluator_instructions": "Choose."}
    reforge = {"steps": 1, "factor_per_step": 2, "honing_prompt": "Shorter."}
    phases = [
        {"name": "a", "instructions": "A", "soundings": {"factor": 2, **soundings}},
        {"name": "b", "instructions": "B", "soundings": {"factor": 3, **soundings, "reforge": reforge}},
        {"name": "c", "instructions": "C", "soundings": {"factor": 2, **soundings}, "handoffs": ["a", "d"],
         "rules": {"max_turns": 2}},
        {"name": "d", "instructions": "D"},
    ]  # fmt: skip
    whole = {"soundings": {"factor": walks, **soundings}} if walks > 1 else {}
    cascade = {"cascade_id": "many", "phases": phases, **whole}
    return play(cascade, [], own_model=PricedModel(), options=Options("many", "gpt-4o-mini"))
