"""The one door to litellm: its import takes seconds, so it happens late, in a worker thread, and once."""

from __future__ import annotations

import gc
import logging
import os
import threading
import warnings
from inspect import signature
from typing import Any

from workbench.models.encodings import load_encoding
from workbench.models.providers import by_prefix

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "MAX_BASE64_LENGTH_FOR_LOGGING": "0",
}
"""Set before the import: no price map from the network, no ``.env`` read, and no search of each message for images to
shorten in logs."""


class _LateEncoding:
    """The encoding that litellm hands to each of its routes, loaded when one counts with it.

    None does for a provider that states its usage. Building it holds the interpreter's lock for 50 to 80 ms, in which
    the app answers no key.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(load_encoding("cl100k_base"), name)


_import_lock = threading.Lock()
_litellm: Any = None


def imported() -> Any:
    """The module ``litellm``, with its switches set. The first call imports it, which takes one to three seconds.

    The garbage collector is off meanwhile: among so many new objects it would stall all other threads for 150 ms.
    """
    global _litellm
    with _import_lock:
        if _litellm is None:
            os.environ.update(_ENVIRONMENT)
            gc.disable()
            try:
                import litellm  # 2 s, in a thread at the first call
            finally:
                gc.enable()
            gc.freeze()  # None of it becomes garbage: each full collection would look through all of it again.
            # At its first call litellm describes types to pydantic, which warns of some: nothing a user can mend.
            warnings.filterwarnings("ignore", "(Item|Extra item).*`ReadOnly` qualifier", UserWarning)
            litellm.suppress_debug_info = True
            litellm.disable_hf_tokenizer_download = True
            litellm.telemetry = False
            litellm.disable_token_counter = True  # It counts each request for a price that is not used.
            litellm.main.encoding = _LateEncoding()
            litellm.drop_params = litellm.modify_params = False
            for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
            _litellm = litellm
        return _litellm


def declared(prefix: str) -> Any:
    """litellm's entry for an OpenAI-compatible provider (``api_key_env`` is the variable of its key); None
    without one.
    """
    return imported().llms.openai_like.json_loader.JSONProviderRegistry.get(prefix)


def is_argument(name: str) -> bool:
    """Returns whether litellm takes an argument of this name for itself, and does not hand it on to the provider."""
    litellm = imported()
    return name in litellm.types.utils.all_litellm_params or name in signature(litellm.completion).parameters


def is_provider(prefix: str) -> bool:
    """Returns whether a provider of this name is known to us or to litellm."""
    known = {str(getattr(one, "value", one)) for one in imported().provider_list}
    return by_prefix(prefix) is not None or prefix in known or declared(prefix) is not None


def provider_of(model: str) -> str:
    """The provider that litellm finds for a name without one; empty if it finds none."""
    try:
        return str(imported().get_llm_provider(model)[1])
    except Exception:  # noqa: BLE001 - litellm's way to say that it knows none
        return ""
