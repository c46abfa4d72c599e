"""Data sets: items with images, split so that nothing leaks. One line here for each."""
