"""What the screens show, as rows of plain cells: drawn by the app, printed by the commands. Imports no Textual."""
