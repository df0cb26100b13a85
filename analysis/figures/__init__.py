"""Figures: one function finds the numbers, another draws them."""
