"""What sentences tell in numbers, read as claims on the courses of tables and logs."""
