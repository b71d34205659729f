"""The signs of the visual language: one table for the panes, the help and plain output. Never colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from workbench.views.value import Cell

if TYPE_CHECKING:
    from workbench.views.cells import Span  # which loads rich: commands that print no cells do without


class Sign(NamedTuple):
    """One sign, the token that colours it, and what it means in words."""

    glyph: str
    token: str
    meaning: str


SIGNS: dict[str, Sign] = {
    "masked": Sign("◌", "masked", "masked: the content was replaced by a placeholder"),
    "truncated": Sign("✂", "masked", "truncated: cut short"),
    "summarized": Sign("Σ", "masked", "summarized: sent as a summary"),
    "injected": Sign("↪", "injected", "injected from another phase or from the input"),
    "dropped": Sign("·", "faint", "dropped: not sent at all"),
    "cached": Sign("┃", "cached", "inside the prefix that the provider can cache"),
    "break": Sign("╋", "warning", "the cache breaks here"),
    "broken": Sign("✗", "error", "a broken invariant, or a failed check"),
    "running": Sign("⠋", "running", "running"),
    "assembled": Sign("▷", "running", "assembled, not sent yet"),
    "done": Sign("✓", "ok", "done"),
    "failed": Sign("✗", "error", "failed"),
    "blocked": Sign("⊘", "error", "blocked by a check"),
    "skipped": Sign("⊖", "dim", "skipped: what it depends on failed"),
    "stopped": Sign("■", "warning", "stopped; it can be resumed"),
    "diverged": Sign("≠", "warning", "the replay sent a request that was not recorded"),
    "waiting": Sign("?", "waiting", "waiting for you"),
    "recorded": Sign("⟲", "recorded", "answered from a recording"),
    "paused": Sign("‖", "held", "paused here: step or continue"),
    "breakpoint": Sign("◆", "error", "breakpoint"),
    "changed": Sign("●", "changed", "changed since the run started, or since the last save"),
    "winner": Sign("★", "ok", "the candidate that was chosen"),
    "stands": Sign("☆", "masked", "no candidate was chosen: this one stands in"),
    "marked": Sign("◉", "key", "marked, to be compared"),
    "shown": Sign("»", "key", "the run that the Bench shows; at home the file that was open last"),
    "new": Sign("+", "ok", "not in the previous call"),
    "gone": Sign("−", "gone", "in the previous call, not in this one"),
    "moved": Sign("⇅", "changed", "moved since the previous call"),
    "edited": Sign("✎", "changed", "edited by hand"),
    "altered": Sign("±", "changed", "treated differently than in the previous call"),
    "error result": Sign("!", "error", "a result that its tool flagged as an error"),
    "warning": Sign("⚠", "warning", "a warning"),
    "pending": Sign("○", "faint", "not run yet"),
    "secret": Sign("•", "warning", "a secret was replaced in this text"),
    "thumb up": Sign("↑", "ok", "rated good"),
    "thumb down": Sign("↓", "error", "rated bad"),
    "note": Sign("✎", "accent", "has a note"),
    "calibrated": Sign("≈", "dim", "calibrated: scaled by what the provider reported"),
    "estimate": Sign("~", "dim", "estimated"),
    "at least": Sign("≥", "dim", "at least: a part has no price"),
}

STATUS_SIGN = {
    "running": "running",
    "success": "done",
    "done": "done",
    "recorded": "recorded",
    "assembled": "assembled",
    "failed": "failed",
    "blocked": "blocked",
    "stopped": "stopped",
    "skipped": "skipped",
    "interrupted": "stopped",
    "diverged": "diverged",
    "pending": "pending",
    "paused": "paused",
}

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def sign(name: str, tick: int = 0) -> Span:
    """The glyph and its token; a running one turns with ``tick``."""
    glyph, token, _ = SIGNS[name]
    return (SPINNER[tick % len(SPINNER)], token) if name == "running" else (glyph, token)


def status_sign(status: str, tick: int = 0) -> Span:
    """The sign of a status; an unknown status shows as ``?``."""
    return sign(STATUS_SIGN.get(status, "waiting"), tick)


def status_cell(status: str) -> Cell:
    """A status with its sign; the word alone in plain output."""
    glyph, token = status_sign(status)
    return Cell(f"{glyph} {status}", token, status)
