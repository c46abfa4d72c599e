"""What is particular to demonstrations: pools, prompts, proposals, rewards, scores, selector blocks."""
