"""Many runs of one cascade: its rows, its variants, its scores, and the table that they make; pure."""
