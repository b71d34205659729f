"""The playground on the command line: a call again, edited or not, by several models; nothing of the run changes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Cli
from tests.support.loopback import Loopback, Received, Reply

PRICES = {"prices": {"openai/cheap": {"input": 1, "output": 2}, "openai/dear": {"input": 1000, "output": 2000}}}


def said(request: Received) -> Reply:
    """Who answers, and the last message that it was sent."""
    return Reply(f"{request.model} read: {request.body['messages'][-1]['content']}")


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(said) as server:
        yield server


@pytest.fixture
def stored(cli: Cli, workspace: Path) -> str:
    """A run that scripted replies answered."""
    config = Path(os.environ["WORKBENCH_CONFIG_DIR"])
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.yaml").write_text(json.dumps(PRICES))
    assert cli("run", "greet.yaml", "--session", "s").code == 0
    return "s"


def fingerprint(workspace: Path) -> dict[str, str]:
    """What the journals hold."""
    files = (file for file in (workspace / ".workbench" / "journal").rglob("*") if file.is_file())
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_two_models_answer_beside_each_other_and_nothing_is_written_into_the_run(
    cli: Cli, stored: str, provider: Loopback, workspace: Path
) -> None:
    before = fingerprint(workspace)
    models = ("-m", "openai/cheap", "-m", "openai/dear")
    ended = cli("playground", stored, "--at", "answer:1", "-n", 2, *models, "--base-url", provider.url, "--json")
    assert ended.code == 0, ended.err
    answers = ended.json["answers"]
    assert [(one["model"], one["number"], one["status"]) for one in answers] == [
        ("openai/cheap", 1, "answered"),
        ("openai/cheap", 2, "answered"),
        ("openai/dear", 1, "answered"),
        ("openai/dear", 2, "answered"),
    ]
    assert all("Greet them." in one["text"] for one in answers)
    assert answers[0]["tokens_out"] == 5
    assert answers[0]["cost"] == pytest.approx(11e-6 + 2 * 5e-6)
    assert ended.json["cost"] == pytest.approx(2 * (21e-6 + 21e-3))
    assert {len(request.body["messages"]) for request in provider.requests} == {
        len(provider.requests[0].body["messages"])
    }
    assert fingerprint(workspace) == before


def test_the_request_is_edited_before_it_is_sent_and_an_invalid_one_is_not_sent(
    cli: Cli, stored: str, provider: Loopback
) -> None:
    at = ("playground", stored, "--at", "look:2", "-m", "openai/cheap", "--base-url", provider.url)
    ended = cli(*at, "--edit", "2=Say it in one word.", "--edit", "param.temperature=0", "--json")
    assert ended.code == 0, ended.err
    (request,) = provider.requests
    assert request.body["temperature"] == 0
    assert request.body["messages"][1]["content"] == "Say it in one word."
    for edit, fault in (("add:5:system=x", "rule 4"), ("2= ", "would be blank"), ("drop:99", "no message 99")):
        refused = cli(*at, "--edit", edit)
        assert (refused.code, refused.out) == (2, "")
        assert fault in refused.err
    assert len(provider.requests) == 1


def test_a_budget_that_is_too_small_sends_nothing_and_one_that_is_used_up_sends_no_more(
    cli: Cli, stored: str, provider: Loopback
) -> None:
    at = ("playground", stored, "--at", "answer:1", "--base-url", provider.url)
    refused = cli(*at, "-m", "openai/dear", "-n", 3, "--max-cost", "0.01")
    assert refused.code == 2
    assert "the budget of $0.01 is too small: 3 calls are expected to cost" in refused.err
    unpriced = cli(*at, "-m", "openai/nobody-knows", "--max-cost", "1")
    assert unpriced.code == 2
    assert "no price is known for 'openai/nobody-knows'" in unpriced.err
    assert provider.requests == []


def test_a_call_whose_model_was_not_recorded_needs_one(cli: Cli, workspace: Path, provider: Loopback) -> None:
    said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
    (workspace / "chat.json").write_text(json.dumps(said))
    run = cli("import", "chat.json", "--json").json[0]["session_id"]
    refused = cli("playground", run, "--at", "imported:1", "--base-url", provider.url)
    assert refused.code == 2
    assert "the model of this call is not recorded: name one" in refused.err


def test_a_bill_above_what_was_expected_stops_the_calls_that_follow(cli: Cli, stored: str) -> None:
    usage = {"prompt_tokens": 900_000, "completion_tokens": 5, "total_tokens": 900_005}
    with Loopback([Reply("ok", usage=usage)]) as provider:
        models = ("-m", "openai/cheap", "--base-url", provider.url)
        ended = cli("playground", stored, "--at", "answer:1", "-n", 8, *models, "--max-cost", "0.05", "--json")
        answers = ended.json["answers"]
        assert {one["status"] for one in answers} == {"answered", "unsent"}
        assert len(provider.requests) == sum(one["status"] == "answered" for one in answers) <= 4
        assert "the budget of $0.05 is used up" in answers[-1]["reason"]


def test_a_model_that_is_not_there_says_so_beside_the_others_that_answer(
    cli: Cli, stored: str, provider: Loopback
) -> None:
    models = ("-m", "openai/404", "-m", "openai/cheap", "--base-url", provider.url)
    ended = cli("playground", stored, "--at", "answer:1", *models)
    assert ended.code == 0
    assert "404: The model does not exist" in ended.out
    assert "openai/cheap read: Greet them." in ended.out
    assert "1 of 2 answered" in ended.out
    alone = cli("playground", stored, "--at", "answer:1", "-m", "openai/404", "--base-url", provider.url)
    assert alone.code == 1
    assert "Traceback" not in alone.err


def test_scripted_replies_answer_offline_for_nothing(cli: Cli, stored: str) -> None:
    ended = cli("playground", stored, "--at", "answer:1", "-n", 2, "--max-cost", "0", "--json")
    assert ended.code == 0, ended.err
    assert [one["text"] for one in ended.json["answers"]] == ["Hello, Ada."] * 2
    assert ended.json["cost"] == 0


def test_calls_of_tools_are_shown_and_none_runs(cli: Cli, stored: str, workspace: Path) -> None:
    ended = cli("playground", stored, "--at", "look:1")
    assert '"path": "notes.txt"' in ended.out
    assert "[Tool result" not in ended.out


def test_a_place_that_never_ran_is_a_usage_error_with_the_places_that_did(cli: Cli, stored: str) -> None:
    ended = cli("playground", stored, "--at", "answer:7")
    assert ended.code == 2
    assert "answer came to turn 1" in ended.err
