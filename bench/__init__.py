"""Measured budgets (DESIGN section 12): `python -m bench.<name>` prints JSON."""
