"""Finds where litellm sends a model's requests, and with which key: read from a request that litellm makes and that is
never sent.

So every provider that litellm knows is resolved as litellm resolves it, without a list of our own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from workbench.engine.journal.redact import without_password
from workbench.models import calls
from workbench.models.library import declared, imported
from workbench.models.names import NO_KEY, NoKey, Resolved
from workbench.models.tape import NotSent, Tape

LONGEST = 20.0
"""Seconds until a provider that looks for keys elsewhere (a file, a service of the machine) is given up."""
_SECRET = re.compile(r".*(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)S?(_.*)?|.*_PAT")
_OPENAI_HOST = "api.openai.com"
_OF_OPENAI = frozenset({"openai", "text-completion-openai", "custom_openai"})
_ASKS_FOR_BASE = re.compile(r"api[_ ]base|base url", re.IGNORECASE)
_LOGGED_IN_BY_HAND = frozenset({"github_copilot", "chatgpt"})
"""Providers for which litellm opens a login in a browser at the first request."""
_ISSUED = 24
"""Characters that a token has at least which somebody issued; texts that stand for a missing key are shorter."""
_TELLING = 12
"""Characters from which on a key is known wherever it stands; a shorter one only as a whole."""


async def located(resolved: Resolved, env: Mapping[str, str], *, embeds: bool = False) -> Resolved:
    """The same with the address, the variables and the key that litellm uses, for completions or embeddings.

    A key is required unless the address is of this machine or this network, or a variable sets it: such servers often
    need none. Raises NoKey, with what to set.
    """
    if resolved.base_url:
        direct = resolved.provider.id == "openai"
        if not direct:
            _, _, direct = await _looked_at(resolved, env, NO_KEY, embeds)
        return replace(resolved, address=without_password(resolved.base_url), direct=direct)
    if resolved.provider.id in _LOGGED_IN_BY_HAND:
        raise NoKey(f"'{resolved.name}' needs a login in a browser, for which no run can wait")
    tape, words, direct = await _looked_at(resolved, env, None, embeds)
    key = _key_in(tape, env, resolved.provider.id)
    credentials = _has_credentials(tape, env)
    if not key and not credentials and (handed := _handed(resolved, env)) != resolved:
        shown, more, way = await _looked_at(handed, env, handed.sent_key, embeds)
        if shown.url is not None:
            resolved, tape, words, direct = handed, shown, more, way
            key = handed.key_variable
    elif not key and not credentials:
        shown, more, way = await _looked_at(resolved, env, NO_KEY, embeds)
        tape, words, direct = (shown, more, way) if shown.url is not None else (tape, words, direct)
    if tape.url is None:
        raise NoKey(_missing(resolved, env, words))
    if tape.url.host == _OPENAI_HOST and resolved.provider.id not in _OF_OPENAI:
        return await located(_where_it_listens(resolved), env, embeds=embeds)
    base_variable, base = _base_of(str(tape.url), env)
    if not key and not credentials and not base_variable and not is_near(tape.url.host):
        raise NoKey(_missing(resolved, env, words))
    return replace(
        resolved,
        address=without_password(base or f"{tape.url.scheme}://{tape.url.netloc.decode('ascii')}"),
        base_variable=base_variable,
        key_variable=key,
        api_key=env.get(key, "").strip() if key else "",
        keyless=not key and not credentials,
        direct=direct,
    )


def _handed(resolved: Resolved, env: Mapping[str, str]) -> Resolved:
    """With the key and the address from the variables named after the provider, if they are set: for some providers
    litellm reads others, or none.
    """
    stem = _stem(resolved.provider.id)
    base, variable = env.get(f"{stem}_API_BASE", "").strip(), f"{stem}_API_KEY"
    key = env.get(variable, "").strip() if variable != "OPENAI_API_KEY" else ""
    if not key and not base:
        return resolved
    return replace(resolved, base_url=base, api_key=key, key_variable=variable if key else "", handed=True)


def _where_it_listens(resolved: Resolved) -> Resolved:
    """With the address where a server of its kind listens: litellm would ask OpenAI. Raises NoKey if none is known."""
    if not resolved.provider.listens:
        name = f"{_stem(resolved.provider.id)}_API_BASE"
        raise NoKey(f"'{resolved.name}' says nowhere which server answers: set {name} (or give --base-url)", "no_model")
    return replace(resolved, base_url=resolved.provider.listens, keyless=True)


def is_near(host: str) -> bool:
    """Returns whether a host is this machine or of a private network: there a model need not have a key."""
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal", ".lan", ".home"))
    return address.is_private or address.is_loopback or address.is_link_local


_threads = ThreadPoolExecutor(thread_name_prefix="destinations")
"""Not those of the event loop: who waits here for the variables of a project would take the threads in which litellm
makes the requests of the calls that have them, and none would go on."""


async def _looked_at(
    resolved: Resolved, env: Mapping[str, str], key: str | None, embeds: bool
) -> tuple[Tape, str, bool]:
    """The tape of the unsent request, litellm's error if it made none, and whether it used its own route."""
    words = ""
    for direct in (True, False):
        tape = Tape(held=True)
        loop = asyncio.get_running_loop()
        words = await loop.run_in_executor(_threads, _held, resolved, env, key, direct, embeds, tape) or words
        if tape.url is not None:
            break
    return tape, words, direct


