"""Encoders: any Hugging Face encoder by structure -> pieces in, states of every layer out."""
