"""A batch of inputs by two variants in a store: one run failed, one is open, and one is stored whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec import to_builtins

from tests.store.examples import plain_run, save
from workbench.analysis.batch.matrix import BatchPlan, CellResult, PlannedVariant
from workbench.analysis.batch.rows import InputRow
from workbench.analysis.batch.scoring import Score, Scorer
from workbench.store.batches import BatchFolder, BatchWriter
from workbench.store.store import Store

TEXTS = ("great jacket", "the zip broke on the second day", "warm, light", "too short", "[b]nice[/b]", "late")
RUN = "0190c6f2-7f3a-7000-8000-00000000c001"


def stored_batch(folder: Path, texts: Sequence[str] = TEXTS) -> None:
    """A batch of six rows and two variants, of which one run failed, one is open and one is stored."""
    store = Store(folder / ".workbench")
    events = plain_run(RUN, session="reviews-1.r1.v1")
    save(store, events)
    rows = tuple(
        InputRow(at, f"rows.jsonl:{at}", {"review": text}, {"review": text, "expected": "good"})
        for at, text in enumerate(texts, 1)
    )
    variants = (PlannedVariant("model=openai/gpt-4.1-mini", "flow.yaml"), PlannedVariant("model=x/b", "flow.yaml"))
    cells = {f"{row}.{variant}": (row, variant, 0) for row in range(len(rows)) for variant in range(2)}
    scorers = (Scorer.parse("exact"), Scorer.parse("person"))
    plan = BatchPlan("reviews-1", "rows.jsonl", rows, variants, cells, 1, scorers)
    with BatchWriter(BatchFolder(store.root, plan.name)) as writer:
        writer.write_plan(json.loads(json.dumps(plan.to_json())))
        for number, (key, (row, variant, _)) in enumerate(cells.items()):
            if number == len(cells) - 1:
                continue
            good = (row + variant) % 2 == 0
            output = "good" if good else f"bad: it is\n{texts[3]}"
            cost = 0.001 * (number + 1)
            scores = {"exact": Score(float(good), "" if good else "another word")}
            run = RUN if not number else f"r{number}"
            session = f"reviews-1.r{row + 1}.v{variant + 1}"
            done = CellResult("success", "", output, run, session, cost, cost, 100 + number, 5, 0.5 + number, 1, scores)
            failed = CellResult("failed", "no answer within 300 s", "", run, session, None, 0.0, 0, 0, 300.0, 1)
            result = failed if number == 5 else done
            writer.add({"kind": "ended", "cell": key, "result": to_builtins(result)})
