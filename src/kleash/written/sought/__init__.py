"""Which run, metric and statistic of the logs a line of a table tells, by search."""
