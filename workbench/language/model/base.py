"""The base of all models of the language: they are frozen, keep unknown keys, take short forms, and state their
tier."""

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    Strict,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_plain_validator_function, wrap_serializer_function_ser_schema

Tier = Literal["1", "2·run", "2·load", "W"]
"""1: must run. 2·run: an extension that runs. 2·load: loads, is kept, does not run yet. W: the workbench's own."""


_built: ContextVar[type | None] = ContextVar("built", default=None)
"""The class whose validator is being made."""


@contextmanager
def _no_plugins() -> Iterator[None]:
    """No plugin of pydantic has a say in these classes: to look for some is to read what every installed package says
    of itself, which takes as long as making all validators of a cascade."""
    with _one_at_a_time:
        said = os.environ.get(_PLUGINS)
        os.environ[_PLUGINS] = "__all__"
        try:
            yield
        finally:
            if said is None:
                del os.environ[_PLUGINS]
            else:
                os.environ[_PLUGINS] = said


_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
_one_at_a_time = threading.RLock()


def _serialized(value: Any, handler: SerializerFunctionWrapHandler) -> Any:
    """Pydantic before 2.14 cannot write a default whose class has no validator yet: it has no serializer either."""
    if isinstance(value, Model) and not value.__pydantic_complete__:
        type(value).model_rebuild()
    return handler(value)


_WITH_SERIALIZER = wrap_serializer_function_ser_schema(_serialized)


class DeferredModel(BaseModel):
    """A class whose validator is made at its first use: most commands use few of those that they import, and all of
    them take 50 ms."""

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:
        """Make the validator, with those of the classes of its fields."""
        with _no_plugins():
            return super().model_rebuild(**options)


class Model(DeferredModel):
    """One mapping of a cascade file. A key whose value is null counts as not written.

    A default that is such a mapping is made with ``model_construct``: no validator has to be made for it.
    """

    model_config = ConfigDict(frozen=True, extra="allow", serialize_by_alias=True, protected_namespaces=())

    SHORT: ClassVar[str] = ""
    """The field that a bare text stands for; none if empty."""
    SWITCH: ClassVar[str] = ""
    """The field that a bare true or false stands for; none if empty."""
    BARE: ClassVar[bool] = False
    """Whether true alone stands for an empty mapping, and false for none."""
    SPELLINGS: ClassVar[Mapping[str, str]] = {}
    """Accepted spellings of keys."""
    NULLS: ClassVar[frozenset[str]] = frozenset()
    """Keys for which null has a meaning of its own."""

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:
        """Make the validator of this class alone. Those of the classes of its fields are made when a value needs them:
        most of them never are."""
        token = _built.set(cls)
        try:
            return super().model_rebuild(**options)
        finally:
            _built.reset(token)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if _built.get() is not cls:
            return no_info_plain_validator_function(cls._validated, serialization=_WITH_SERIALIZER)
        _built.set(None)
        return handler(source)

    @classmethod
    def _validated(cls, value: Any) -> Any:
        return cls.__pydantic_validator__.validate_python(value)

    @model_validator(mode="before")
    @classmethod
    def _normalise(cls, data: Any) -> Any:
        if type(data) is dict:
            if cls.SPELLINGS:
                data = {cls._spelled(key, data): value for key, value in data.items()}
            if None in data.values():
                data = {key: value for key, value in data.items() if value is not None or key in cls.NULLS}
            return data
        if cls.SHORT and isinstance(data, str):
            return {cls.SHORT: data}
        if cls.BARE and data is True:
            return {}
        if cls.SWITCH and isinstance(data, bool):
            return {cls.SWITCH: data}
        return data

    @classmethod
    def _spelled(cls, key: str, data: Mapping[str, Any]) -> str:
        proper = cls.SPELLINGS.get(key, key)
        return key if proper in data else proper


Named = Literal["phase", "source", "table", "tool", "validator", "model"]
"""A thing that a field holds the name of; a source is a phase or a keyword, a table the output of a phase."""


