"""Similarity: states of parallel sentences in, one number a layer and language pair out.

encoder forward --pooling--> states[language][layer, sentence, dim]
    --base.compare--> measure.layer(sides of one layer)   cka | cosine | published
        --nulls--> what shuffled pairings would give
-> Compared(source, target, layer, value, n, null_mean, null_95)
"""
