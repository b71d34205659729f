"""A key goes before what an answer streams in, and does not hold it up."""

from __future__ import annotations

from workbench.context.place import Place
from workbench.engine.ports import Notice
from workbench.workspace.courtesy import MOMENT, Courtesy

PIECE = Notice("text", Place("", "talk", 1, 1, 1, 1), {"text": "word "})


class Time:
    """A clock that goes on when somebody waits for it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def courtesy(clock: Time) -> tuple[Courtesy, list[Notice]]:
    told: list[Notice] = []
    return Courtesy(told.append, clock, clock.sleep), told


def test_a_piece_of_an_answer_waits_while_a_key_is_answered_and_is_told_before_it_waits() -> None:
    clock = Time()
    polite, told = courtesy(clock)
    polite(PIECE)
    assert (clock.now, told) == (100.0, [PIECE]), "nobody pressed a key"
    polite.key()
    polite(PIECE)
    assert (clock.now, told) == (100.0 + MOMENT, [PIECE, PIECE])


def test_nothing_but_an_answer_waits() -> None:
    clock = Time()
    polite, told = courtesy(clock)
    polite.key()
    polite(Notice("held", Place(), {}))
    assert (clock.now, len(told)) == (100.0, 1)


def test_a_key_that_is_held_down_leaves_a_fifth_of_the_time_to_the_run() -> None:
    clock = Time()
    polite, _ = courtesy(clock)
    worked = 0.0
    while clock.now < 110.0:
        polite.key()
        polite(PIECE)
        clock.now += 0.001
        worked += 0.001
    assert worked >= 0.19 * (clock.now - 100.0)
