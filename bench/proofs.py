"""``python -m bench.proofs``: the proofs that take too long for the suite, each a test with the mark ``proof``.

Arguments are those of pytest: ``python -m bench.proofs tests/models``. A shorter case of each proof is in the suite.
"""

from __future__ import annotations

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(["-m", "proof", "-q", *(sys.argv[1:] or ["tests"])]))
