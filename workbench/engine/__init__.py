"""A run: cascade, input and ports in, a journal of events out. Knows no screen, no disk, no clock of its own."""
