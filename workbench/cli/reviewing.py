"""Going through changed snapshots in a terminal: one key each, nothing written before it is accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.cli.output import Cell, Printer
from workbench.snapshots.faults import SnapshotError
from workbench.workspace.reviewing import Decision, Review, heading, same_words, sections, source_words

if TYPE_CHECKING:
    from workbench.workspace.testing import Snapshots, Verdict

KEYS = "a accept   r reject   s skip   A R S for all   d all differences   q quit"
FIRST = 5
"""Differences that are shown before ``d`` is pressed."""
_DECISIONS = {"a": Decision.ACCEPTED, "r": Decision.REJECTED, "s": Decision.SKIPPED}


class TerminalReview:
    """``key`` gives the next key pressed."""

    def __init__(self, snapshots: Snapshots, printer: Printer, key: Callable[[], str]) -> None:
        self._snapshots = snapshots
        self._printer = printer
        self._key = key

    def go(self, changed: Sequence[Verdict]) -> list[Verdict]:
        """Show each and do what is asked; those that stay as they are."""
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
                    self._printer.line(Cell(str(fault), "bad"))
            else:
                self._decide(review, verdict, _DECISIONS[key])
        self._printer.line(review.counts)
        return review.left()

    def _decide(self, review: Review, verdict: Verdict, decision: Decision) -> None:
        try:
            review.decide(verdict, decision)
        except SnapshotError as fault:
            self._printer.line(Cell(str(fault), "bad"))

    def _ask(self, verdict: Verdict) -> str:
        while True:
            self._printer.line(Cell(KEYS, "dim"))
            self._printer.stream.flush()
            key = self._key()
            if key in ("\x03", "\x04", "\x1b"):
                return "q"
            if key == "d":
                print_sections(verdict, self._printer)
            elif len(key) == 1 and key in "arsARSq":
                return key

    def _head(self, verdict: Verdict, number: int, total: int) -> None:
        self._printer.line()
        self._printer.line(
            f"{number} of {total}   ",
            Cell(verdict.name, "head"),
            f"   {heading(verdict)}   ",
            Cell(verdict.cascade_file, "dim"),
        )
        print_sections(verdict, self._printer, most=FIRST)


def print_sections(verdict: Verdict, printer: Printer, most: int | None = None) -> None:
    """What a verdict says, place by place; with ``most``, no more differences than that."""
    if verdict.fault is not None:
        printer.block(str(verdict.fault), indent="  ")
    shown = 0
    total = sum(len(section.others) + len(section.parts) for section in sections(verdict))
    for section in sections(verdict):
        if most is not None and shown >= most:
            break
        printer.line(Cell(f"  {section.label}", "head"), f"   {section.said}")
        told = [(part.words, source_words(part, section.file)) for part in section.parts]
        told += [(one.sentence(section.file), "\n".join(one.details)) for one in section.others]
        for words, more in told[: None if most is None else most - shown]:
            printer.block(words, indent="    ")
            if more:
                printer.block(more, indent="      ")
        shown += len(section.parts) + len(section.others)
    if most is not None and total > most:
        printer.line(Cell(f"  and {total - most} more", "dim"))
    if same := same_words(verdict):
        printer.line(Cell(f"  {same}", "dim"))
