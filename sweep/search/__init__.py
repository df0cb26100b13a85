"""Search of hyper-parameters inside the grid, and seeds where they are needed.

study, files --layout--> searches and cells        log, results: what is known of them
searches, cells --schedule--> jobs, one by one     sampler, pruning, seeds: the decisions
searches --mirror--> Optuna storage, for its dashboard
"""
