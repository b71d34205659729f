"""Analyses of stored runs: what-if, comparisons, sweeps, rankings, advice. Pure: no engine runs here."""
