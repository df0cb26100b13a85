"""Eleven invented languages that say the same sentences, and the tiny encoder that read them."""
