"""Is this machine fit to run a study? Each check finds one thing out and says how to mend it.

machine, software, places, services --findings--> examination --> a table, JSON, an exit code
"""
