"""Going through changed snapshots in a terminal: one key each, nothing written before it is accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.cli.output import Cell, Printer
from workbench.snapshots.faults import SnapshotError

if TYPE_CHECKING:
    from workbench.workspace.testing import Snapshots, Verdict

KEYS = "a accept   r reject   s skip   A R S for all   d all differences   q quit"


class Review:
    """``key`` gives the next key pressed."""

    def __init__(self, snapshots: Snapshots, printer: Printer, key: Callable[[], str]) -> None:
        self._snapshots = snapshots
        self._printer = printer
        self._key = key

    def go(self, changed: Sequence[Verdict]) -> list[Verdict]:
        """Show each and do what is asked; those that stay as they are. Rejected: the cascade is wrong, not the
        snapshot. Skipped: not decided."""
        counts = {"accepted": 0, "rejected": 0, "skipped": 0}
        left: list[Verdict] = []
        for_all = ""
        for number, verdict in enumerate(changed, 1):
            self._head(verdict, number, len(changed))
            key = for_all or self._ask(verdict)
            if key in "ARS":
                for_all = key
            done = self._decide(key.lower(), verdict)
            counts[done] += 1
            if done != "accepted":
                left.append(verdict)
            if key == "q":
                left += changed[number:]
                counts["skipped"] += len(changed) - number
                break
        self._printer.line(", ".join(f"{count} {word}" for word, count in counts.items()))
        return left

    def _decide(self, key: str, verdict: Verdict) -> str:
        if key == "a":
            try:
                self._snapshots.accept(verdict)
            except SnapshotError as fault:
                self._printer.line(Cell(str(fault), "bad"))
                return "skipped"
            return "accepted"
        return "rejected" if key == "r" else "skipped"

    def _ask(self, verdict: Verdict) -> str:
        while True:
            self._printer.line(Cell(KEYS, "dim"))
            self._printer.stream.flush()
            key = self._key()
            if key in ("\x03", "\x04", "\x1b"):
                return "q"
            if key == "d":
                self._all(verdict)
            elif len(key) == 1 and key in "arsARSq":
                return key

    def _head(self, verdict: Verdict, number: int, total: int) -> None:
        word = "cannot be replayed" if verdict.fault else "changed"
        self._printer.line()
        self._printer.line(
            f"{number} of {total}   ", Cell(verdict.name, "head"), f"   {word}   ", Cell(verdict.cascade_file, "dim")
        )
        if verdict.fault is not None:
            self._printer.block(str(verdict.fault), indent="  ")
        for one in verdict.differences[:5]:
            self._printer.block(one.sentence(verdict.cascade_file), indent="  ")
        if (more := len(verdict.differences) - 5) > 0:
            self._printer.line(Cell(f"  and {more} more", "dim"))
        kinds = {str(one.kind) for one in verdict.differences}
        same = [word for word in ("route", "check", "state", "tool", "request") if word not in kinds]
        if same and verdict.fault is None:
            self._printer.line(Cell(f"  the same: {', '.join(same)}", "dim"))

    def _all(self, verdict: Verdict) -> None:
        for one in verdict.differences:
            self._printer.block(one.sentence(verdict.cascade_file), indent="  ")
            for detail in one.details:
                self._printer.block(detail, indent="    ")
