"""Parameters that a request carries beside its messages, and that a cascade, a phase or a candidate's model may set."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, Strict, Tag, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from workbench.language.model.base import BY_TYPE, LIST, TEXT, Count, Model, Number, Share, own
from workbench.language.words import MarkPlace

RESERVED: Mapping[str, str] = {
    **dict.fromkeys(("model", "messages", "input", "prompt", "system"), "the workbench makes it of the phase"),
    **dict.fromkeys(("tools", "functions", "function_call", "tool_choice"), "it follows from 'tackle'"),
    **dict.fromkeys(("stream", "stream_options", "n"), "the workbench reads one answer, as it streams"),
    **dict.fromkeys(
        ("api_key", "api_base", "api_version", "base_url", "headers", "extra_headers", "extra_query", "extra_body"),
        "settings and environment say where a request goes",
    ),
    **dict.fromkeys(("timeout", "max_retries", "num_retries"), "settings say how long and how often"),
}
"""Names that no request parameter may have, with the reason."""


class ResponseFormat(Model):
    """The form that a provider makes every answer follow."""

    SHORT: ClassVar[str] = "type"

    type: Annotated[Literal["text", "json_object", "json_schema"], own("The form of an answer.")]
    json_schema: Annotated[
        dict[str, Any] | None, own("With type json_schema: `name`, `schema`, and `strict` where it is wanted.")
    ] = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.type == "json_schema" and not isinstance((self.json_schema or {}).get("schema"), dict):
            raise PydanticCustomError("response_format", "type json_schema needs json_schema with name and schema")
        return self


class CacheControl(Model):
    """Cache marks of a request, for a provider that caches only marked prefixes (Anthropic). Others get no marks."""

    SHORT: ClassVar[str] = "ttl"

    at: Annotated[
        tuple[MarkPlace, ...],
        Field(max_length=4),
        own("Places that are marked: behind the tools, the system text, the task, the last message. Empty: none."),
    ] = ("system", "last")
    ttl: Annotated[Literal["5m", "1h"], own("How long what is marked is kept after its last use.")] = "5m"


def _filled(value: Any) -> Any:
    """A text or a list of texts, none of them empty: providers refuse an empty stop sequence."""
    if value == "" or (isinstance(value, list) and (not value or "" in value)):
        raise PydanticCustomError("stop", "a stop sequence is empty")
    return value


_Text = Annotated[str, Strict()]
_Stop = Annotated[
    Annotated[_Text, Tag(TEXT)] | Annotated[tuple[_Text, ...], Tag(LIST)], BY_TYPE, BeforeValidator(_filled)
]


class Parameters(Model):
    """Parameters of a request. Those of a phase win over the cascade's, those of a candidate's model over both."""

    temperature: Annotated[
        Annotated[Number, Field(le=2)] | None,
        own("How freely the model chooses its words, 0 to 2; sent with each call."),
    ] = None
    top_p: Annotated[Share | None, own("Share of the likeliest words to choose from, 0 to 1; sent with each call.")] = (
        None
    )
    max_tokens: Annotated[Count | None, own("Most tokens of one answer; sent with each call.")] = None
    seed: Annotated[Annotated[int, Strict()] | None, own("Makes answers repeatable where the model can; sent.")] = None
    stop: Annotated[_Stop | None, own("Texts at which the model ends its answer; sent with each call.")] = None
    response_format: Annotated[
        ResponseFormat | None, own("The form that the provider makes an answer follow; sent.")
    ] = None
    cache_control: Annotated[
        CacheControl | None, own("Places in a request that Anthropic's prompt cache keeps; system and last by default.")
    ] = None
    parameters: Annotated[
        dict[str, Any], own("Further parameters of the model by name, sent as they are; null removes one.")
    ] = Field(default_factory=dict)


NAMED = tuple(name for name in Parameters.model_fields if name != "parameters")
"""Parameters with a key of their own."""


def named_parameters(holder: Model) -> dict[str, Any]:
    """The parameters that a cascade, a phase or a model of candidates sets, as sent: its own keys override its
    ``parameters``, in which None removes a parameter.
    """
    sent: dict[str, Any] = dict(getattr(holder, "parameters", None) or {})
    for name in NAMED:
        value = getattr(holder, name, None)
        if value is not None:
            sent[name] = _plain(value)
    return sent


def _plain(value: Any) -> Any:
    if isinstance(value, ResponseFormat):
        return value.model_dump(exclude_none=True)
    if isinstance(value, CacheControl):
        return value.model_dump(mode="json")
    return list(value) if isinstance(value, tuple) else value


def laid_over(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later layers win; None removes a parameter of an earlier one."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer
    return {name: value for name, value in merged.items() if value is not None}


def reserved(name: str) -> str:
    """Returns why no request can carry a parameter of this name; empty if it can."""
    return RESERVED.get(name) or ("" if name.isidentifier() and name[0] != "_" else "it is not a parameter name")


def refused(name: str, value: Any) -> str:
    """Returns why a request cannot carry this parameter; empty if it can. A parameter without a key of its own takes
    any value, because only the model knows its meaning.
    """
    if reason := reserved(name):
        return f"'{name}' cannot be set: {reason}"
    if value is None or name not in NAMED:
        return ""
    try:
        Parameters.model_validate({name: value})
    except ValidationError as fault:
        return f"'{name}': {fault.errors(include_url=False)[0]['msg']}"
    return ""
