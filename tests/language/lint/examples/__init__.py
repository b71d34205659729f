"""For every code of the catalogue a small file that triggers it, and a near miss that does not."""

from __future__ import annotations

from tests.language.lint.examples.example import Example
from tests.language.lint.examples.flow import FLOW
from tests.language.lint.examples.form import FORM
from tests.language.lint.examples.settings import SETTINGS
from tests.language.lint.examples.sources import SOURCES
from tests.language.lint.examples.templates import TEMPLATES
from tests.language.lint.examples.tools import TOOLS

EXAMPLES: tuple[Example, ...] = (*FORM, *FLOW, *SOURCES, *TOOLS, *TEMPLATES, *SETTINGS)

__all__ = ["EXAMPLES", "Example"]
