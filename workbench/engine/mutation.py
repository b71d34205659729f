"""How candidates differ: the built-in templates, and which candidate gets which."""

from __future__ import annotations

from msgspec import Struct

from workbench.language.model.candidates import Soundings
from workbench.language.problem import Path

APPROACHES: tuple[str, ...] = (
    "Take the opposite view: question the obvious answer and argue for what others would overlook.",
    "Look for edge cases first: unusual, extreme or missing inputs, and make sure the answer covers them.",
    "Be practical: prefer what can be done with what is at hand, step by step.",
    "Reason from first principles: state what is certainly true and build the answer from that alone.",
    "Think of the person who will use the result: what they need, what would confuse them.",
    "Look for the simplest thing that could work, and leave out all else.",
    "Think of growth: what happens with ten or a hundred times as much?",
    "Play devil's advocate: name the strongest objection to your answer and answer it.",
)
"""Contrarian, edge cases, practical, first principles, user experience, simplicity, scalability, devil's advocate."""

REWRITES: tuple[str, ...] = (
    "Make the instructions more specific and detailed.",
    "Turn the instructions into numbered steps.",
    "Add concrete examples of what is wanted.",
    "Make the instructions concise and direct.",
    "Put the constraints first.",
    "State what a successful answer must contain.",
    "Write the instructions for a reader who is an expert in the field.",
    "Turn the instructions into the questions that must be settled.",
)

AUGMENTS: tuple[str, ...] = (
    "Work step by step, and finish each step before the next.",
    "First list the key constraints, then keep to them.",
    "Consider the edge cases before you answer.",
    "Begin by restating the goal in one sentence.",
    "Start from a small example and generalise from it.",
    "Before you answer, check your answer against the task.",
    "Keep in mind what the reader needs to know.",
    "Weigh at least two alternatives before you decide.",
)

_BUILT_IN = {"approach": APPROACHES, "rewrite": REWRITES, "augment": AUGMENTS}


class Mutation(Struct, frozen=True):
    """How one candidate's task is varied."""

    mode: str
    """rewrite, augment or approach."""
    template: str
    path: Path = ()
    """Path of the template in the file, in which case it is rendered; empty for a built-in one."""

    def varied(self, instructions: str, said: str = "") -> str:
        """The instructions with the rendered template (``said``) beside them; a rewrite is made by a model instead."""
        if self.mode == "augment":
            return f"{said or self.template}\n\n{instructions}"
        return f"{instructions}\n\n**Approach:** {said or self.template}"


def mutations(soundings: Soundings, count: int, path: Path) -> list[Mutation | None]:
    """One for each candidate: 0 is the unchanged baseline, candidate i uses template (i - 1) mod n. ``path`` is that of
    the ``soundings`` block."""
    if not soundings.mutate:
        return [None] * count
    mode = soundings.mutation_mode
    if soundings.mutations:
        listed = [Mutation(mode, text, (*path, "mutations", i)) for i, text in enumerate(soundings.mutations)]
    else:
        listed = [Mutation(mode, text) for text in _BUILT_IN[mode]]
    return [None, *(listed[i % len(listed)] for i in range(count - 1))][:count]


def reforge_mutation(step: int, attempt: int, factor: int) -> Mutation:
    """The approach of an attempt of a reforge step; the eight continue over the steps. ``step`` counts from 1."""
    return Mutation("approach", APPROACHES[((step - 1) * factor + attempt) % len(APPROACHES)])
