"""One run: recipe, loop, update, rollouts, evaluation, export."""

from kleash.rooms import make_callable

make_callable(__name__)
