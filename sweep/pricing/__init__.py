"""What a study would cost: work counted, speeds measured or assumed, machines and their prices.

work.py      a trial -> floating-point operations, from the encoder's shape and the data
devices.py   T4, A100, a CPU core: how many operations a second this code gets out of it
speeds.py    the model corrected by what the ledger has measured, with its doubt
paces.py     how fast a machine was while its trials ran
instances.py cloud machines: cores, GPUs, dollars an hour
"""
