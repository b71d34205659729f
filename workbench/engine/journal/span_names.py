"""Names of providers in spans: the GenAI conventions of OpenTelemetry have their own for some."""

from __future__ import annotations

from collections.abc import Mapping

_PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
_OURS = {theirs: ours for ours, theirs in _PROVIDERS.items()}


def conventional(provider: str) -> str:
    """The value of ``gen_ai.provider.name`` for a provider as it is named here."""
    return _PROVIDERS.get(provider, provider)


def provider_of(name: str) -> str:
    """The inverse."""
    return _OURS.get(name, name)
