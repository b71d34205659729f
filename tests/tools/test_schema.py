"""A Python function as a tool: what a model is told of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.tools.schema import SchemaError, parse_docstring, spec_of


class Box(TypedDict):
    left: int
    right: int


def crop(  # type: ignore[no-untyped-def]
    path: str,
    box: Box,
    scale: float = 1.0,
    mode: Literal["fit", "fill"] = "fit",
    labels: list[str] | None = None,
    extra: dict[str, int] = {},  # noqa: B006 - a default as users write it
    page: Annotated[int, "Counted from 1."] = 1,
    note="x",
) -> str:
    """Cut a part
    out of a picture.

    It is written beside the original.

    Args:
        path: Where it lies,
            relative to the workspace.
        scale (float): Factor.

    Returns:
        path: not a parameter here
    """
    return f"{path}{box}{scale}{mode}{labels}{extra}{page}{note}"


def test_the_first_paragraph_becomes_the_description_in_one_line() -> None:
    assert spec_of("crop", crop).description == "Cut a part out of a picture."


def test_parameters_keep_the_order_of_the_signature_with_types_and_defaults() -> None:
    shown = [(p.name, p.type, p.required, p.default) for p in spec_of("crop", crop).parameters]
    assert shown == [
        ("path", "str", True, None),
        ("box", "dict", True, None),
        ("scale", "float", False, 1.0),
        ("mode", "str", False, "fit"),
        ("labels", "list", False, None),
        ("extra", "dict", False, {}),
        ("page", "int", False, 1),
        ("note", "str", False, "x"),
    ]


def test_the_schema_says_what_the_hints_and_the_docstring_say() -> None:
    schema = spec_of("crop", crop).schema
    properties: dict[str, Any] = schema["properties"]
    assert schema["required"] == ["path", "box"]
    assert schema["additionalProperties"] is False
    assert properties["path"] == {"type": "string", "description": "Where it lies, relative to the workspace."}
    assert properties["box"]["properties"] == {"left": {"type": "integer"}, "right": {"type": "integer"}}
    assert properties["box"]["required"] == ["left", "right"]
    assert properties["scale"] == {"type": "number", "description": "Factor.", "default": 1.0}
    assert properties["mode"] == {"type": "string", "enum": ["fit", "fill"], "default": "fit"}
    nullable = [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]
    assert properties["labels"] == {"anyOf": nullable, "default": None}
    assert properties["extra"] == {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}}
    assert properties["page"]["description"] == "Counted from 1."


def test_sphinx_fields_describe_parameters() -> None:
    doc = parse_docstring(
        """Send it.

        :param str to: The person
            who gets it.
        :param urgent: Right now.
        :returns: nothing
        """
    )
    assert doc.summary == "Send it."
    assert doc.parameters == {"to": "The person who gets it.", "urgent": "Right now."}


def test_a_method_is_described_without_self() -> None:
    class Mailer:
        def send(self, to: str) -> None:
            """Send."""

    assert [p.name for p in spec_of("send", Mailer().send).parameters] == ["to"]


def test_a_parameter_without_a_type_takes_anything() -> None:
    def tool(value, *, flag=True):  # type: ignore[no-untyped-def]
        return value, flag

    schema = spec_of("tool", tool).schema
    assert schema["properties"] == {"value": {}, "flag": {"type": "boolean", "default": True}}


def _star(**options: str) -> None: ...


def _many(*paths: str) -> None: ...


def _positional(path: str, /) -> None: ...


def _set(names: set[str]) -> None: ...


def _keys(table: dict[int, str]) -> None: ...


def _default(when: object = object()) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_star, "'**options' accepts anything"),
        (_many, "'*paths' has no names"),
        (_positional, "'path' is positional only"),
        (_set, "JSON has no word for the type set"),
        (_keys, "keys of a JSON object are text, not int"),
        (_default, "the default of 'when' is not a JSON value"),
    ],
)
def test_what_cannot_be_described_is_refused_with_the_reason(function: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=r"tool 'f'|of tool 'f'") as caught:
        spec_of("f", function)
    assert words in str(caught.value)


@given(st.text(max_size=400))
def test_any_docstring_can_be_read(text: str) -> None:
    doc = parse_docstring(text)
    assert "\n" not in doc.summary
