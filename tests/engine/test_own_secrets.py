"""A secret in the cascade's own text: replaced before the run begins, and nothing else is."""

from __future__ import annotations

import pytest

from tests.engine.support import play
from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.journal.own_secrets import labels_in, without_secrets
from workbench.engine.journal.redact import Redactor

KEY = "sk-" + "live0123456789abcdefABCDEF"
redact = Redactor({"DEPLOY_KEY": "correct1-horse2-battery3"})
HEAD = "cascade_id: c\nphases:\n"


@pytest.mark.parametrize(
    "phases",
    [
        f"  - {{name: a, instructions: 'Use {KEY}.'}}\n",
        f"  - name: a\n    instructions: |\n      Use {KEY}\n      well.\n",
        f"  - name: a\n    instructions: {KEY}\n",
        f"  - name: a\n    tool: read_file\n    inputs: {{path: {KEY}, '{KEY}': plain}}  # {KEY}\n",
        "  - {name: a, instructions: correct1-horse2-battery3 stays, model: m}\n",
        f'  - {{"name": "a", "instructions": "{KEY[:5]}\\x76e{KEY[7:]}"}}\n',
    ],
)
def test_the_values_are_replaced_whatever_their_quotes(phases: str) -> None:
    definition = Definition.of(HEAD + phases, "c.yaml")
    clean = without_secrets(definition, redact)
    assert redact(clean.source.text) == (clean.source.text, 0)
    assert labels_in(clean) > 0
    assert [phase.name for phase in clean.cascade.phases] == ["a"]
    before = definition.cascade.phases[0].model_dump_json()
    assert clean.cascade.phases[0].model_dump_json() == redact(before)[0]
    assert without_secrets(clean, redact) is clean, "replacing twice changes nothing"


def test_a_text_without_secrets_is_the_text() -> None:
    definition = Definition.of(HEAD + "  - {name: a, instructions: x}\n")
    assert without_secrets(definition, redact) is definition
    assert labels_in(definition) == 0


def test_included_texts_lose_theirs_too() -> None:
    definition = Definition.of(HEAD + "  - {name: a, instructions: '@a.md'}\n", "", {"a.md": f"Use {KEY}."})
    assert without_secrets(definition, redact).includes == {"a.md": "Use [redacted key]."}


def test_a_secret_that_cannot_be_replaced_in_place_is_an_error_with_its_line() -> None:
    text = HEAD + f"  - name: a\n    inputs: &i {{path: {KEY}}}\n    tool: read_file\n"
    text += "  - {name: b, tool: read_file, inputs: *i}\n"
    with pytest.raises(DefinitionError, match=r"^c\.yaml:4:\d+: error: a secret stands here"):
        without_secrets(Definition.of(text, "c.yaml"), redact)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Use [redacted key].", "1 secret in the file is replaced"),
        ("Use [redacted key] and [redacted aws-key].", "2 secrets in the file are replaced"),
    ],
)
def test_a_run_warns_of_what_was_replaced(text: str, said: str) -> None:
    played = play({"cascade_id": "c", "phases": [{"name": "a", "instructions": text}]}, ["done"])
    (warned,) = played.of_kind("warning")
    assert warned.data["code"] == "secret"
    assert warned.data["message"].startswith(said)
