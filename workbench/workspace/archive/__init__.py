"""Work over archives of runs: split into shares, done by processes or by a cluster, resumable."""
