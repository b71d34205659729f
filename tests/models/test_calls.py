"""Calls through litellm: whose variables it finds, and what is left of them afterwards."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from tests.support.dialects import Reply
from tests.support.loopback import Loopback
from tests.support.waiting import PATIENCE
from workbench.context.assembly import Request
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.contracts import ModelFault
from workbench.models import calls
from workbench.models.connections import readable_line
from workbench.models.litellm import LiteLLM
from workbench.models.names import resolve
from workbench.models.prices import PriceTable


@pytest.fixture(autouse=True)
def loaded() -> None:
    """litellm's import leaves variables of its own, and so does its first call."""
    calls.rehearse()


def model_of(env: dict[str, str]) -> LiteLLM:
    return LiteLLM(lambda name: resolve(name, "", env), PriceTable(), env=env, timeout_s=PATIENCE)


def test_calls_at_once_find_the_keys_of_their_own_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "of-the-process")
    before = dict(os.environ)

    async def scenario(url: str) -> None:
        address = {"DEEPSEEK_API_BASE": url}
        models = [model_of({**address, "DEEPSEEK_API_KEY": f"key-of-project-{n}"}) for n in (1, 2, 3)]
        requests = [Request("deepseek/m", {}, (), (Message("user", f"call {n}"),), f"{n}") for n in range(4)]
        asked = [one.complete(request, Place(), {}, lambda text: None) for one in models for request in requests]
        await asyncio.gather(*asked)
        await models[0].aclose()

    with Loopback([Reply("ok")]) as provider:
        asyncio.run(scenario(provider.url))
        keys = sorted(request.headers["authorization"] for request in provider.requests)

    assert keys == sorted(f"Bearer key-of-project-{n}" for n in (1, 2, 3) for _ in range(4))
    assert dict(os.environ) == before


def test_after_a_call_that_fails_the_process_has_its_variables_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "of-the-process")
    before = dict(os.environ)

    async def scenario(url: str) -> None:
        model = model_of({"DEEPSEEK_API_BASE": url, "DEEPSEEK_API_KEY": "another-key"})
        request = Request("deepseek/500", {"tools": "no such thing"}, (), (Message("user", "hi"),), "d")
        for one in (request, Request("deepseek/500", {}, (), (Message("user", "hi"),), "d")):
            with pytest.raises(ModelFault):
                await model.complete(one, Place(), {}, lambda text: None)
        await model.aclose()

    with Loopback() as provider:
        asyncio.run(scenario(provider.url))
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    "line",
    [
        "data: [DONE]",
        "data:",
        'data: {"choices": [{"delta": {"content": "It says [DONE] twice: [DONE]"}}]}',
        'data: {"usage": {"prompt_tokens": 3, "cost": 0.5, "prompt_tokens_details": {"cached_tokens": 1}}}',
    ],
)
def test_a_line_of_events_says_the_same_as_before(line: str) -> None:
    value, readable = line.removeprefix("data:").strip(), readable_line(line).removeprefix("data:").strip()

    assert readable == value if value in ("", "[DONE]") else json.loads(readable) == json.loads(value)
    assert value == "[DONE]" or "[DONE]" not in readable


def test_usage_that_is_no_count_is_left_out_of_a_line() -> None:
    line = readable_line('data: {"id": "a", "usage": {"prompt_tokens": "many", "completion_tokens": 2}}')

    assert json.loads(line.removeprefix("data:")) == {"id": "a", "usage": {"completion_tokens": 2}}


def test_a_line_that_is_no_json_is_refused() -> None:
    with pytest.raises(json.JSONDecodeError):
        readable_line('data: {"choices": [')
