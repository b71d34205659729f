"""The command line: one thin module per command, the headless face of the library."""
