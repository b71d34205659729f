"""Finds the provider that answers a model name."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import asdict

from workbench.engine.journal.redact import without_password
from workbench.engine.model_name import OFFLINE, split_effort
from workbench.models.library import is_provider, provider_of
from workbench.models.providers import BY_ID, Provider, named, slug, split

_OWN_KEY = "WORKBENCH_API_KEY"
_ROUTER = BY_ID["openrouter"]
ROUTER_KEY = "OPENROUTER_API_KEY"
NO_KEY = "no-key"
"""Sent where no key is known: with an empty one litellm would take OPENAI_API_KEY, and send it to any host."""


class NoKey(Exception):
    """No provider can be reached under a name; the message names the variables that would do.

    ``kind`` is that of the fault: ``authentication``, or ``no_model`` where the name says nothing.
    """

    def __init__(self, message: str, kind: str = "authentication") -> None:
        super().__init__(message)
        self.kind = kind


class Resolved(Struct, frozen=True):
    """How a model name is sent."""

    name: str
    """As the cascade or the settings write it, without the suffix for effort."""
    litellm_name: str
    provider: Provider
    key_variable: str = ""
    """The environment variable that holds the key; empty where none is needed, or before it is looked for."""
    api_key: str = ""
    base_url: str = ""
    """The server that a person named for all models; empty: the provider's own."""
    router: str = ""
    """The variable with whose key somebody else would answer the name."""
    address: str = ""
    """Scheme and host of the server, or its base URL where a variable says it; without a password. Empty: not yet
    looked for."""
    base_variable: str = ""
    """The variable that says the address."""
    keyless: bool = False
    """The server is asked without a key."""
    handed: bool = False
    """litellm is handed the key and the base URL, because it would not find them."""
    direct: bool = True
    """Whether litellm takes its own route, where it has two."""

    def __repr__(self) -> str:
        """Without the key: a repr ends in tracebacks."""
        told = (f"{name}={value!r}" for name, value in asdict(self).items() if name != "api_key")
        return f"Resolved({', '.join(told)})"

    @property
    def where(self) -> str:
        """Who is asked, for messages: the address where a person chose it, else the provider's name."""
        if self.base_url:
            return without_password(self.base_url)
        return self.address if self.address and (self.keyless or self.base_variable) else self.provider.title

    @property
    def sent_key(self) -> str | None:
        """The key that litellm is handed; None where it finds the key itself."""
        if self.base_url or self.keyless or self.handed:
            return self.api_key or NO_KEY
        return None


def resolve(name: str, base_url: str, env: Mapping[str, str]) -> Resolved:
    """With a base URL, the server there. Else the provider that the name says. OpenRouter answers names with its own
    prefix, and those that it writes itself (``google/gemini-2.5-flash``, ``gpt-4o``) where its key is set and none of
    the maker is; a variant such as ``:free`` is its own. ``env`` is the environment over its ``.env``.

    At a base URL the key is taken from the variable of the provider whose host it is, else from WORKBENCH_API_KEY:
    no provider's key goes to a stranger's host. Raises NoKey for a name that says no provider, and where OpenRouter is
    the only one and has no key; whether others have theirs, ``destinations.located`` finds out.
    """
    bare, _ = split_effort(name)
    if base_url:
        return _at(bare, base_url, env)
    prefix, slash, _ = bare.partition("/")
    maker, model = split(bare)
    if maker is _ROUTER:
        return _routed(bare, model, env)
    sold = _sold_as(bare, maker)
    has_router = bool(env.get(ROUTER_KEY, "").strip())
    if maker is not None and not (sold and ":" in bare):
        if not sold or not has_router or _has_own(maker, env):
            return Resolved(bare, f"{maker.id}/{model}", maker, router=ROUTER_KEY if sold else "")
    elif maker is None and slash and is_provider(prefix):
        return Resolved(bare, bare, named(prefix))
    elif maker is None and not slash and (found := provider_of(bare)):
        return Resolved(bare, f"{found}/{bare}", named(found))
    return _routed(bare, sold or bare, env)


