"""One run of a cascade: visits, attempts, turns, tools, checks, child runs."""
