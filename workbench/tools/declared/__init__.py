"""Tools declared in ``.tool.json`` files: commands, HTTP requests, Python functions, and chains of other tools."""
