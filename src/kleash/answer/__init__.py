"""Answerers: models that see demonstrations and a query, and answer. One protocol for all of them."""
