"""A short YAML value that stands for a million: what a stranger's file can hold."""

from __future__ import annotations

from itertools import pairwise

ENDLESS = "[&a [x, x, x, x, x, x, x, x, x, x]" + "".join(
    f", &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in pairwise("abcdef")
) + ", *f]"  # fmt: skip
