"""Tasks: labels, head, loss, prediction, score; one file each."""
