"""Language policies: how conversations become token ids, and how likely a model finds its own.

Whoever samples is in `engine`; environments know nothing of tokens.
"""
