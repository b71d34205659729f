"""The app in a browser of this machine, and a small API that reads: everything behind one token."""
