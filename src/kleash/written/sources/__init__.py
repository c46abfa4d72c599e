"""Where a number of a sentence may come from, how likely each, and so how likely it is a slip.

`asks` reads what a sentence says of its number, `named` how it names rows and columns, `of_tables`
and `of_numbers` list all that the number may be, `weights` says how likely each is, and `judge`
holds the number against all of them. The weights were fitted to reports without errors.
"""