def _held(resolved: Resolved, env: Mapping[str, str], key: str | None, direct: bool, embeds: bool, tape: Tape) -> str:
    """Make a request with a tape that holds it; what litellm said. In a thread of its own: some providers look for keys
    in files and at services of the machine, and wait for them."""
    model: dict[str, Any] = {
        "model": resolved.litellm_name,
        "api_key": key,
        "api_base": resolved.base_url or None,
    }
    if embeds:
        request = calls.embedding(env, tape, direct=direct, input=["a"], **model)
    else:
        messages = [{"role": "user", "content": "a"}]
        request = calls.completion(env, tape, direct=direct, messages=messages, stream=True, **model)
    try:
        asyncio.run(asyncio.wait_for(request, LONGEST))
    except NotSent:
        return ""
    except Exception as error:  # noqa: BLE001 - litellm raises what it likes
        return str(error)
    return ""


def _key_in(tape: Tape, env: Mapping[str, str], provider: str) -> str:
    """The variable whose value the request carries; empty if it carries none.

    litellm takes OPENAI_API_KEY if a provider's own key is missing; that key belongs to another provider and counts as
    none.
    """
    if tape.url is None:
        return ""
    headers = list(tape.request_headers.values())
    whole = {part for value in headers for part in (value, *value.split()[1:])}
    anywhere = "\n".join([*headers, tape.url.query.decode("ascii", "replace")])
    for name, value in env.items():
        own = name != "OPENAI_API_KEY" or provider in _OF_OPENAI
        stands = value in whole or (len(value) >= _TELLING and value in anywhere)
        if value.strip() and own and stands and _SECRET.fullmatch(name):
            return name
    return ""


def _has_credentials(tape: Tape, env: Mapping[str, str]) -> bool:
    """Whether the request carries what litellm got with credentials of a file or a service (Google Cloud, AWS profiles,
    IBM Cloud): a token that no variable holds."""
    token = tape.request_headers.get("authorization", "").rpartition(" ")[2]
    return len(token) >= _ISSUED and not any(token in value for value in env.values())


def _base_of(url: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The variable that sets the address of a request, and the address; empty texts if none does."""
    for name, value in env.items():
        if value.startswith(("http://", "https://")) and urlsplit(value).netloc == urlsplit(url).netloc:
            return name, value
    return "", ""


def _missing(resolved: Resolved, env: Mapping[str, str], words: str) -> str:
    """That there is no key, with the variables that would do; or why litellm could make no request."""
    names = list(dict.fromkeys(_variables(resolved)))
    absent = [name for name in names if not env.get(name, "").strip()]
    base = f"{_stem(resolved.provider.id)}_API_BASE"
    if not absent and _ASKS_FOR_BASE.search(words) and not env.get(base):
        absent = [base]
    if not absent or words == calls.ONLY_TEXTS:
        return f"'{resolved.name}' cannot be asked: {_first_sentence(words) or 'litellm has no way to it'}"
    one_will_do = all(name.endswith(("_KEY", "_TOKEN")) for name in absent) and "AWS_ACCESS_KEY_ID" not in absent
    setting = (" or " if one_will_do else " and ").join(absent)
    if resolved.router:
        setting += f" or {resolved.router}"
    return f"no key for '{resolved.name}': set {setting} (--model offline needs none)"


def _variables(resolved: Resolved) -> Iterator[str]:
    """The variables in which litellm looks for what a provider needs, as far as it tells, else what it calls them."""
    missing = imported().validate_environment(resolved.litellm_name)["missing_keys"]
    yield from missing
    if not missing:
        one = declared(resolved.provider.id)
        yield one.api_key_env if one is not None else f"{_stem(resolved.provider.id)}_API_KEY"


def _stem(provider: str) -> str:
    return re.sub(r"\W", "_", provider).upper()


def _first_sentence(words: str) -> str:
    """The first line of what litellm said, without the names of its exceptions."""
    line = words.strip().partition("\n")[0]
    return re.sub(r"^(?:\s*(?:litellm\.)?\w+(?:Error|Exception)\s*[:-]\s*)+", "", line)[:300]
