"""Metrics: frozen counts that add up; the ratio comes last."""
