"""Files in, sentences and pieces out: conllu -> sentence -> subwords -> batching."""
