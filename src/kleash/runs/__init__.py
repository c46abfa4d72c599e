"""The run folder, the ledger of answers, jobs in other processes, and sinks."""
