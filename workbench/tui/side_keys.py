"""The keys of Compare and of Candidates. A part of the one table in ``keys.py``."""

from __future__ import annotations

from workbench.tui.key import Key

_NEXT, _PREVIOUS = "right_square_bracket", "left_square_bracket"

SIDE_KEYS: tuple[Key, ...] = (
    Key("compare.next", _NEXT, "difference(1)", "compare", "The next difference", "Compare", "next"),
    Key("compare.previous", _PREVIOUS, "difference(-1)", "compare", "The difference before", "Compare", "previous"),
    Key("compare.apply", "a", "apply", "compare", "Write strategy B into the file, after a look", "Compare", "apply B"),
    Key("compare.plot", "P", "plot", "compare", "Tokens and cost over the calls, as a plot", "Compare", "plot"),
    Key("compare.sweep", "S", "sweep", "compare", "Try many strategies on this run", "Compare", "sweep"),
    Key(
        "compare.export", "X", "export", "compare", "Write the comparison to an HTML or JSON file", "Compare", "export"
    ),
    Key(
        "candidates.choose",
        "c",
        "choose",
        "candidates",
        "Choose this candidate, where the run waits for you",
        "Candidates",
        "choose",
    ),
    Key("candidates.reject", "X", "reject", "candidates", "Reject all: the phase fails", "Candidates", "reject all"),
    Key("candidates.outputs", "d", "beside('outputs')", "candidates", "Two outputs side by side", "Candidates", "diff"),
    Key(
        "candidates.prompts",
        "D",
        "beside('prompts')",
        "candidates",
        "Two prompts side by side",
        "Candidates",
        "prompts",
    ),
    Key(
        "candidates.mark",
        "space",
        "mark",
        "candidates",
        "Mark the one that others are held against",
        "Candidates",
        "mark",
    ),
    Key(
        "candidates.why",
        "v",
        "evaluation",
        "candidates",
        "What the evaluator was asked and said",
        "Candidates",
        "evaluator",
    ),
    Key("candidates.plot", "P", "plot", "candidates", "Quality against cost as a plot", "Candidates", "plot"),
    Key("candidates.context", "i", "context", "candidates", "Its newest call in the Bench", "Candidates", "context"),
    Key(
        "candidates.next", _NEXT, "contest(1)", "candidates", "Candidates of the next phase", "Candidates", "next phase"
    ),
    Key("candidates.previous", _PREVIOUS, "contest(-1)", "candidates", "Candidates of the phase before", "Candidates"),
    Key("sweep.stop", "x", "stop", "sweep", "Stop trying; what was tried stays", "Sweep", "stop"),
    Key("sweep.plot", "P", "plot", "sweep", "Tokens against cost as a plot", "Sweep", "plot"),
)

SIDE_CONTEXTS: dict[str, tuple[str, ...]] = {
    "compare": ("list", "sheet"),
    "candidates": ("list", "sheet"),
    "sweep": ("list", "sheet"),
}
"""For ``CONTEXTS``."""