def answered_at(name: str, base_url: str, env: Mapping[str, str]) -> str:
    """The provider that answers a name, as far as that can be said without litellm; empty for a server of unknown
    prices, one at an address of the user's own."""
    if base_url:
        return ""
    bare, _ = split_effort(name)
    maker, _ = split(bare)
    if maker is None or maker is _ROUTER:
        return "openrouter" if maker is _ROUTER or env.get(ROUTER_KEY) else bare.partition("/")[0]
    sold = _sold_as(bare, maker)
    if sold and env.get(ROUTER_KEY, "").strip() and (":" in bare or not _has_own(maker, env)):
        return _ROUTER.id
    return "" if any(env.get(f"{stem}{end}") for stem in _stems(maker) for end in _BASES) else maker.id


def may_answer(name: str, env: Mapping[str, str]) -> bool:
    """Returns whether a model may be asked with these variables, as far as that can be said without litellm: a maker's
    with its key or OpenRouter's, a server's of this machine always, any other's where a variable bears its name."""
    bare, _ = split_effort(name)
    maker, _ = split(bare)
    has_router = bool(env.get(ROUTER_KEY, "").strip())
    if maker is _ROUTER:
        return has_router
    if maker is not None:
        return maker.id in _LOCAL or _has_own(maker, env) or (has_router and bool(_sold_as(bare, maker)))
    prefix, slash, _ = bare.partition("/")
    starts = _VARIABLES.get(prefix, (prefix.upper().replace("-", "_"),))
    return has_router or any(slash and variable.startswith(starts) and env[variable] for variable in env)


def may_need_a_key(name: str) -> bool:
    """Returns whether a name is one of a maker that wants a key, or of none that is known."""
    maker, _ = split(split_effort(name)[0])
    return "/" not in name if maker is None else bool(maker.families) or maker is _ROUTER


_LOCAL = frozenset({"ollama_chat", "lm_studio", "hosted_vllm", "xinference"})
_VARIABLES = {
    "bedrock": ("AWS_",),
    "sagemaker": ("AWS_",),
    "vertex_ai": ("VERTEX", "GOOGLE_"),
}
"""How the variables of providers begin that are not named after them."""
_KEYS = ("_API_KEY", "_AUTH_TOKEN", "_TOKEN")
_BASES = ("_API_BASE", "_BASE_URL")


def _has_own(maker: Provider, env: Mapping[str, str]) -> bool:
    """Returns whether a maker has variables of its own, for a key or an address."""
    return any(env.get(f"{stem}{end}", "").strip() for stem in _stems(maker) for end in (*_KEYS, *_BASES))


def _stems(maker: Provider) -> list[str]:
    return [one.upper().replace("-", "_") for one in (maker.id, *maker.aliases)]


def _sold_as(name: str, maker: Provider | None) -> str:
    """The name as OpenRouter writes it, where it may be one of its own; else empty."""
    prefix, slash, _ = name.partition("/")
    if maker is None:
        return name if slash and not is_provider(prefix) else ""
    if not maker.families:
        return ""
    if not slash:
        return slug(maker, name)
    return name if prefix == slug(maker, "").rstrip("/") else ""


def _routed(name: str, model: str, env: Mapping[str, str]) -> Resolved:
    """Through OpenRouter."""
    if "/" not in model:
        raise NoKey(f"'{name}' names no provider that is known (write provider/model, or give a base URL)", "no_model")
    if not env.get(ROUTER_KEY, "").strip():
        raise NoKey(f"no key for '{name}': set {ROUTER_KEY} (--model {OFFLINE} needs none)")
    return Resolved(name, f"openrouter/{model}", _ROUTER)


def _at(name: str, url: str, env: Mapping[str, str]) -> Resolved:
    host = urlsplit(url).hostname or ""
    if host == "openrouter.ai":
        key = env.get(ROUTER_KEY, "").strip()
        if not key:
            raise NoKey(f"no key for '{name}': set {ROUTER_KEY} for {without_password(url)}")
        return Resolved(name, f"openrouter/{name.removeprefix('openrouter/')}", _ROUTER, ROUTER_KEY, key, url)
    variable = "OPENAI_API_KEY" if host == _OPENAI_HOST else _OWN_KEY
    return Resolved(name, f"openai/{name}", BY_ID["openai"], variable, env.get(variable, "").strip(), url)


_OPENAI_HOST = "api.openai.com"
