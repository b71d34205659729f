"""Tries every provider that litellm knows against a server of this machine, and writes ``docs/reference/providers.md``.

``python -m scripts.try_providers`` asks for a model of each without any variable, sets what the error names, and asks
again. What then arrives is noted: host, path, the header with the key, and whether the answer is read. Names of hosts
are looked up nowhere: each request goes to the server here. It takes a minute.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from scripts.make_reference import FOLDER, table
from tests.support.loopback import Loopback
from workbench.context.assembly import Request
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.contracts import ModelFault
from workbench.models.calls import send_with
from workbench.models.connections import RecordingClient
from workbench.models.destinations import located
from workbench.models.library import imported
from workbench.models.litellm import LiteLLM
from workbench.models.names import NoKey, resolve
from workbench.models.prices import PriceTable

PAGE = FOLDER / "providers.md"
MODELS = {
    "bedrock": "anthropic.claude-3-haiku-20240307-v1:0",
    "clarifai": "user.app.model",
    "huggingface": "together/org/model",
    "openrouter": "openai/gpt-4o",
    "predibase": "llama-3-8b-instruct",
    "ragflow": "chat/1/model",
}
"""Models of providers that take names of a certain form only."""
ROUTER = "OPENROUTER_API_KEY"
NO_CHAT = "Unmapped LLM provider"
HEAD = """<!-- Made by `python -m scripts.try_providers`; edits here are lost. -->

# Providers

`-m PROVIDER/MODEL` asks that provider, or fails with the variables that it needs; no other provider takes its place.
litellm finds which provider a name means, where it answers and which variable holds its key. `workbench config show`
and `workbench doctor` say which key and which address are used for the model in force, without values.

Names that OpenRouter writes itself (`openai/gpt-4o`, `google/gemini-2.5-flash`, `gpt-4o`) are answered by OpenRouter
where `OPENROUTER_API_KEY` is set and no variable of the maker is. `openrouter/...` is always OpenRouter.

## Tried

Without any variable the error named those of the second column. With them, a request for the provider's host arrived
at a server of the machine that the trial ran on, with the key in the header named here. "Read" says whether the answer
of that server was understood: it speaks the languages of OpenAI, Anthropic, Gemini and Ollama, and some providers have
their own. A variable may also hold another address: one that is named `..._API_BASE` after the provider.

"""


@dataclass
class Trial:
    """What came of asking one provider."""

    provider: str
    variables: list[str] = field(default_factory=list)
    host: str = ""
    path: str = ""
    header: str = ""
    read: bool = False
    reason: str = ""
    """Why nothing could be asked."""


class ToThisMachine(httpx.AsyncBaseTransport):
    """Takes each request to one server, whatever host it is for."""

    def __init__(self, url: str) -> None:
        self._server = httpx.URL(url)
        self._inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(scheme="http", host=self._server.host, port=self._server.port)
        return await self._inner.handle_async_request(request)


def providers() -> list[str]:
    """All that litellm knows by name."""
    from litellm.llms.openai_like.json_loader import JSONProviderRegistry

    known = {str(getattr(one, "value", one)) for one in imported().provider_list}
    return sorted(known | set(JSONProviderRegistry.list_providers()))


def value_of(variable: str, provider: str) -> str:
    """Something that a variable may hold."""
    if re.search(r"_(BASE|URL|HOST|ENDPOINT)$", variable):
        return f"https://{provider.replace('_', '-')}.example"
    if variable.endswith("_VERSION"):
        return "2024-10-21"
    if variable.endswith(("_REGION", "_LOCATION")):
        return "us-east-1"
    return f"value-of-{variable.lower().replace('_', '-')}"


async def tried(provider: str, server: Loopback) -> Trial:
    """Ask a provider, with what its own errors name."""
    name = f"{provider}/{MODELS.get(provider, 'model')}"
    trial, env = Trial(provider), dict[str, str]()
    for _ in range(4):
        try:
            resolved = await located(resolve(name, "", env), env)
            break
        except NoKey as fault:
            trial.reason = str(fault)
            named = re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", str(fault))
            if not (
                fresh := [
                    one for one in named if one not in env and one != "OPENROUTER_API_KEY" * (provider != "openrouter")
                ]
            ):
                return trial
            one_will_do = " or " in str(fault) and "(or give" not in str(fault)
            for variable in fresh[:1] if one_will_do else fresh:
                trial.variables.append(variable)
                env[variable] = value_of(variable, provider)
    else:
        return trial
    before = len(server.requests)
    llm = LiteLLM(lambda name: resolve(name, "", env), PriceTable(), env=env, timeout_s=10.0)
    try:
        request = Request(name, {}, (), (Message("user", "hi"),), name)
        answer = await llm.complete(request, Place(), {}, lambda text: None)
        trial.read = answer.text == "ok"
    except ModelFault as fault:
        trial.reason = fault.message
    finally:
        await llm.aclose()
    if len(server.requests) == before:
        return replace(trial, host="")
    received = server.requests[before]
    carriers = [
        key for key, value in received.headers.items() if any(one in value for one in env.values() if ":" not in one)
    ]
    trial.host, trial.path = received.headers["host"], received.path.partition("?")[0]
    trial.header = ", ".join(key for key in carriers if key != "host")
    if not resolved.key_variable and not trial.header:
        trial.header = "(no key)"
    return trial


async def all_tried(wanted: list[str]) -> list[Trial]:
    with Loopback() as server:
        send_with(RecordingClient(ToThisMachine(server.url)))
        return [await tried(one, server) for one in wanted or providers()]


def page(trials: list[Trial]) -> Iterator[str]:
    """The page, from what was found."""
    asked = [trial for trial in trials if trial.host]
    yield HEAD
    rows = [
        [
            f"`{one.provider}/`",
            ", ".join(f"`{v}`" for v in one.variables) or "none",
            f"`{one.host}`",
            f"`{one.path}`",
            one.header,
            "yes" if one.read else "own language",
        ]
        for one in asked
    ]
    yield table(["prefix", "variables", "host", "path", "header with the key", "read"], rows)
    yield "\n## Not tried\n\nThese need what was not there: a package, a file, a login, an account.\n\n"
    others = [one for one in trials if not one.host and NO_CHAT not in one.reason]
    yield table(["prefix", "reason"], [[f"`{one.provider}/`", one.reason[:160]] for one in others])


def main() -> None:
    for name in list(os.environ):
        if re.search(r"_(KEY|TOKEN|BASE|URL|SECRET)$|^AWS_|^AZURE_|^GOOGLE_", name):
            del os.environ[name]
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    trials = asyncio.run(all_tried(sys.argv[1:]))
    text = "".join(page(trials))
    if sys.argv[1:]:
        print(text)
        return
    Path(PAGE).write_text(text)
    print(f"{sum(bool(one.host) for one in trials)} of {len(trials)} providers were asked; {PAGE}")


if __name__ == "__main__":
    main()
