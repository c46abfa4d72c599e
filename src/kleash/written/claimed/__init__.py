"""What a report claims in words, held against its tables and logs."""
