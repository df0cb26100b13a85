"""Tables in, numbers and pages out. No torch, no cluster, no clock.

tables -> cells -> gaps, correlation, intervals, significance -> figures, report
"""
