"""Data sets: items with images, split so that nothing leaks. One line in `DATASETS` for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from numpy.typing import NDArray

from kleash.errors import ConfigError
from kleash.types import Item

Images = Callable[[str], NDArray[Any]]


class Dataset(Protocol):
    """Items that may be shown, items that are asked, and the images of both.

    One whose answers are not scored as VQA has a `score(answer, item)` of its own.
    """

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
    return max(dict.fromkeys(answers), key=answers.count)


DATASETS = {
    "scenes": "kleash.tasks.data.scenes:Scenes",
    "okvqa": "kleash.tasks.data.vqa:OkVqa",
    "vqav2": "kleash.tasks.data.vqa:VqaV2",
    "lxmert": "kleash.tasks.data.lxmert:Lxmert",
    "captions": "kleash.tasks.data.captions:Captions",
    "sst2": "kleash.tasks.data.sst2:Sst2",
}
FROM_FILES = ("okvqa", "vqav2", "lxmert", "captions", "sst2")
"""Data sets of which no generator knows the best pointer."""


def dataset(name: str, seed: int = 0, options: Mapping[str, Any] | None = None) -> Dataset:
    """The data set of that name; one of your own is named package.module:Class."""
    make: Callable[..., Dataset] = imported(DATASETS, name, "data set")
    return make(seed=seed, **fitting(make, options or {}, f"data set {name!r}", without={"seed"}))


def fitting(
    make: Callable[..., Any], options: Mapping[str, Any], what: str, without: Collection[str]
) -> dict[str, Any]:
    """Options that `make` takes, none of them wrong and none missing."""
    known = {
        name: each
        for name, each in inspect.signature(make).parameters.items()
        if name not in without and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    }
    there_is = f"its options are {', '.join(known)}" if known else "it has no options"
    for name in options:
        if name not in known:
            raise ConfigError(f"the {what} has no option {name!r}: {there_is}")
    for name, each in known.items():
        if each.default is each.empty and name not in options:
            raise ConfigError(f"the {what} needs the option {name!r}: {there_is}")
    return dict(options)


def image_content(images: Images, name: str) -> bytes:
    """What tells an image from all others: the hash of its file where it has one, or its bytes."""
    digest: Callable[[str], bytes] | None = getattr(images, "digest", None)
    return digest(name) if digest else images(name).tobytes()


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
