"""``python -m bench.proofs``: the tests with the mark ``proof``, which measure time, or take too long for the suite.

Arguments are those of pytest: ``python -m bench.proofs tests/models``. Those that take long have a shorter case in the
suite; those of time are for a machine that does nothing else.
"""

from __future__ import annotations

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(["-m", "proof", "-q", *(sys.argv[1:] or ["tests"])]))
