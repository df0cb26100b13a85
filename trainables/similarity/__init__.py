"""Similarity: states of parallel sentences in, one number a layer and language pair out."""
