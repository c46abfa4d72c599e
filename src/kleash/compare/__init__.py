"""From any source to a verdict: reading, gaps, checks, reports written by hand."""
