"""A sweep rehearsed on an imagined cluster: the real scheduler, a virtual clock, made-up workers.

agenda.py     what happens when: a clock that jumps from event to event
fleet.py      nodes that come, go, idle, are taken back, and cost money
executor.py   SimulatedExecutor: runs any Schedule on a fleet
rehearsal.py  a study and a cluster -> makespan, GPU-hours, dollars, interruptions
"""
