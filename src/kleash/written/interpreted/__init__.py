"""Claims that a language model puts into formulas over a report's numbers; we work these out."""
