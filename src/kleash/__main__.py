"""`python -m kleash` is `kleash`: for launchers that start a module, as torchrun does."""

from kleash.cli import main

main()
