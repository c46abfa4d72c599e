"""Data sets: items with images, split so that nothing leaks. One line in `DATASETS` for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from numpy.typing import NDArray

from kleash.errors import ConfigError
from kleash.types import Item


class Dataset(Protocol):
    """Items that may be shown, items that are asked, and the images of both."""

    @property
    def name(self) -> str:
        """The name in `DATASETS`."""

    @property
    def content(self) -> str:
        """The hash of everything in it."""

    @property
    def demonstrations(self) -> Sequence[Item]:
        """What pools are drawn from."""

    def queries(self, split: str) -> Sequence[Item]:
        """The items of a split: `train`, `validation` or `test`."""

    def image(self, name: str) -> NDArray[Any]:
        """An image, [height, width, 3], bytes."""

    def planted(self, query: Item, pool: Sequence[Item], shots: int) -> tuple[int, ...] | None:
        """The best pointer, where a generator knows it."""


def majority(answers: Sequence[str]) -> str:
    """The answer given most often; of equally frequent ones the first given."""
    return Counter(answers).most_common(1)[0][0]


DATASETS = {
    "scenes": "kleash.data.scenes:Scenes",
}


def dataset(name: str, seed: int = 0) -> Dataset:
    """The data set of that name; one of your own is named package.module:Class."""
    make: Callable[..., Dataset] = imported(DATASETS, name, "data set")
    return make(seed=seed)


def imported(table: Mapping[str, str], name: str, what: str) -> Any:
    """What a name in a table stands for, or what `package.module:Name` holds."""
    module, colon, kind = table.get(name, name).partition(":")
    if not colon:
        raise ConfigError(
            f"no {what} {name!r}: there is {', '.join(table)}, or package.module:Class of your own"
        )
    try:
        return getattr(import_module(module), kind)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cannot load the {what} {name!r}: {error}") from None
