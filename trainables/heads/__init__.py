"""Heads: states of the last layer in, logits out."""
