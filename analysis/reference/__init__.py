"""The papers' numbers and the shape of their tables.

*.csv --published--> printed numbers --doubts--> which of them count
*.toml --shapes--> rows and columns of each table, with the scores of ours that stand beside them
"""
