"""How the numbers of a table were made: recipes for its lines, weighed against chance."""
