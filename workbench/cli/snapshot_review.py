"""Reviews changed snapshots in a terminal: one key each, nothing written before it is accepted."""

from __future__ import annotations

import difflib
import os
import select
import termios
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workbench.analysis.changed import ChangedCall, ChangedPart
from workbench.cli.printer import Printer
from workbench.snapshots.faults import SnapshotError
from workbench.views.entry import message_text
from workbench.views.value import Cell
from workbench.workspace.reviewing import Decision, Review, heading, same_words, sections, source_words

if TYPE_CHECKING:
    from workbench.workspace.testing import SnapshotResult, Snapshots

KEYS = "a accept   r reject   s skip   A R S for all   d whole differences   q quit"
FIRST = 5
"""Differences that are shown before ``d`` is pressed."""
_DONE = {
    Decision.ACCEPTED: "{} is accepted, and written",
    Decision.REJECTED: "{} is rejected: it stays as it is",
    Decision.SKIPPED: "{} is skipped",
}
_STYLES = {Decision.ACCEPTED: "ok", Decision.REJECTED: "error", Decision.SKIPPED: "dim"}
_DECISIONS = {"a": Decision.ACCEPTED, "r": Decision.REJECTED, "s": Decision.SKIPPED}


class TerminalReview:
    """``key`` gives the next key pressed."""

    def __init__(self, snapshots: Snapshots, printer: Printer, key: Callable[[], str]) -> None:
        self._snapshots = snapshots
        self._printer = printer
        self._key = key

    def go(self, changed: Sequence[SnapshotResult]) -> list[SnapshotResult]:
        """Show each and carry out the decision; returns those left unchanged."""
        review = Review(self._snapshots, changed)
        for number, verdict in enumerate(changed, 1):
            if verdict.name in review.decided:
                continue
            self._head(verdict, number, len(changed))
            key = self._ask(verdict)
            if key == "q":
                break
            if key in "ARS":
                for fault in review.decide_rest(_DECISIONS[key.lower()]):
                    self._printer.line(Cell(str(fault), "error"))
                break
            self._decide(review, verdict, _DECISIONS[key])
        self._printer.line(review.counts)
        return review.left()

    def _decide(self, review: Review, verdict: SnapshotResult, decision: Decision) -> None:
        try:
            review.decide(verdict, decision)
        except SnapshotError as fault:
            self._printer.line(Cell(str(fault), "error"))
        else:
            self._printer.line(Cell(f"  {_DONE[decision].format(verdict.name)}", _STYLES[decision]))

    def _ask(self, verdict: SnapshotResult) -> str:
        while True:
            self._printer.line(Cell(KEYS, "dim"))
            self._printer.stream.flush()
            key = self._key()
            if key in ("\x03", "\x04", "\x1b"):
                return "q"
            if key == "d":
                print_sections(verdict, self._printer, texts=True)
            elif len(key) == 1 and key in "arsARSq":
                return key

    def _head(self, verdict: SnapshotResult, number: int, total: int) -> None:
        self._printer.line()
        self._printer.line(
            f"{number} of {total}   ",
            Cell(verdict.name, "head"),
            f"   {heading(verdict)}   ",
            Cell(verdict.cascade_file, "dim"),
        )
        print_sections(verdict, self._printer, most=FIRST)


def print_sections(verdict: SnapshotResult, printer: Printer, most: int | None = None, *, texts: bool = False) -> None:
    """Prints a verdict place by place; with ``most``, no more differences than that, with ``texts`` the lines of the
    messages that differ."""
    if verdict.fault is not None:
        printer.block(str(verdict.fault), indent="  ")
    shown = 0
    total = sum(len(section.others) + len(section.parts) for section in sections(verdict))
    for section in sections(verdict):
        if most is not None and shown >= most:
            break
        printer.line(Cell(f"  {section.label}", "head"), f"   {section.said}")
        told: list[tuple[str, str, ChangedPart | None]] = [
            (part.words, source_words(part, section.file), part) for part in section.parts
        ]
        told += [(one.sentence(section.file), "\n".join(one.details), None) for one in section.others]
        for words, more, part in told[: None if most is None else most - shown]:
            printer.block(_wrapped(words, printer), indent="    ")
            if more:
                printer.block(more, indent="      ")
            if texts and part is not None and section.call is not None:
                _print_texts(section.call, part, printer)
        shown += len(section.parts) + len(section.others)
    if most is not None and total > most:
        printer.line(Cell(f"  and {total - most} more", "dim"))
    if same := same_words(verdict):
        printer.line(Cell(f"  {same}", "dim"))


def _print_texts(call: ChangedCall, part: ChangedPart, printer: Printer) -> None:
    """A changed message line by line, as a diff: what it was begins with a minus, what it is with a plus."""
    old, new = (
        message_text(of.entries[at]).splitlines() if 0 <= at < len(of.entries) else []
        for of, at in ((call.old, part.old), (call.new, part.new))
    )
    for line in [*difflib.unified_diff(old, new, lineterm="", n=2)][2:]:
        style = {"+": "ok", "-": "error", "@": "dim"}.get(line[:1], "")
        printer.line("      ", Cell("…" if line.startswith("@@") else line, style))


def _wrapped(words: str, printer: Printer) -> str:
    """A sentence in the lines of the terminal, as it is where there is none."""
    if printer.width is None:
        return words
    return "\n".join(textwrap.wrap(words, max(printer.width - 4, 40), subsequent_indent="  ", break_on_hyphens=False))


_LONGEST = 16
"""Bytes of the sequence of one key."""


@contextmanager
def keys_of(fd: int) -> Iterator[Callable[[], str]]:
    """Reads the next key of a terminal. Switching the mode for each key anew would throw away what came in between."""
    before = termios.tcgetattr(fd)
    now = termios.tcgetattr(fd)
    now[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(fd, termios.TCSANOW, now)

    def key() -> str:
        pressed = os.read(fd, 1)
        if pressed == b"\x1b":
            pressed += _sequence(fd)
        return pressed.decode("latin-1") or "\x04"

    try:
        yield key
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _sequence(fd: int) -> bytes:
    """Returns the bytes that came with an escape, as far as they belong to one key: the next key may have been pressed
    already."""
    found = b""
    while len(found) < _LONGEST and select.select([fd], [], [], 0)[0] and (byte := os.read(fd, 1)):
        found += byte
        if found[:1] not in (b"[", b"O") or (len(found) > 1 and byte >= b"@"):
            break
    return found
