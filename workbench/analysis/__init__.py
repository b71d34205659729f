"""What stored runs say: what-if, comparisons, sweeps, rankings, advice. Pure: no engine runs here."""
