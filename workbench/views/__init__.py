"""Views of runs, contexts and comparisons, as rows of plain cells: drawn by the app, printed by the commands. Imports
no Textual."""
