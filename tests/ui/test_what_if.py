"""The tabs of watched programs: what another strategy would have cost, call by call, and what the program prints."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.ui.bench import bench
from tests.ui.support import triage_story
from workbench.engine.journal.event import Event
from workbench.tui.bench.tabs import tab_at
from workbench.workspace.program_output import ProgramOutput


def priced(events: list[Event]) -> list[Event]:
    """The same events with a ``what_if`` behind each request."""
    found, number = list[Event](), 0
    for event in events:
        found.append(event)
        if event.kind == "context_assembled":
            number += 1
            told = {"tokens": 50, "cached": 0, "cost": 0.0005, "sent_tokens": 200, "sent_cost": 0.002}
            sums = {"all_tokens": 50 * number, "all_cost": 0.0005 * number}
            sums |= {"all_sent_tokens": 200 * number, "all_sent_cost": 0.002 * number}
            data = {"strategy": "slide(turns=2)", **told, **sums, "invalid": ""}
            found.append(Event(0, event.at, event.run_id, "what_if", event.place, data))
    return [replace(event, seq=seq) for seq, event in enumerate(found, 1)]


async def test_each_call_stands_beside_what_another_strategy_would_have_cost(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(80, 24), events=priced(triage_story(finished=True).events)) as it:
        calls = len(it.presenter.state.run.calls)
        await it.press("7")
        rows = it.screen.dock_pane.rows
        heads = [row.text for row in rows.heads(80)]
        sums = [f"~{50 * calls}", f"~{200 * calls}", f"~${0.0005 * calls:.4f}", f"~${0.002 * calls:.4f}", "-75%"]
        assert heads[1].split() == ["all", "calls", *sums]
        assert rows.row(1, 80).text.split()[:3] == ["triage#1:1", "~50", "~200"]
        title = it.screen.dock_pane.rows.title
        at = "".join(text for text, _ in title).index("What if")
        assert tab_at(title, at) == "what_if"
        it.screen.dock_pane.move_to(1)
        await it.press("enter")
        assert it.presenter.state.selected == it.presenter.state.run.calls[1].place
        it.presenter.state.summary = True
        await it.press("1")
        summary = it.presenter.context(compact=False)
        summary.lay_out(80)
        assert any("slide(turns=2): in " in summary.row(i, 80).text for i in range(len(summary)))


async def test_the_output_of_a_program_grows_in_its_tab(tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    async with bench(tmp_path, size=(80, 24), events=triage_story(finished=True).events) as it:
        it.session.program = ProgramOutput(printed)
        assert "Program" not in "".join(text for text, _ in it.presenter.tabs("log"))
        printed.write_bytes(b"\x1b[32mgreen\x1b[0m \x1b]0;title\x07words\r\n10%\r100%\r\n\xff")
        await it.press("7")
        rows = it.screen.dock_pane.rows
        rows.lay_out(80)
        assert [rows.row(i, 80).text.strip() for i in range(len(rows))] == ["green words", "100%", "\ufffd"]
        printed.write_bytes(b"another")
        it.screen.controllers.running.follow()
        assert it.screen.dock_pane.rows.row(0, 80).text.strip() == "another"
