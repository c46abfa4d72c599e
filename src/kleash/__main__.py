"""`python -m kleash`, where no script is on the path."""

from kleash.cli import main

main()
