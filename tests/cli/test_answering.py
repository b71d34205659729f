"""Who answers: what a person names is asked, nothing is offline unasked, and all of it is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Cli
from tests.support.dialects import Reply
from tests.support.faults import FAULTS
from tests.support.loopback import Handler, Loopback, Received
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.engine.journal.unanswered import Unanswered

ONE = "cascade_id: one\nphases: [{name: p, instructions: Say it.}]\n"
OLLAMA = {"prompt_eval_count": 11, "eval_count": 5}


@pytest.fixture
def one(workspace: Path, cli: Cli) -> Path:
    (workspace / "one.yaml").write_text(ONE)
    return workspace


def test_a_server_without_a_key_is_asked_when_it_is_named(cli: Cli, one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback([Reply("From the llama.", usage=OLLAMA)]) as provider:
        monkeypatch.setenv("OLLAMA_API_BASE", provider.url.removesuffix("/v1"))
        ran = cli("run", "one.yaml", "-m", "ollama/llama3")

        assert (ran.code, ran.out) == (0, "From the llama.\n")
        assert [request.path for request in provider.requests if request.path != "/api/show"] == ["/api/chat"]


def test_what_is_named_is_asked_though_replies_lie_there(cli: Cli, workspace: Path) -> None:
    ran = cli("run", "greet.yaml", "-m", "openai/gpt-4o")

    assert ran.code == 4
    assert "no key for 'openai/gpt-4o': set OPENAI_API_KEY or OPENROUTER_API_KEY" in ran.err


def test_without_a_model_and_without_replies_the_error_says_what_to_set(cli: Cli, one: Path) -> None:
    ran = cli("run", "one.yaml")

    assert ran.code == 4
    assert "no model is named, and OPENROUTER_API_KEY is not set" in ran.err
    assert "offline" not in ran.err.splitlines()[0]


def test_replies_answer_where_no_model_can_be_asked_and_the_run_says_so(cli: Cli, workspace: Path) -> None:
    ran = cli("run", "greet.yaml", "--session", "s")
    assert (ran.code, ran.out) == (0, "Hello, Ada.\n")
    assert ran.err.splitlines()[0].startswith("model offline: scripted replies, no provider is called")

    started = cli("run", "greet.yaml", "--json").lines[0]
    assert started["data"]["ports"] == {"model": "offline", "why": "no provider key is set"}


def test_a_trusted_dotenv_takes_a_run_online(cli: Cli, one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one / ".env").write_text("LITELLM_PROXY_API_KEY=key-of-the-gateway\n")
    with Loopback([Reply("Through the gateway.")]) as provider:
        monkeypatch.setenv("LITELLM_PROXY_API_BASE", provider.url)
        for trusted in (False, True):
            if trusted:
                assert cli("trust", "--yes").code == 0
            ran = cli("run", "one.yaml", "-m", "litellm_proxy/m")
            assert ran.code == 0, ran.err
        keys = [request.headers["authorization"] for request in provider.requests]
    assert "key-of-the-gateway" not in keys[0]
    assert keys[1] == "Bearer key-of-the-gateway"


def test_a_refused_connection_names_the_address(cli: Cli, one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("WORKBENCH_TRIES", "1")
    ran = cli("run", "one.yaml", "-m", "openai/m")

    assert ran.code == 4
    assert "no connection to http://127.0.0.1:9/v1: Connection refused" in ran.err


@pytest.mark.parametrize("command", [("config", "show"), ("doctor",)])
def test_the_key_and_the_address_in_force_are_named_without_values(
    cli: Cli, workspace: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "the-value-of-the-key")
    monkeypatch.setenv("WORKBENCH_DEFAULT_MODEL", "gpt-4o")
    said = cli(*command)
    text = " ".join((said.out + said.err).split())

    assert "gpt-4o, asked at http://127.0.0.1:9/v1 (OPENAI_BASE_URL), key: OPENAI_API_KEY" in text
    assert "the-value-of-the-key" not in text


def test_config_show_has_what_is_in_force_in_json(cli: Cli, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_BASE_URL", "http://me:secret@127.0.0.1:9/v1")
    monkeypatch.setenv("WORKBENCH_DEFAULT_MODEL", "m")
    assert cli("config", "show", "--json").json["in_force"] == {
        "model": "m",
        "provider": "OpenAI",
        "address": "http://127.0.0.1:9/v1",
        "address_from": "environment WORKBENCH_BASE_URL",
        "key": "none (WORKBENCH_API_KEY is not set)",
    }


def test_a_cost_that_is_no_bill_keeps_its_sign_in_the_page(cli: Cli, one: Path) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000, "total_tokens": 1_100_000}
    with Loopback([Reply("Hello.", usage=usage)]) as provider:
        assert cli("run", "one.yaml", "-m", "gpt-4o", "--base-url", provider.url, "--session", "s").code == 0
    page = cli("export", "s", "--as", "html").out

    assert page.count("~$3.5000") == 4, "of the run, in the tree of its phase and its call, and at the call"


def test_one_call_has_one_number_of_cached_tokens(cli: Cli, workspace: Path) -> None:
    (workspace / "two.yaml").write_text(
        "cascade_id: two\nphases:\n  - name: p\n    instructions: '" + "Say it all again. " * 700 + "'\n"
        "    rules: {max_turns: 2}\n"
    )
    usage = {"prompt_tokens": 9_000, "completion_tokens": 5, "total_tokens": 9_005}
    with Loopback([Reply("Hello.", usage=usage)]) as provider:
        ran = cli("run", "two.yaml", "-m", "gpt-4o", "--base-url", provider.url, "--session", "s")
        assert ran.code == 0, ran.err
    shown = cli("context", "s", "--at", "p:2").out
    cached = re.search(r"cached (\S+)", shown)
    assert cached is not None
    assert f"~{cached[1].strip('~≈')}" in cli("show", "s", "--calls").out + cli("show", "s").out


@pytest.mark.parametrize("model", ["429", "500"])
def test_a_wait_without_end_leaves_a_run_that_goes_on(
    cli: Cli, one: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    def forever(handler: Handler, request: Received) -> None:
        handler.error(int(model), "Later", None, {"Retry-After": "1e400"})

    monkeypatch.setitem(FAULTS, model, forever)
    monkeypatch.setenv("WORKBENCH_TRIES", "1")
    with Loopback([Reply("Hello.")]) as provider:
        ran = cli("run", "one.yaml", "-m", f"{model}@1", "--base-url", provider.url, "--session", "s")
        assert (ran.code, "unexpected" in ran.err) == (4, False)
        again = cli("resume", "s", "--base-url", provider.url)
        assert again.out == "Hello.\n"
        assert "under way" not in again.err, "the try before the resume had ended"


def test_tokens_of_a_try_that_broke_off_are_said_and_in_no_sum(
    cli: Cli, one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(handler: Handler, request: Received) -> None:
        handler.begin_stream()
        piece = {"index": 0, "delta": {"content": "The first half"}, "finish_reason": None}
        usage = {"prompt_tokens": 1_000, "completion_tokens": 3, "total_tokens": 1_003}
        handler.event({"id": "c", "model": request.model, "choices": [piece], "usage": usage})
        handler.hang_up()

    monkeypatch.setitem(FAULTS, "cut", cut)
    monkeypatch.setenv("WORKBENCH_BACKOFF", "0")
    with Loopback([Reply("Hello.")]) as provider:
        ran = cli("run", "one.yaml", "-m", "cut@1", "--base-url", provider.url, "--session", "s")
    assert ran.out == "Hello.\n"
    said = "not in the sums: 1 failed try: 1,000 tokens in, 3 out reported, unpriced"
    assert said in ran.err
    assert said in cli("show", "s").out


def test_a_call_that_was_under_way_at_a_stop_may_be_billed_twice() -> None:
    unanswered, place = Unanswered(), Place("", "p", 1, 1, 1, 1)
    for seq, kind in enumerate(("call_started", "run_resumed", "call_finished", "run_resumed")):
        unanswered.take(Event(seq, "2026-01-01T00:00:00Z", "r", kind, place, {}))
    assert str(unanswered) == (
        "not in the sums: 1 call was under way at a stop and sent again: the provider may bill both"
    )


def test_a_call_that_failed_before_a_resume_was_not_under_way(cli: Cli, one: Path) -> None:
    replies = one / "one.replies.yaml"
    replies.write_text("replies: {}\n")
    assert cli("run", "one.yaml", "-m", "offline", "--session", "s").code == 1
    replies.write_text("replies: {p: [{text: Hello.}]}\n")
    ran = cli("resume", "s", "-m", "offline")
    assert (ran.out, "not in the sums" in ran.err) == ("Hello.\n", False)


def test_failed_tries_that_report_tokens_are_billed_beside_the_sums() -> None:
    unanswered, place = Unanswered(), Place("", "p", 1, 1, 1, 1)

    def fail(**data: Any) -> str:
        unanswered.take(Event(1, "2026-01-01T00:00:00Z", "r", "call_failed", place, data))
        return str(unanswered)

    assert fail() == ""
    usage = {"input": 1200, "output": 30}
    assert fail(usage=usage, cost=0.02) == "not in the sums: 1 failed try: 1,200 tokens in, 30 out reported, ~$0.0200"
    words = "not in the sums: 2 failed tries: 2,400 tokens in, 60 out reported, ~$0.0700"
    assert fail(usage=usage, cost=0.05) == words
    assert fail(usage=usage).endswith("3,600 tokens in, 90 out reported, unpriced")
    assert unanswered.to_json() == {"tries": 3, "tokens_in": 3600, "tokens_out": 90, "cost": None, "again": 0}
