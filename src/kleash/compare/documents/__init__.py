"""Reports that people wrote: read with an address on every number, checked, filled, and settled.

What tables and logs show is found by numbers alone; what sentences state is put into formulas by an
interpreter and worked out here. Left out: rules that read prose.
"""
