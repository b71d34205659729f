"""A whole run through the real litellm and a real socket: what was sent, what came back, what must never show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.conftest import Workbench
from tests.support.loopback import Loopback, Reply

USAGE = {
    "prompt_tokens": 1_200,
    "completion_tokens": 30,
    "total_tokens": 1_230,
    "prompt_tokens_details": {"cached_tokens": 1_024},
}
CASCADE = """\
cascade_id: desk
phases:
  - name: look
    instructions: Read notes.txt, then say who wrote it — exactly.
    use_native_tools: NATIVE
    tackle: [read_file]
    rules: {max_turns: 3}
    intra_context: {mask_observations_after: 1, min_masked_size: 10}
    handoffs: [answer]
  - name: answer
    instructions: Greet the author.
    context: {from: [look]}
    handoffs: []
"""
READ = '{"path": "notes.txt"}'
PROMPTED = 'I read it.\n```json\n{"tool": "read_file", "arguments": {"path": "notes.txt"}}\n```'


def script(native: bool) -> Sequence[Reply]:
    """Reads, reads again, says it, greets."""
    reads = Reply("I read it.", [("read_file", READ)], USAGE) if native else Reply(PROMPTED, usage=USAGE)
    return [reads, reads, Reply("Ada wrote it ✓", usage=USAGE), Reply("Hello, Ada.", usage=USAGE)]


@pytest.mark.parametrize("native", [True, False], ids=["native", "prompt"])
def test_a_run_stores_exactly_what_went_over_the_wire(folder: Path, here: Workbench, native: bool) -> None:
    (folder / "desk.yaml").write_text(CASCADE.replace("NATIVE", str(native).lower()))
    (folder / "notes.txt").write_text("Written by Ada.\n" * 5)
    with Loopback(script(native)) as provider:
        ran = here("run", "desk.yaml", "--base-url", provider.url, "-m", "gpt-4o", "--session", "s")
    assert (ran.code, ran.out) == (0, "Hello, Ada.\n"), ran.err
    wire = here("context", "s", "--wire")
    assert wire.out.encode() == b"".join(request.raw + b"\n" for request in provider.requests)
    assert wire.err == ""
    sent = [request.body for request in provider.requests]
    assert [len(body["messages"]) for body in sent] == ([1, 3, 5, 3] if native else [2, 4, 6, 3])
    assert all(("tools" in body) is (native and number < 3) for number, body in enumerate(sent))
    whole = [message for message in sent[2]["messages"] if "Written by Ada.\n" in (message["content"] or "")]
    assert len(whole) == 1, "the older of two equal results is masked"
    calls = [call for phase in here("show", "s", "--json").json["phases"] for call in phase["calls"]]
    for call in calls:
        usage = call["usage"]
        assert (usage["input"], usage["output"], usage["cached"]) == (1_200, 30, 1_024)
        assert call["cost"] == pytest.approx(176 * 2.5e-6 + 1_024 * 1.25e-6 + 30 * 1e-5)


def test_a_fault_is_shown_tried_again_and_stored(folder: Path, here: Workbench) -> None:
    (folder / "one.yaml").write_text("cascade_id: one\nphases: [{name: p, instructions: Say hello.}]\n")
    with Loopback([Reply("Hello.")]) as provider:
        ran = here("run", "one.yaml", "--base-url", provider.url, "-m", "500@1", "--session", "s")
    assert (ran.code, ran.out) == (0, "Hello.\n"), ran.err
    assert "tries again in" in ran.err
    first, second = provider.requests
    assert first.raw == second.raw
    (call,) = here("show", "s", "--json").json["phases"][0]["calls"]
    (failure,) = call["failures"]
    assert failure["error"]["status"] == 500
    assert here("context", "s", "--wire").out.encode() == second.raw + b"\n"


def test_a_secret_leaves_this_machine_in_the_header_alone(folder: Path, here: Workbench) -> None:
    """The model asks for a file that holds the key, repeats it, and the provider repeats it in an error."""
    key = "sk-" + "proj-0123456789abcdefABCDEF" * 2
    (folder / "desk.yaml").write_text(CASCADE.replace("NATIVE", "true"))
    (folder / "notes.txt").write_text(f"OPENAI_API_KEY={key}\n")
    replies = [
        Reply(f"The key is {key}.", [("read_file", READ)]),
        Reply(f"It says {key}", [("read_file", json.dumps({"path": key}))]),
        Reply(key),
    ]
    with Loopback(replies) as provider:
        options = ("--base-url", provider.url, "-m", "gpt-4o", "--session", "s", "--json")
        ran = here("run", "desk.yaml", *options, WORKBENCH_API_KEY=key)
        refused = here("run", "desk.yaml", *options[:3], "401", WORKBENCH_API_KEY=key)
    assert ran.code == 0, ran.err
    assert refused.code == 4
    assert provider.requests[0].headers["authorization"] == f"Bearer {key}"
    said = [ended.out + ended.err for ended in (ran, refused)]
    said += [here(*command).out for command in (("context", "s", "--wire"), ("context", "s", "--text"))]
    said += [request.raw.decode() for request in provider.requests]
    said += [file.read_text("utf-8") for file in folder.glob(".workbench/**/*") if file.is_file()]
    assert len(said) > 10
    assert not [text for text in said if key in text]
    assert any("redacted" in text.lower() for text in said)


def test_what_was_predicted_stands_beside_what_the_provider_reports(folder: Path, here: Workbench) -> None:
    (folder / "desk.yaml").write_text(CASCADE.replace("NATIVE", "false"))
    (folder / "notes.txt").write_text("Written by Ada.\n" * 5)
    usages = [
        {"prompt_tokens": tokens, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": cached}}
        for tokens, cached in ((1_000, 0), (1_300, 512), (1_350, 1_024), (400, 0))
    ]
    replies = [Reply(reply.text, usage=usage) for reply, usage in zip(script(False), usages, strict=True)]
    with Loopback(replies) as provider:
        ran = here("run", "desk.yaml", "--base-url", provider.url, "-m", "acme/scribe", "--session", "s")
    assert ran.code == 0, ran.err
    calls = [call for phase in here("show", "s", "--json").json["phases"] for call in phase["calls"]]
    first, second = calls[0], calls[1]
    assert (first["predicted"]["grade"], first["predicted"]["scale"]) == ("estimate", None)
    assert second["predicted"]["grade"] == "calibrated"
    grown = second["tokens_sent"] - first["tokens_sent"]  # what else the provider counted for the first call stays
    assert second["predicted"]["tokens"] == pytest.approx(1_000 + grown, abs=25)
    assert second["predicted"]["scale"] == pytest.approx(second["predicted"]["tokens"] / second["tokens_sent"])
    assert second["predicted"]["low"] < second["predicted"]["tokens"] < second["predicted"]["high"]
    assert second["residual"]["tokens"] == 1_300 - second["predicted"]["tokens"]
    assert second["residual"]["cached"] == 512 - second["predicted"]["cached"]
    shown = here("context", "s", "--at", "look:2", "--plain").out
    assert f"in ≈{second['predicted']['tokens']:,} to 1,300" in shown
    assert "cached 0 to 512 +512" in shown
    assert "scaled" in shown
