"""What is particular to demonstrations: pools, proposals, rewards, scores, selector blocks."""
