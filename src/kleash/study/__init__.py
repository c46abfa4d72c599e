"""Arms, seeds and measurements: from a file to results."""
