"""One run: recipe, loop, update, rollouts, evaluation, export."""
