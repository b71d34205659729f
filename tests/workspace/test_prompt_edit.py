"""An edit of a rendered prompt goes back into the template: what templates put in is told from what the file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import run_cli
from tests.support.workspaces import GREETING, filled
from workbench.workspace.playground import Playground, subject_of
from workbench.workspace.project import Project
from workbench.workspace.prompt_edit import PromptError, prompt_edit, rewritten
from workbench.workspace.text_file import ChangedMeanwhile

BACK = (
    ("Find the first.\nRead.\n", "Find the first.\nRead.", "Find the last.\nRead it.", "Find the last.\nRead it.\n"),
    ("Say {{ a }} about.", "Say x y about.", "Tell x y about it.", "Tell {{ a }} about it."),
    ("{{ a }} or {{ b }}", "1 or 2", "1 and 2", "{{ a }} and {{ b }}"),
    ("Read.{# why #} Judge.", "Read. Judge.", "Read. Decide.", "Read.{# why #} Decide."),
    ("Read.\n", "Read.\n\n## Routing\nx", "Read all.\n\n## Routing\nx", "Read all.\n"),
    (
        "{% if a %}A long sentence that is there.{% endif %} The end of it.",
        "A long sentence that is there. The end of it.",
        "A long sentence that stays there. The end of it.",
        "{% if a %}A long sentence that stays there.{% endif %} The end of it.",
    ),
)
REFUSED = (
    ("Say {{ a }} about.", "Say x about.", "Say y about.", "'x' is not text of the file"),
    ("Read.\n", "Read.\n\n## Routing\nx", "Read.\n\n## Routing\ny", "'x' is not text of the file"),
    ("Say {{ a }} x", "Say 1 x", "Say 1 {{ b }} x", "read as a template"),
    ("Say {{ a }} x", "Say 1 x", "Say 1 {% x", "read as a template"),
    ("{{ a }} and {{ b }}", "1 and 2 and 3", "1 and 2 or 3", "is not text of the file"),
    ("{% for a in b %}x{% endfor %}", "xxx", "xyx", "is not text of the file"),
)


@pytest.mark.parametrize(("template", "before", "after", "wanted"), BACK)
def test_a_change_of_the_files_own_words_is_made_in_the_template(
    template: str, before: str, after: str, wanted: str
) -> None:
    assert rewritten(template, before, after) == wanted


@pytest.mark.parametrize(("template", "before", "after", "reason"), REFUSED)
def test_a_change_of_what_is_not_the_files_is_refused(template: str, before: str, after: str, reason: str) -> None:
    with pytest.raises(PromptError, match=reason):
        rewritten(template, before, after)


@pytest.fixture
def playground(folder: Path) -> Playground:
    filled(folder, GREETING)
    assert run_cli("run", "greet.yaml", "--session", "s").code == 0
    project = Project.at(folder)
    state = project.store.state(project.store.find("s"))
    return Playground(project, subject_of(project, state, state.calls[0].place))


def made(playground: Playground, text: str) -> None:
    """Edit the instructions in the request."""
    at = next(i for i, row in enumerate(playground.draft.rows) if row.message.text.startswith("Read notes.txt"))
    playground.draft.write(f"message:{at}", text)


def test_only_the_words_change_in_the_file_and_it_is_never_written_over_another_change(
    playground: Playground, folder: Path
) -> None:
    project = Project.at(folder)
    state = project.store.state(playground.subject.run_id)
    with pytest.raises(PromptError, match="the instructions are not edited: edit message"):
        prompt_edit(project, state, playground.subject, playground.draft)
    made(playground, "Read notes.txt twice for Ada." + playground.draft.rows[1].message.text[23:])
    found = prompt_edit(project, state, playground.subject, playground.draft)
    old, new = found.before.splitlines(), found.after.splitlines()
    assert [line for line in new if line not in old] == [
        '    instructions: "Read notes.txt twice for {{ input.name }}."'
    ]
    assert len(new) == len(old)
    assert old[found.line - 1].strip().startswith("instructions:")

    (folder / "greet.yaml").write_text(found.before + "# a word\n")
    with pytest.raises(ChangedMeanwhile):
        found.save()
    again = prompt_edit(project, state, playground.subject, playground.draft)
    again.save()
    assert (folder / "greet.yaml").read_text() == again.after
    with pytest.raises(PromptError, match="have changed since this run"):
        prompt_edit(project, state, playground.subject, playground.draft)


def test_a_file_that_is_gone_is_named(playground: Playground, folder: Path) -> None:
    project = Project.at(folder)
    state = project.store.state(playground.subject.run_id)
    made(playground, "Read it." + playground.draft.rows[1].message.text[23:])
    (folder / "greet.yaml").unlink()
    with pytest.raises(PromptError, match=r"greet\.yaml is not there any more"):
        prompt_edit(project, state, playground.subject, playground.draft)
