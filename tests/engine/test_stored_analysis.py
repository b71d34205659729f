"""What the analysis says of a few runs, as a whole: numbers and words that no test asks for by name show here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from tests.engine.support import FlatPrices, Played, Words, play
from tests.engine.test_analysis import run as chosen_run
from tests.engine.test_compare import Unknown, Writing, played, side
from tests.importers.examples import EXAMPLES
from tests.importers.test_journal import imported
from tests.support.stored import check_stored
from tests.ui.test_candidates import contested
from tests.ui.test_graphs import REVIEW
from workbench.analysis.changed import changed_values, sole_change
from workbench.analysis.compare import as_recorded, cheaper, compare
from workbench.analysis.ranking import evaluator_calls, judged, ranked_candidates
from workbench.analysis.react_flow import react_flow
from workbench.analysis.soundings import analysed
from workbench.analysis.sweep import Pricing, Subject, candidates, sweep
from workbench.analysis.tree import execution_tree
from workbench.analysis.ways import ways_on
from workbench.engine.definition import Definition
from workbench.workspace.mermaid import RunPath, mermaid

STORED = Path(__file__).parent / "stored"
LEFT_OUT = {
    "entries",
    "call",
    "prediction",
    "seen",
    "place",
    "a",
    "b",
    "run_id",
    "asked",
    "told",
    "old",
    "new",
    "pauses",
}
"""Fields that hold contexts and calls, which have tests of their own."""


def plain(value: Any) -> Any:
    """A value as JSON with numbers of six digits, without what is empty."""
    if isinstance(value, Struct):
        held = {one.name: plain(getattr(value, one.name)) for one in fields(value) if one.name not in LEFT_OUT}
        return {name: one for name, one in held.items() if one not in ("", None, [], {}, False)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value if value is None or isinstance(value, bool | int) else str(value)


def check(name: str, value: Any) -> None:
    check_stored(STORED / f"analysis-{name}.json", json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n")


def walked() -> Played:
    told = {"plan": ["a"] * 2, "code": ["b"] * 2, "docs": ["c"] * 2, "check": ["no\noutcome=fail", "outcome=success"]}
    return play(REVIEW, told, answers=["a"])


PRICES: dict[str, Any] = {"flat": FlatPrices(), "writing": Writing(), "unknown": Unknown()}


def test_comparisons() -> None:
    run, found = played(), dict[str, Any]()
    shorter = played(words=300, turns=4)
    sides: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
        ("masks", lambda p: side(run, "snowball", p), lambda p: side(run, "selective+mask(after=1)", p)),
        ("clears", lambda p: side(run, "slide(turns=2)", p), lambda p: side(run, "clear(trigger=900)", p)),
        (
            "runs",
            lambda p: as_recorded("first", run.state, run.definition, Words(), p),
            lambda p: as_recorded("other", shorter.state, shorter.definition, Words(), p),
        ),
    ]
    for name, a, b in sides:
        for prices, priced in PRICES.items():
            one = compare(a(priced), b(priced))
            found[f"{name}, {prices}"] = {
                "totals": [one.a.totals, one.b.totals],
                "outcome": [one.a.outcome, one.b.outcome],
                "cheaper": cheaper(one.a.totals, one.b.totals),
                "pays after": [one.a.pays_after, one.b.pays_after],
                "breaches": [one.a.breaches, one.b.breaches],
                "reported": [len(one.a.reported), len(one.b.reported)],
                "pairs": [f"{pair.place} {pair.same} {len(pair.changes)} {plain(pair.outline)}" for pair in one.pairs],
                "otherwise": one.answered_otherwise,
                "outputs": one.outputs,
            }
    check("comparisons", found)


def test_a_sweep() -> None:
    runs = [played(40), played(900)]
    state, _ = imported(EXAMPLES["openhands"])
    subjects = [Subject(f"run {at}", one.state, one.definition) for at, one in enumerate(runs)]
    subjects.append(Subject("imported", state, Definition.of(state.cascade_text)))
    tried = candidates(["mask(after=[1,3])", "slide(turns=2)", "budget(max=900,reserve=0)"], [runs[0].definition])
    pricings = [Pricing(name, prices) for name, prices in PRICES.items()]
    check("sweep", sweep(subjects, tried, Words(), pricings))


def test_trees_and_graphs() -> None:
    found: dict[str, Any] = {}
    for name, one in (("candidates", contested()), ("pipeline", walked()), ("turns", played(9, turns=3))):
        tree = execution_tree(one.state)
        found[name] = {
            "tree": tree,
            "flow": react_flow(tree),
            "mermaid": mermaid(one.definition.graph, RunPath(one.state)).splitlines(),
        }
    check("trees", found)


def test_ways() -> None:
    run = walked()
    check("ways", [ways_on(run.definition.graph, visit).to_json() for visit in run.state.visits])


def test_candidates_and_variants() -> None:
    state = contested().state
    rounds = [
        {
            "ranked": ranked_candidates(state, contest, of),
            "evaluators": [str(call.place) for call in evaluator_calls(state, contest, of)],
            "judged": judged(state, contest, of),
        }
        for contest in state.contests
        for of in contest.rounds
    ]
    many = [one.to_json() for one in analysed([chosen_run(number, number % 4 or 2) for number in range(13)])]
    check("candidates", {"rounds": rounds, "variants": many})


def test_changes_of_a_file() -> None:
    before = played(9, turns=3).definition
    text = json.loads(before.source.text)
    changes: dict[str, Callable[[dict[str, Any]], object]] = {
        "instructions": lambda c: c["phases"][1].update(instructions="Tell it all."),
        "turns": lambda c: c["phases"][0]["rules"].update(max_turns=9),
        "context": lambda c: c["phases"][1].update(context={"from": ["dig"], "include_input": False}),
        "another phase": lambda c: c["phases"].append({"name": "end", "instructions": "End."}),
        "nothing": lambda c: None,
        "two": lambda c: (c.update(description="x"), c["phases"][0].update(model="m")),
    }
    found: dict[str, Any] = {}
    for name, change in changes.items():
        changed = json.loads(json.dumps(text))
        change(changed)
        after = Definition.of(json.dumps(changed), "c.json")
        found[name] = {"values": changed_values(before, after), "sole": sole_change(before, after)}
    check("changes", found)
