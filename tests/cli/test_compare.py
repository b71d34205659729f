"""Comparing strategies from the command line: ``diff`` and ``sweep`` on an offline run."""

from __future__ import annotations

import json
import re
import statistics
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Cli, run_cli
from tests.ui.test_candidates import CASCADE as CANDIDATES
from tests.ui.test_candidates import REPLIES

CASCADE = """\
cascade_id: dig
strategies:
  whole: selective
  masked: selective+mask(after=2)
phases:
  - name: dig   # reads one file after the other
    model: openai/gpt-4.1-mini
    instructions: "Dig. {{ input.hint }}"
    tackle: [read_file]
    rules: {max_turns: 8}
    handoffs: []
"""
TURNS = 7
HOSTILE = "<script>alert(1)</script> \x1b[2J & more\n"


@pytest.fixture
def dug(workspace: Path, cli: Cli) -> Cli:
    """The command line in a workspace with one run, ``one``, whose tool results are long."""
    prepare(workspace)
    ended = cli("run", "dig.yaml", "--session", "one")
    assert ended.code == 0, ended.err
    return cli


def prepare(folder: Path, hint: str = "Go.", suffix: str = "yaml") -> None:
    calls = [f"    - calls: [{{tool: read_file, arguments: {{path: f{i}.txt}}}}]" for i in range(1, TURNS)]
    (folder / "dig.replies.yaml").write_text("\n".join(["replies:", "  dig:", *calls, "    - text: Done."]))
    (folder / "dig.input.json").write_text(json.dumps({"hint": hint}))
    (folder / f"dig.{suffix}").write_text(CASCADE)
    for i in range(1, TURNS):
        (folder / f"f{i}.txt").write_text(HOSTILE + f"fact {i} of the matter\n" * 150)


def of(found: Any, side: str, name: str) -> list[Any]:
    return [call[side][name] for call in found["calls"]]


def test_masking_sends_fewer_tokens_and_costs_more_and_diff_says_when_it_pays(dug: Cli) -> None:
    shown = dug("diff", "one", "--strategies", "whole", "masked")
    assert shown.code == 0
    assert "all numbers are predicted" in shown.out
    assert re.search(
        r"warning: B sends \d+% fewer tokens than A and costs \d+% more \([^)]*\$[^)]*\): masking breaks the cached",
        shown.out,
    )
    assert re.search(r"Breaks even after [\d,]+ more turns?; \d+ remain on average. Paid off at", shown.out)
    assert re.search(r"A whole: .* tokens, ~\$[\d.]+ for the input; time and answers unknown", shown.out)
    assert re.search(r"\d turn 1's result: full to masked", shown.out)
    assert "dig:4, context of A" in shown.out
    assert "\x1b" not in shown.out


def test_the_json_of_a_comparison_adds_up(dug: Cli) -> None:
    found = dug("diff", "--strategies", "whole", "masked", "--json").json
    assert found["paradox"]
    for side in "ab":
        totals = found[side]["totals"]
        assert totals["calls"] == len(found["calls"]) == TURNS
        for name in ("tokens", "cached", "fresh", "written"):
            assert totals[name] == sum(of(found, side, name))
        assert totals["cost"] == pytest.approx(sum(of(found, side, "cost")))
        assert totals["peak"] == max(of(found, side, "tokens"))
    breaks = [call["b"]["break_even"] for call in found["calls"] if call["b"]["break_even"]]
    whole = found["b"]["break_even"]
    price = found["b"]["prices"]["openai/gpt-4.1-mini"]
    read = price["cache_read"] / price["input"]
    assert whole["breaks"] == len(breaks) == TURNS - 3
    assert whole["turns"] == pytest.approx(
        sum(b["rewritten"] for b in breaks) * (1 - read) / (sum(b["freed"] for b in breaks) * read)
    )


def test_dollars_in_the_columns_are_marked_as_predicted(dug: Cli) -> None:
    shown = dug("diff", "one", "--strategies", "whole", "masked").out
    rows = [line for line in shown.splitlines() if re.match(r"(dig:\d|total) +[≈~\d]", line)]
    assert len(rows) == TURNS + 1
    for row in rows:  # Both columns of dollars, with the change behind them.
        assert len(re.findall(r"(?<=\s)~\d+\.\d{4,6}(?=\s)", row)) == 2, row
        assert not re.search(r"(?<=\s)\d+\.\d{4,6}(?=\s)", row), row


