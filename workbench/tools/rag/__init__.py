"""Retrieval over a folder of the workspace: files cut into passages, ranked by words or by embeddings."""
