"""Scores -> structures: trees. Arrays in, arrays out; inputs are left as they were."""
