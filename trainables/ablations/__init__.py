"""Ablations: a small language, composable with `+`; each touches parameters, copies no model."""
