"""Numbers of tables among the records of log files, whatever those are laid out like."""
