"""`python -m quipu`: the same as the `quipu` command."""

from quipu.cli import main

main()
