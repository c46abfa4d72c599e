"""Kleash trains policies with GRPO on a KL leash, and finds out what the leash did."""

__version__ = "0.1.0"
