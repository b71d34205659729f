"""The providers whose clients can be sent to the proxy: where they are, and which variables lead a client elsewhere.

Sources: the READMEs and source of the SDKs that read each variable (openai, anthropic, google-genai, ollama, litellm).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct


class Provider(Struct, frozen=True):
    """One API, as clients reach it."""

    name: str
    prefix: str
    """The path under which the proxy stands for it."""
    address: str
    """Where requests go, unless a variable or an option says otherwise."""
    variables: tuple[str, ...]
    """That clients read for its address; the first one that is set says where it is now."""
    keys: tuple[str, ...] = ()
    """Variables of its key: clients refuse to start without one."""


PROVIDERS = (
    Provider(
        "openai", "openai/v1", "https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE"), ("OPENAI_API_KEY",)
    ),
    Provider(
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
        ("ANTHROPIC_API_KEY",),
    ),
    Provider(
        "gemini",
        "gemini",
        "https://generativelanguage.googleapis.com",
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"),
        ("GEMINI_API_KEY",),
    ),
    Provider(
        "openrouter",
        "openrouter/api/v1",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_BASE_URL", "OPENROUTER_API_BASE"),
        ("OPENROUTER_API_KEY",),
    ),
    Provider("ollama", "ollama", "http://127.0.0.1:11434", ("OLLAMA_HOST", "OLLAMA_API_BASE")),
)
BY_NAME: Mapping[str, Provider] = {one.name: one for one in PROVIDERS}


class BadAddress(Exception):
    """An address of a provider that nothing can be sent to; the message names it and what is wrong."""


def addresses(environment: Mapping[str, str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns where the requests of each provider go: as given by name, else as the environment says, else to the
    provider.

    Raises BadAddress.
    """
    asked = dict(given or {})
    if unknown := sorted(set(asked) - set(BY_NAME)):
        raise BadAddress(f"'{unknown[0]}' is not a provider here; there are {', '.join(BY_NAME)}")
    found: dict[str, str] = {}
    for one in PROVIDERS:
        variable = next((name for name in one.variables if environment.get(name)), "")
        said = asked.get(one.name) or environment.get(variable, "") or one.address
        where = f"--upstream {one.name}=" if one.name in asked else variable
        found[one.name] = _address(said, where)
    return found


def elsewhere(where: Mapping[str, str]) -> dict[str, str]:
    """Returns those of the addresses of providers that are not the providers' own, without a password."""
    found: dict[str, str] = {}
    for name, address in where.items():
        if address != BY_NAME[name].address:
            parts = urlsplit(address)
            found[name] = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return found


def _address(text: str, where: str) -> str:
    """An address with its scheme and without a slash at the end, as OLLAMA_HOST may be a host alone."""
    full = (text if "://" in text else f"http://{text}").rstrip("/")
    try:
        parts = urlsplit(full)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    if not fine:
        raise BadAddress(f"{where}: '{text[:80]}' is not the address of a server; write http://HOST:PORT/PATH")
    return full


def client_variables(base: str) -> dict[str, str]:
    """The variables that lead the clients of all providers to a proxy at ``base``."""
    return {name: f"{base}/{one.prefix}" for one in PROVIDERS for name in one.variables}


def split_path(path: str) -> tuple[Provider, str] | None:
    """The provider that a path of the proxy stands for, and the rest of the path; None where it stands for none."""
    path = path.lstrip("/")
    for one in PROVIDERS:
        if path == one.prefix or path.startswith(f"{one.prefix}/"):
            return one, path[len(one.prefix) :]
    return None
