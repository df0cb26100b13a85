"""Figures: `*_data()` finds the numbers, `draw_*()` draws them, `style` looks after the files.

blocks, profiles, alignments -> data (tested, and written as CSV) -> matplotlib -> SVG and PNG
"""
