"""One trial: a spec goes in, a result comes out. Knows neither Ray nor the tables.

trial -> registry -> training, evaluation -> tasks -> heads, metrics, ablations, similarity
      -> encoders, data -> spec; nothing imports what stands to its left.
"""