def _said(tier: Tier, description: str, template: str, names: Named | None, keys: Named | None) -> Any:
    extra: dict[str, Any] = {"tier": tier}
    extra |= {name: given for name, given in (("template", template), ("names", names), ("keys", keys)) if given}
    info: FieldInfo = Field(description=description, json_schema_extra=extra)
    return info


def tier1(description: str, template: str = "", names: Named | None = None, keys: Named | None = None) -> Any:
    """A field of the language. ``template`` is ``text`` or ``condition`` where Jinja is rendered; ``names`` says what
    its values name, ``keys`` what the keys of its mapping do.
    """
    return _said("1", description, template, names, keys)


def runs(description: str, template: str = "", names: Named | None = None, keys: Named | None = None) -> Any:
    """An extension that runs here."""
    return _said("2·run", description, template, names, keys)


def loads(description: str, template: str = "", names: Named | None = None, keys: Named | None = None) -> Any:
    """An extension that is kept and checked, but not run yet."""
    return _said("2·load", description, template, names, keys)


def own(description: str, template: str = "", names: Named | None = None, keys: Named | None = None) -> Any:
    """The workbench's own field."""
    return _said("W", description, template, names, keys)


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: Any) -> Any:
    """``30s``, ``5m``, ``24h`` (also ``ms``, ``d``), or a number of seconds. Raises PydanticCustomError otherwise."""
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            raise PydanticCustomError("duration", "not a duration")
        return float(match[1]) * DURATION_UNITS[match[2]]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("duration", "not a duration")
    return float(value)


def underscored(value: Any) -> Any:
    """Enumerations take hyphens for underscores (L207)."""
    return value.replace("-", "_") if isinstance(value, str) else value


WORDS = {"yes": True, "on": True, "no": False, "off": False}
"""The words that YAML 1.1 reads as true and false, and YAML 1.2 as text."""


def switched(value: Any) -> Any:
    """A switch takes the words of YAML 1.1 (L207)."""
    return WORDS.get(value.lower(), value) if isinstance(value, str) else value


def written_out(value: Any) -> Any:
    """Refuses null where leaving the key out means something else than an empty mapping."""
    if value is None:
        raise PydanticCustomError("model_type", "null is not an empty mapping")
    return value


def as_text(value: Any) -> Any:
    """A scalar as the text it is taken for (L212): ``false`` is "false", 3 is "3"."""
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else value


def branch_of(value: Any) -> str:
    """Returns which branch of a union a value belongs to, by its JSON type; the tags never show in an error."""
    if isinstance(value, str):
        return TEXT
    return MAP if isinstance(value, dict | Model) else LIST


TEXT, LIST, MAP = "<text>", "<list>", "<map>"
TAGS = frozenset({TEXT, LIST, MAP})

Count = Annotated[int, Strict(), Field(ge=1)]
Whole = Annotated[int, Strict(), Field(ge=0)]
Number = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]
Switch = Annotated[bool, Strict(), BeforeValidator(switched)]
Duration = Annotated[
    float,
    BeforeValidator(seconds),
    Field(ge=0, allow_inf_nan=False),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": f"^\\s*{_DURATION.pattern}\\s*$"}, {"type": "number", "minimum": 0}]}
    ),
]
Scalars = dict[str, Annotated[str, BeforeValidator(as_text, json_schema_input_type=str | float | bool | None)]]
Inputs = dict[
    str,
    Annotated[
        str | list[Any] | dict[str, Any],
        BeforeValidator(as_text, json_schema_input_type=str | float | bool | list[Any] | dict[str, Any] | None),
    ],
]
"""Arguments by name: texts are templates, also those inside lists and mappings."""
Names = tuple[str, ...]
HYPHENS = BeforeValidator(underscored)
BY_TYPE = Discriminator(branch_of)
Text = Annotated[str, Tag(TEXT)]

Fidelity = Literal["full", "truncate", "compact", "summary:low", "summary:medium", "summary:high"]
"""How much of the run a phase sees."""
FIDELITIES: tuple[Fidelity, ...] = get_args(Fidelity)
Selector = Literal["heuristic", "semantic", "llm", "hybrid"]
SelectionStrategy = Annotated[Selector, HYPHENS]
SELECTOR = "google/gemini-2.5-flash-lite"
"""The default model that selects context."""
