"""The one format of numbers: thousands separated, money with two significant digits, seconds with one decimal."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.dollars import GRADE_SIGN, UNPRICED, money, recorded_answers, recorded_words, without_output
from workbench.durations import duration_words, took_with_pauses
from workbench.views.signs import sign

if TYPE_CHECKING:
    from workbench.engine.journal.costs import CallCost, CostSum
    from workbench.engine.journal.figures import Figures
    from workbench.engine.journal.state import RunState
    from workbench.store.summary import RunSummary


UNKNOWN = "–"


def count(value: int | None, grade: str = "exact") -> str:
    """``1,812``; ``≈1,812`` when calibrated, ``~1,812`` when estimated, ``~−11`` below zero. 0 has no sign."""
    return UNKNOWN if value is None else f"{GRADE_SIGN[grade] if value else ''}{value:,}".replace("-", "−")


def spent_words(spent: CostSum) -> str:
    """``$0.0123`` billed, ``~$0.0123`` if a part is predicted or uses another price list, ``unpriced`` if no price is
    known; empty without a call.
    """
    if spent.total is None:
        return UNPRICED if spent.calls + spent.embedded else ""
    more = f", {spent.unknown:,} {UNPRICED}" if spent.unknown else ""
    return money(spent.total, exact=spent.exact) + without_output(spent.halves, spent.calls) + more


def spent_cell(spent: CostSum, missing: int = 0) -> str:
    """The same in a column: ``≥$0.0123`` if a part has no price, or ``missing`` child runs are not included."""
    if spent.total is None:
        return spent_words(spent)
    words = money(spent.total, exact=spent.exact)
    return at_least(words) if spent.partial or missing else words


def at_least(words: str) -> str:
    """A sum of which a part is not known: ``≥$0.0123``, ``≥~$0.0123``."""
    return f"≥{words}"


def bill_words(paid: CallCost) -> str:
    """The bill of one answer: ``$0.0031``, ``$0.0031 recorded, not billed again``; empty if there is none."""
    if paid.billed is None:
        return ""
    words = recorded_words if paid.recorded else money
    return words(paid.billed, exact=paid.exact)


def call_cost(spent: CostSum) -> str:
    """The cost of one call in a column: ``⟲$0.0031`` if a recording answered, which is what it cost when it was asked
    for, and no part of what the run spent."""
    if spent.calls or not spent.recorded:
        return spent_cell(spent)
    return sign("recorded")[0] + money(spent.recorded, exact=spent.recorded_exact)


def spent_in_full(spent: CostSum) -> str:
    """The same with billed, predicted and recorded parts apart: ``$0.0123 billed + ~$0.0039 predicted,
    out of 2 calls unpriced``, ``$0.0062 · $0.0031 recorded, not billed again``."""
    parts = (made_in_full(spent), recorded_words(spent.recorded, exact=spent.recorded_exact))
    return " · ".join(part for part in parts if part)


def figures_in_full(took: Figures | RunSummary) -> tuple[str, ...]:
    """``in 5,116``, ``out 230``, ``cost $0.0038``, and what a recording answered besides: ``3 answers recorded (in
    2,048, out 96, $0.0031), not billed again``."""
    return (
        *tokens_in_full(took),
        f"cost {made_in_full(took.spent) or UNKNOWN}",
        *filter(None, (recorded_in_full(took),)),
    )


def tokens_in_full(took: Figures | RunSummary) -> tuple[str, str]:
    """``in 5,116`` and ``out 230``."""
    return f"in {count(took.tokens_in, took.grade_in)}", f"out {count(took.told_out)}"


def recorded_in_full(took: Figures | RunSummary) -> str:
    """``3 answers recorded (in 2,048, out 96, $0.0031), not billed again``; empty without one."""
    spent = took.spent
    tokens = f"in {count(took.recorded_tokens_in, took.recorded_grade_in)}, out {count(took.recorded_told_out)}"
    return recorded_answers(took.recorded, tokens, spent.recorded, exact=spent.recorded_exact)


def made_in_full(spent: CostSum) -> str:
    """What the calls that were made cost, billed and predicted parts apart."""
    if spent.total is None or not spent.predicted:
        return spent_words(spent)
    predicted = f"{money(spent.predicted)} predicted"
    parts = [money(spent.billed, exact=spent.exact) + " billed"] if spent.billed else []
    unpriced = f", {plural(spent.unknown, 'call')} {UNPRICED}" if spent.unknown else ""
    return " + ".join((*parts, predicted)) + without_output(spent.halves, spent.calls) + unpriced


LONG_WAIT = 0.5
"""Seconds from which on it is told how long a run waited for a person."""


def took_words(took: float | None, paused: float = 0.0, waited: float = 0.0) -> str:
    """Duration and paused time, ``4.2s + 2m 00s paused``, and how much of the duration a person was waited for; empty
    if unknown."""
    if took is None:
        return ""
    most = f", {seconds(waited)} of it waiting for you" if waited >= LONG_WAIT else ""
    return took_with_pauses(took, paused) + most


OVERHEAD = "overhead"
"""Names the row of the time that nothing of a run took."""
JOINING = "runs inside"
"""Names the row of the time for which only runs inside it went on."""


def times_beside(run: RunState) -> dict[str, float]:
    """Seconds of a run that no phase took, by the name of their row, so that its rows add up to its time; without those
    that show as nothing beside them."""
    times = {JOINING: run.joining, OVERHEAD: run.overhead}
    return {name: spent for name, spent in times.items() if spent is not None and spent >= LEAST_OVERHEAD}


LEAST_OVERHEAD = 0.05


def seconds(value: float | None) -> str:
    """``1.9s``; below a tenth of a second ``38 ms``; from one minute on ``2m 05s``."""
    return UNKNOWN if value is None else duration_words(value)


def call_tokens(value: int | None, grade: str = "exact", *, recorded: bool) -> str:
    """The tokens of a call in a column: ``⟲1,812`` if a recording answered, and no part of what the run took."""
    return (sign("recorded")[0] if recorded and value is not None else "") + count(value, grade)


def call_time(value: float | None, *, recorded: bool) -> str:
    """The duration of a call in a column: ``⟲1.9s`` if a recording answered, which is what it took when it was asked
    for, and no time of the run."""
    return (sign("recorded")[0] if recorded and value is not None else "") + seconds(value)


def plural(number: int, noun: str) -> str:
    """``1 call``, ``2 calls``, ``2 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def saved_words(saved: int, grade: str = "exact") -> str:
    """What masking spared: ``166 tokens saved``. Placeholders longer than what they replace take tokens instead:
    ``~1 token more``."""
    noun = "token" if abs(saved) == 1 else "tokens"
    return f"{count(-saved, grade)} {noun} more" if saved < 0 else f"{count(saved, grade)} {noun} saved"


@lru_cache(maxsize=16384)
def day_and_time(at: str, *, year: bool = True) -> str:
    """Local date and time of an event, to the minute; empty for an invalid time."""
    try:
        moment = datetime.fromisoformat(at).astimezone()
    except ValueError:
        return ""
    return moment.strftime("%Y-%m-%d %H:%M" if year else "%m-%d %H:%M")


@lru_cache(maxsize=4096)
def clock(at: str) -> str:
    """Local time of day of an event, to the millisecond; empty for an invalid time."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return ""
    return moment.astimezone().strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03}"
