"""The sweep: the only place that knows the cluster.

study file -> study -> grid -> identity -> ledger (what is left) -> local | tune -> worker
worker -> commits -> tracking (MLflow, a window) and analysis (numbers and pages)
"""
