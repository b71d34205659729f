"""How the files are called that are read here. A module of its own, because the app asks before it loads a reader."""

DOT_ENDINGS = (".dot", ".gv", ".fabro")
"""Of files that are read as DOT whatever they hold."""
FILE_ENDINGS = (".yaml", ".yml", ".json", *DOT_ENDINGS)
"""Of files that may hold what runs."""
