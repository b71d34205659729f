"""The Tools port: the registry, the built-in tools, and the sandbox they run in."""
