"""YAML by the rules of 1.2, as another parser reads it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from ruamel.yaml import YAML

from tests.language.documents import MAPPINGS, STYLES, as_yaml
from workbench.language.yaml_reader import read_yaml


@settings(max_examples=150, deadline=None)
@given(MAPPINGS, STYLES)
def test_generated_documents_read_as_ruamel_reads_them(data: Any, style: str) -> None:
    text = as_yaml(data, style)
    reading = read_yaml(text)
    assert not reading.faults
    assert reading.data == as_json_keys(YAML(typ="safe", pure=True).load(text))


def as_json_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): as_json_keys(item) for key, item in value.items()}
    return [as_json_keys(item) for item in value] if isinstance(value, list) else value