def test_cached_tokens_are_marked_as_predicted_where_those_of_the_request_are_known(workspace: Path, cli: Cli) -> None:
    said = [{"role": "user", "content": "word " * 2000}]
    answer = {"role": "assistant", "content": "Yes."}
    rows = [
        (said, {"prompt_tokens": 2007, "completion_tokens": 2}),
        ([*said, answer, {"role": "user", "content": "And?"}], {"prompt_tokens": 2021, "completion_tokens": 2}),
    ]
    recorded = [
        {
            "request": {"method": "POST", "uri": "https://a.test/v1", "body": {"model": "gpt-4o", "messages": asked}},
            "response": {"body": {"choices": [{"message": answer}], "usage": usage}},
        }
        for asked, usage in rows
    ]
    (workspace / "a.json").write_text(json.dumps({"version": 1, "interactions": recorded}))
    assert cli("import", "a.json").code == 0
    shown = cli("diff", "--strategies", "snowball", "selective")
    (line,) = (line for line in shown.out.splitlines() if line.startswith("imported:2 "))
    assert line.split()[1:5] == ["2,021", "2,021", "0", "≈1,920"]
    assert re.search(r"the provider counted [\d,]+ tokens \([\d,]+ predicted", shown.out)


def test_what_was_predicted_of_a_stated_call_carries_its_sign(cli: Cli, workspace: Path) -> None:
    call = {
        "request": {"model": "gemini-2.5-flash", "messages": [{"role": "user", "content": "Hello"}]},
        "response": {
            "object": "chat.completion",
            "choices": [{"message": {"role": "assistant", "content": "Yes"}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1},
        },
    }
    (workspace / "call.json").write_text(json.dumps(call))
    assert cli("import", "call.json").code == 0
    shown = cli("diff", "--strategies", "snowball", "selective").out
    assert re.search(r"the provider counted 3 tokens \(~\d predicted", shown)


def test_two_runs_are_told_apart_by_dollars_time_and_answers(dug: Cli, workspace: Path) -> None:
    replies = (workspace / "dig.replies.yaml").read_text()
    (workspace / "dig.replies.yaml").write_text(replies.replace("text: Done.", 'text: "Done \\e[31manew."'))
    assert dug("run", "dig.yaml", "--session", "two").code == 0
    shown = dug("diff", "one", "two").out
    assert "the final outputs differ" in shown
    assert "answers differ at 1 of 7 calls: dig:7" in shown
    assert re.search(r"A one: .* for the input; the run cost ~\$[\d.]+.*, took ", shown)
    assert "− Done." in shown
    assert re.search(r"\+ Done .*anew\.", shown)
    assert "\x1b" not in shown
    found = dug("diff", "one", "two", "--json").json
    assert found["outputs"]["a"] == "Done."
    assert [call["turn"] for call in found["calls"] if call["answers"]["a"] != call["answers"]["b"]] == [7]
    assert found["a"]["outcome"]["seconds"] > 0
    same = dug("diff", "one", "one").out
    assert "both end with the same output; both are offline: their answers are scripted" in same
    assert dug("fork", "one", "--at", "dig:6", "--edit", "state.by=hand", "--session", "three").code == 0
    edited = dug("diff", "one", "three").out
    assert re.search(r"B three: .*, took .*, 1 edit by hand", edited)
    assert edited.count("by hand") == 1


def test_a_strategy_against_itself_differs_nowhere(dug: Cli) -> None:
    found = dug("diff", "--strategies", "masked", "selective+mask(after=2)", "--json").json
    assert all(call["same"] and not call["changes"] for call in found["calls"])
    assert found["a"]["totals"] == found["b"]["totals"]
    assert "both send the same requests" in dug("diff", "--strategies", "file", "selective").out
    recorded = dug("diff", "--strategies", "file", "this", "--json").json
    assert recorded["verdict"] == "both send the same requests"
    assert (recorded["a"]["outcome"], recorded["b"]["outcome"]["output"]) == (None, "Done.")
    refused = dug("diff", "--strategies", "file", "this", "--apply", "B")
    assert "'this' is what was sent, not a strategy" in refused.err


def test_the_calls_that_are_not_compared_are_named_so_that_the_sums_are_those_of_the_run(
    workspace: Path, cli: Cli
) -> None:
    (workspace / "charts.yaml").write_text(CANDIDATES)
    (workspace / "charts.replies.yaml").write_text(REPLIES)
    (workspace / "charts.input.json").write_text(json.dumps({"topic": "hits"}))
    assert cli("run", "charts.yaml", "--session", "one").code == 0
    shown = cli("diff", "one", "one", "--json").json
    (listed,) = cli("runs", "--json").json
    for side in (shown["a"], shown["b"]):
        left = side["left_out"]
        assert [one["what"] for one in left] == ["evaluation", "runs inside"]
        assert side["totals"]["calls"] + sum(one["calls"] for one in left) == listed["calls"]
        assert side["totals"]["tokens"] + sum(one["tokens"] for one in left) == listed["tokens_in"]
    told = r"A and B leave out \d evaluation calls \(.?[\d,]+ tokens\), which no strategy changes; \d calls .* of runs"
    pages = [cli("diff", "one", "one", "--html", "out.html").out, (workspace / "out.html").read_text("utf-8")]
    for said in (*shown["notes"][:1], *pages, cli("diff", "one", "-s", "file", "snowball").out):
        assert re.search(told, said)
    assert "the scripted replies state" in pages[0]
    assert "the provider counted" not in pages[0]


def test_two_runs_are_compared_call_by_call_and_word_by_word(dug: Cli, workspace: Path) -> None:
    prepare(workspace, hint="Go now.")
    assert dug("run", "dig.yaml", "--session", "two").code == 0
    shown = dug("diff", "one", "two", "--text")
    assert re.search(r"\d the task: reworded", shown.out)
    assert "⟦ now⟧" in shown.out
    assert dug("diff", "one", "one", "--json").json["verdict"] == "both send the same requests"


def test_two_strategies_in_the_place_of_runs_are_told_the_option(dug: Cli) -> None:
    hint = "two strategies are compared with --strategies A B"
    assert dug("diff", "file", "mask(after=1)").err == f"error: no run is named 'file' ({hint})\n"


def test_one_call_can_be_chosen_and_a_wrong_one_is_named(dug: Cli) -> None:
    assert "dig:6, context of A" in dug("diff", "--strategies", "whole", "masked", "--at", "dig:6").out
    assert "dig:5, context of A" in dug("diff", "--strategies", "whole", "masked", "--at", "dig/1/1/5/1").out
    wrong = dug("diff", "--strategies", "whole", "masked", "--at", "dig:99")
    assert wrong.code == 2
    assert "no call at dig:99" in wrong.err


class Page(HTMLParser):
    """What a page could load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_html_file_needs_nothing_else_and_runs_nothing(dug: Cli, workspace: Path) -> None:
    assert dug("diff", "--strategies", "whole", "masked", "--html", "out.html").code == 0
    text = (workspace / "out.html").read_text("utf-8")
    page = Page()
    page.feed(text)
    assert "script" not in page.tags
    assert all(link.startswith("#d") for link in page.links)
    assert "default-src 'none'" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\x1b" not in text
    assert page.tags.count("details") > 0
    assert page.tags.count("svg") == 1


def test_the_html_file_says_how_sure_its_tokens_are_and_shows_cache_writes_where_they_are_billed(
    dug: Cli, workspace: Path
) -> None:
    def page() -> str:
        assert dug("diff", "--strategies", "whole", "masked", "--html", "out.html").code == 0
        return (workspace / "out.html").read_text("utf-8")

    exact = page()
    total = re.compile(r"<tr><td[^>]*>total</td><td[^>]*>~[\d,]+</td><td[^>]*>~[\d,]+</td>")
    assert not total.search(exact)
    assert "written" not in exact
    rows = re.findall(r"<tr>(.*?)</tr>", exact)
    assert {len(re.findall("<t[hd][ >]", row)) for row in rows} == {12}
    file = workspace / "dig.yaml"
    file.write_text(file.read_text().replace("openai/gpt-4.1-mini", "anthropic/claude-sonnet-4.5"))
    assert dug("run", "dig.yaml", "--session", "two").code == 0
    guess = page()
    assert total.search(guess)
    assert "~ before tokens: an estimate." in guess
    assert ">written A</th>" in guess


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_applied_the_file_says_what_was_chosen_and_nothing_else_changes(workspace: Path, cli: Cli, suffix: str) -> None:
    import yaml

    prepare(workspace)
    file = workspace / f"dig.{suffix}"
    if suffix == "json":
        file.write_text(json.dumps(yaml.safe_load(CASCADE), indent=1))
    before = file.read_text()
    assert cli("run", file.name, "--session", "one").code == 0
    spec = "mask(after=2,window=9,step=2)"
    done = cli("diff", "one", "--strategies", "file", spec, "--apply", "B", "--yes")
    assert done.code == 0, done.err
    assert "mask_observations_after" in done.out
    after = file.read_text()
    assert [
        line for line in before.splitlines() if line.rstrip(",") not in {x.rstrip(",") for x in after.splitlines()}
    ] == []
    assert cli("run", file.name, "--session", "two").code == 0
    assert cli("diff", "two", "--strategies", "file", spec, "--json").json["verdict"] == "both send the same requests"
    again = cli("diff", "two", "--strategies", "file", spec, "--apply", "B", "--yes")
    assert "nothing to write" in again.err
    assert file.read_text() == after


def test_a_file_that_was_edited_since_is_what_the_change_is_compared_with(workspace: Path, cli: Cli) -> None:
    """The numbers and the diff that stand below each other are of one text: the one that would be written."""
    prepare(workspace)
    file = workspace / "dig.yaml"
    assert cli("run", file.name, "--session", "one").code == 0
    first, last = "mask(after=1,min_masked_size=1)", "mask(after=3,min_masked_size=1)"
    assert cli("diff", "one", "--strategies", "file", first, "--apply", "B", "--yes").code == 0
    of_the_run = cli("diff", "one", "--strategies", "file", last, "--json").json
    told = cli("diff", "one", "--strategies", "file", last, "--apply", "B", "--json")
    assert "'file' and the change below are of the file as it is now" in told.err
    by_hand = cli("diff", "one", "--strategies", first, last, "--json").json
    assert told.json["a"]["totals"] == by_hand["a"]["totals"] != of_the_run["a"]["totals"]
    assert told.json["b"]["totals"] == by_hand["b"]["totals"]
    assert told.json["apply"]["phases"] == ["dig"]
    changes = cli("diff", "one", "--changes").out
    assert any(line.strip().startswith("+") and "mask" in line for line in changes.split("\n")), changes
    told = cli("diff", "one", "--changes", "--json").json
    assert (told["file"], told["changed"]) == ("dig.yaml", True)
    assert any(line.startswith("+") and "mask" in line for line in told["diff"].split("\n"))


def test_one_rule_says_where_a_strategy_goes_and_what_is_dropped_is_named(workspace: Path, cli: Cli) -> None:
    """By diff and by sweep: into the phase in which it makes a difference, not into the cascade."""
    prepare(workspace)
    masked = "    intra_context: {mask_observations_after: 3, window: 7}\n"
    head, mark, rest = CASCADE.partition("    rules:")
    tell = "  - {name: tell, instructions: Tell what you found.}\n"
    (workspace / "dig.yaml").write_text(head + masked + mark + rest.replace("    handoffs: []\n", tell))
    with (workspace / "dig.replies.yaml").open("a") as replies:
        replies.write("\n  tell: Told.\n")
    assert cli("run", "dig.yaml", "--session", "two").code == 0
    diff = cli("diff", "two", "-s", "file", "mask(after=1)", "--apply", "B")
    sweep = cli("sweep", "two", "--strategy", "mask(after=1)", "--apply", "dig.yaml", "--take", "mask(after=1)")
    for done in (diff, sweep):
        assert done.code == 1, done.err
        assert "It goes into the phase in which it makes a difference: dig." in done.out
        assert "Dropped: dig: mask(window=7,min_masked_size=200), loop(limit=3)." in done.out
    changes = [done.out[done.out.index("--- dig.yaml now") :] for done in (diff, sweep)]
    assert changes[0] == changes[1]
    assert "+    strategy: mask(after=1)" in changes[0]
    options = ("--apply", "dig.yaml", "--take", "mask(after=1)", "--json")
    told_json = cli("sweep", "two", "--strategy", "mask(after=1)", *options).json["apply"]
    assert (told_json["phases"], told_json["dropped"]) == (
        ["dig"],
        ["dig: mask(window=7,min_masked_size=200), loop(limit=3)"],
    )


def test_without_consent_nothing_is_written(dug: Cli, workspace: Path) -> None:
    refused = dug("diff", "--strategies", "whole", "masked", "--apply", "B")
    assert refused.code == 1
    assert "+    strategy:" in refused.out or "+strategy:" in refused.out
    assert "nothing was written" in refused.err
    assert (workspace / "dig.yaml").read_text() == CASCADE
    told = dug("diff", "--strategies", "whole", "masked", "--apply", "B", "--json").json["apply"]
    assert (told["written"], told["phases"]) == (False, ["dig"])


def test_sweep_gives_medians_over_the_runs(dug: Cli, workspace: Path) -> None:
    for number, name in ((40, "two"), (400, "three")):
        prepare(workspace)
        for i in range(1, TURNS):
            (workspace / f"f{i}.txt").write_text("fact\n" * number)
        assert dug("run", "dig.yaml", "--session", name).code == 0
    runs = ("one", "two", "three")
    found = dug("sweep", *runs, "--strategy", "mask(after=1..2,step=[1,3])", "--json").json
    assert [row["strategy"] for row in found["strategies"]] == [
        "snowball",
        "file",
        "whole",
        "masked",
        "mask(after=1)",
        "mask(after=1,step=3)",
        "mask(after=2)",
        "mask(after=2,step=3)",
    ]
    for row in found["strategies"]:
        by_hand = []
        for run in runs:
            alone = dug("diff", run, "--strategies", "snowball", row["spec"] or "file", "--json").json
            by_hand.append(alone["b"]["totals"]["cost"] / alone["a"]["totals"]["cost"])
        assert row["cost"]["median"] == pytest.approx(statistics.median(by_hand))
        assert (row["cost"]["low"], row["cost"]["high"]) == pytest.approx((min(by_hand), max(by_hand)))


def test_sweep_offers_the_files_strategies_and_draws_them(dug: Cli, workspace: Path) -> None:
    shown = dug("sweep", "--plot", "--svg", "plot.svg")
    assert shown.code == 0
    assert "masked: selective+mask(after=2)" in shown.out
    assert "tokens sent, relative to snowball" in shown.out
    assert "<title>masked</title>" in (workspace / "plot.svg").read_text()


def test_a_sweep_says_dollars_runs_and_calls_and_what_the_sum_recommends(dug: Cli, workspace: Path) -> None:
    for i in range(1, TURNS):
        (workspace / f"f{i}.txt").write_text("fact\n")
    assert dug("run", "dig.yaml", "--session", "small").code == 0
    found = dug("sweep", "one", "small", "--strategy", "mask(after=1)", "--json").json
    for row in found["strategies"]:
        told = row["cost_sum"]
        assert told["value"] == pytest.approx(sum(one["dollars"] for one in row["by_run"]))
        assert (told["runs"], told["calls"]) == (2, 2 * TURNS)
    assert found["dominant"]["recorded"]["run"] == "one"
    assert found["models"] == {"one": ["openai/gpt-4.1-mini"], "small": ["openai/gpt-4.1-mini"]}
    assert found["prices"]["recorded"]["openai/gpt-4.1-mini"]["input"] == pytest.approx(0.4e-6)
    shown = dug("sweep", "one", "small", "--strategy", "mask(after=1)").out
    assert "one makes up " in shown
    assert "cheapest overall: " in shown
    assert "for 2 runs and 14 calls" in shown
    assert "openai/gpt-4.1-mini: input $0.40" in shown
    value = next(row["cost_sum"]["value"] for row in found["strategies"] if row["strategy"] == "snowball")
    assert f"${value:,.4f}" in shown


def test_a_sweep_of_one_run_says_which_strategy_to_choose_and_what_it_saves_beside_the_file(dug: Cli) -> None:
    found = dug("sweep", "--strategy", "mask(after=1)", "--json").json
    rows = {row["strategy"]: row for row in found["strategies"]}
    best, file = rows[found["cheapest"]["recorded"]], rows["file"]
    shown = " ".join(dug("sweep", "--strategy", "mask(after=1)").out.split())
    less = 1 - best["cost_sum"]["value"] / file["cost_sum"]["value"]
    fewer = 1 - best["tokens_sum"]["value"] / file["tokens_sum"]["value"]
    assert f"cheapest overall: {best['strategy']}, " in shown
    assert f"{less:.0%} less than file (" in shown
    assert f"), {abs(fewer):.0%} {'fewer' if fewer > 0 else 'more'} tokens" in shown


def test_a_filter_chooses_the_runs_of_a_sweep(dug: Cli, workspace: Path) -> None:
    (workspace / "other.yaml").write_text(CASCADE.replace("cascade_id: dig", "cascade_id: other"))
    (workspace / "other.replies.yaml").write_text((workspace / "dig.replies.yaml").read_text())
    (workspace / "other.input.json").write_text((workspace / "dig.input.json").read_text())
    assert dug("run", "other.yaml", "--session", "two").code == 0
    assert dug("run", "dig.yaml", "--session", "three").code == 0
    found = dug("sweep", "--filter", "cascade:dig", "--strategy", "mask(after=1)", "--json").json
    assert sorted(found["runs"]) == ["one", "three"]
    wrong = dug("sweep", "--filter", "cascade:dig staus:x")
    assert (wrong.code, "FILTER:1:13: error: " in wrong.err) == (2, True)
    assert "no stored run matches cascade:none" in dug("sweep", "--filter", "cascade:none").err


def test_several_providers_stand_in_one_table_with_the_cheapest_of_each(dug: Cli, workspace: Path) -> None:
    claude = "anthropic/claude-sonnet-4.5"
    options = ("--strategy", "mask(after=1..2)", "--provider", "recorded", "--provider", claude)
    found = dug("sweep", *options, "--json").json
    assert found["providers"] == ["recorded", claude]
    for provider in found["providers"]:
        rows = [row for row in found["strategies"] if row["provider"] == provider]
        alone = dug("sweep", "--strategy", "mask(after=1..2)", "--provider", provider, "--json").json["strategies"]
        assert rows == alone
        least = min(rows, key=lambda row: row["cost_sum"]["value"])
        assert found["cheapest"][provider] == least["strategy"]
    shown = dug("sweep", *options, "--svg", "plot.svg", "--html", "sweep.html").out
    assert "as recorded" in shown
    assert f"cheapest overall at {claude}: " in shown
    assert "cheapest of all: " in shown
    for file in ("plot.svg", "sweep.html"):
        text = (workspace / file).read_text()
        assert "cheapest of all: " in text
        assert f"mask(after=2) at {claude}</title>" in text
    assert "US dollars" in (workspace / "sweep.html").read_text()


def test_the_cheapest_strategy_of_a_sweep_goes_into_a_file(dug: Cli, workspace: Path) -> None:
    (workspace / "other.yaml").write_text(CASCADE)
    options = ("--strategy", "mask(after=1..3)", "--apply", "other.yaml")
    refused = dug("sweep", *options)
    assert (refused.code, "nothing was written to other.yaml" in refused.err) == (1, True)
    told = dug("sweep", *options, "--yes", "--json").json
    assert (told["apply"]["file"], told["apply"]["written"]) == ("other.yaml", True)
    assert told["apply"]["strategy"] == told["cheapest"]["recorded"]
    assert (workspace / "dig.yaml").read_text() == CASCADE
    taken = dug("sweep", *options, "--take", "mask(after=3)", "--yes")
    assert "written: other.yaml" in taken.err
    assert "after=3" in (workspace / "other.yaml").read_text() or "after: 3" in (workspace / "other.yaml").read_text()
    spelled = dug("sweep", "-s", "fidelity:truncate", "--apply", "other.yaml", "--take", "fidelity:truncate", "--yes")
    assert "strategy: fidelity(mode=truncate)" in (workspace / "other.yaml").read_text(), spelled.err
    none = dug("sweep", *options, "--take", "mask(after=9)")
    assert (none.code, "'mask(after=9)' is none of the strategies tried (--strategy tries it)" in none.err) == (2, True)
    own = dug("sweep", *options, "--take", "file")
    assert (own.code, "is what the file says already: nothing else costs less; --take names" in own.err) == (2, True)
    mixed = dug("sweep", "--strategy", "mask(after=1..3)", "--apply", "mask(after=2)")
    assert "'mask(after=2)' is a strategy, not a file (--apply FILE names the cascade file, --take the" in mixed.err
    assert dug("sweep", "--strategy", "mask(after=1)", "--yes").code == 2


def test_a_strategy_tried_on_an_imported_run_goes_into_the_file_that_is_named(dug: Cli, workspace: Path) -> None:
    said = [{"role": "user", "content": "Look."}]
    for i in range(5):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        said.append({"role": "assistant", "tool_calls": [call]})  # type: ignore[dict-item]
        said.append({"role": "tool", "tool_call_id": f"c{i}", "content": "fact " * 300})
    (workspace / "chat.json").write_text(json.dumps([*said, {"role": "assistant", "content": "Done."}]))
    (run,) = dug("import", "chat.json", "--model", "openai/gpt-4.1-mini", "--json").json
    name = run["session_id"]
    options = ("diff", name, "--strategies", "file", "mask(after=2)", "--apply", "B")
    refused = dug(*options, "--yes")
    assert refused.code == 2
    assert (
        "this run was imported from chat.json, which is not a cascade: name the file to write by --into" in refused.err
    )
    written = dug(*options, "--into", "dig.yaml", "--yes")
    assert "It goes into the phase that asks a model: dig." in written.out
    assert (written.code, "written: dig.yaml" in written.err) == (0, True), written.err
    assert (workspace / "dig.yaml").read_text() != CASCADE
    (listed,) = (one for one in dug("runs", "--json").json if one["session_id"] == name)
    assert (listed["models"], listed["model"]) == (["openai/gpt-4.1-mini"], "openai/gpt-4.1-mini")
    offline = next(one for one in dug("runs", "--json").json if one["session_id"] == "one")
    assert (offline["models"], offline["model"]) == (["offline"], "openai/gpt-4.1-mini")
    assert "openai/gpt-4.1-mini" in dug("runs").out
    rows = dug("sql", "SELECT DISTINCT model FROM runs WHERE imported", "--json").json
    assert rows == [{"model": "openai/gpt-4.1-mini"}]
    assert dug("show", name, "--json").json["models"] == ["openai/gpt-4.1-mini"]


def test_a_run_that_cannot_be_loaded_takes_itself_out_of_a_sweep_by_its_name(dug: Cli, workspace: Path) -> None:
    assert dug("run", "dig.yaml", "--session", "lost").code == 0
    journal = next(
        file
        for file in (workspace / ".workbench" / "journal").glob("**/*.jsonl")
        if '"lost"' in file.read_text().partition("\n")[0] or '"session_id": "lost"' in file.read_text()[:4000]
    )
    journal.write_text("")
    found = dug("sweep", "one", journal.parent.name, "--strategy", "mask(after=1)", "--json")
    assert found.code == 0, found.err
    assert found.json["runs"] == ["one"]
    assert len(found.json["excluded"]) == 1


def test_prices_and_the_providers_rule_can_be_others_and_unknown_is_never_nothing(dug: Cli, workspace: Path) -> None:
    def cost(*options: str) -> Any:
        return dug("diff", "--strategies", "whole", "masked", "--json", *options).json["a"]

    claude = cost("--provider", "anthropic/claude-sonnet-4.5")
    assert claude["totals"]["written"] > 0
    assert claude["totals"]["cost"] > cost()["totals"]["cost"]
    unpriced = cost("--provider", "anthropic")
    assert unpriced["totals"]["written"] > 0
    assert unpriced["totals"]["unknown"] == 0, "what is written without a price of its own costs what fresh tokens do"
    (workspace / "p.yaml").write_text("openai/gpt-4.1-mini: {input: 4, output: 16, cache_read: 1}\n")
    assert cost("--prices", "p.yaml")["totals"]["cost"] == pytest.approx(10 * cost()["totals"]["cost"])


@pytest.mark.parametrize(("model", "cached"), [("anthropic/claude-sonnet-4-5", False), ("openai/gpt-4.1", True)])
def test_requests_without_marks_break_no_cache_that_they_did_not_have(
    cli: Cli, workspace: Path, model: str, cached: bool
) -> None:
    """At the provider that answered; at another one, requests are marked as the workbench would mark them."""
    said: list[Any] = [{"role": "user", "content": "Read it. " * 900}]
    for i in range(5):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        said += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": "word " * 400},
        ]
    (workspace / "chat.json").write_text(json.dumps([*said, {"role": "assistant", "content": "Done."}]))
    (run,) = cli("import", "chat.json", "--model", model, "--json").json
    options = (run["session_id"], "--strategies", "file", "mask(after=1)", "--json")
    found = cli("diff", *options).json
    assert [found[side]["totals"]["cached"] > 0 for side in "ab"] == [cached, cached]
    broken = [call["b"]["break_even"]["rewritten"] for call in found["calls"] if call["b"]["break_even"]]
    assert broken
    assert all((tokens > 0) == cached for tokens in broken)
    supposed = cli("diff", *options, "--provider", "anthropic").json["a"]["totals"]
    assert (supposed["cached"] > 0) == cached


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one",), "name two runs, or one with --strategies A B"),
        (("one", "one", "-s", "file", "snowball"), "with --strategies, name one run"),
        (("one", "-s", "whole", "mask(afer=2)"), "mask has no parameter 'afer'"),
        (("one", "-s", "whole", "masked", "--provider", "nobody"), "no provider is called 'nobody' (known: anthropic"),
        (("one", "-s", "whole", "masked", "--provider", "anthropc/x"), "'anthropc' (did you mean 'anthropic/x'?)"),
        (("one", "-s", "whole", "masked", "--provider", "openai/gtp-5"), "(did you mean 'openai/gpt-5'?)"),
        (("one", "-s", "whole", "masked", "--provider", "cerebras"), "no cache rule is known for 'cerebras'"),
        (("one", "-s", "whole", "masked", "--prices", "gone.yaml"), "gone.yaml: error: cannot be read"),
        (("one", "one", "--changes"), "--changes goes with one run alone"),
        (("one", "one", "--apply", "A"), "--apply needs --strategies"),
        (("one", "-s", "file", "whole", "--apply", "A"), "'file' is what the file says already"),
    ],
)
def test_a_mistake_is_named_in_one_line(dug: Cli, arguments: tuple[str, ...], message: str) -> None:
    ended = dug("diff", *arguments)
    assert ended.code == 2
    assert message in ended.err.splitlines()[-1]


def test_prices_that_are_none_are_named_with_their_file(dug: Cli, workspace: Path) -> None:
    for text, message in (
        ("a: [", "not valid YAML"),
        ("a: 2026-99-99", "not valid YAML: month must be in 1..12"),
        ("a: {in: 1}", "no price 'in'"),
        ("a: {input: x}", "per million"),
    ):
        (workspace / "p.yaml").write_text(text)
        ended = run_cli("sweep", "--prices", "p.yaml")
        assert ended.code == 2
        assert ended.err.startswith("p.yaml: error: ")
        assert message in ended.err


def test_the_lifetime_of_the_cache_can_be_varied_and_the_gaps_are_the_records(dug: Cli) -> None:
    def cached(*options: str) -> int:
        return int(dug("diff", "--strategies", "whole", "masked", "--json", *options).json["a"]["totals"]["cached"])

    assert cached("--cache-ttl", "1h") == cached() > 0
    assert cached("--cache-ttl", "0s") < cached()
    assert "kept for 90 seconds" in dug("diff", "--strategies", "whole", "masked", "--cache-ttl", "90s").out
    hour, none = (dug("context", "--cache-ttl", lifetime, "--json") for lifetime in ("1h", "0s"))
    assert [sum(call["predicted"]["cached"] for call in shown.json) > 0 for shown in (hour, none)] == [True, False]
    assert none.err.startswith("what-if over ")
    refused = dug("diff", "--strategies", "whole", "masked", "--cache-ttl", "soon")
    assert (refused.code, "'soon' is not a time: write 90s, 5m or 1h" in refused.err) == (2, True)
