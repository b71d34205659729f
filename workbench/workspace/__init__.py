"""One folder of work: its settings, its cascades, its store, and how a run is put together from real parts."""
