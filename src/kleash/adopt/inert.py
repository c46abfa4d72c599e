"""Opens torch files without running anything in them.

First as torch does when only weights are wanted. A file that holds more (the settings of a
Lightning run are objects of other packages) is read with a dummy in the place of every object that
is neither a tensor nor plain: nothing of it is imported or called.
"""

from __future__ import annotations

import pickle
import types
import warnings
import zipfile
from pathlib import Path
from typing import Any

from kleash.compare.tensor_files import ODD, TORN, bound_names, one_line
from kleash.errors import CheckpointError

PLAIN = {
    ("collections", "OrderedDict"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
}
"""What may be called: each makes a tensor or a mapping of what it is given, and nothing else."""
STORAGES = "Float Double Half BFloat16 Long Int Short Char Byte Bool Untyped"


class Dummy:
    """Stands where an object was: takes whatever it is given and keeps none of it."""

    def __new__(cls, *given: Any, **named: Any) -> Dummy:
        return super().__new__(cls)

    def __init__(self, *given: Any, **named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __call__(self, *given: Any, **named: Any) -> Dummy:
        return self

    def append(self, value: Any) -> None:
        """As a list would."""

    def extend(self, values: Any) -> None:
        """As a list would."""


class Unpickler(pickle.Unpickler):
    """Imports tensors, their storages and ordered mappings; a dummy for all else."""

    def find_class(self, module: str, name: str) -> Any:
        storage = module == "torch" and name.removesuffix("Storage") in STORAGES.split()
        if storage or (module, name) in PLAIN:
            return super().find_class(module, name)
        return Dummy


def torch_object(file: Path) -> Any:
    """What a torch file holds: tensors, plain values, and dummies for whatever else."""
    import torch

    if not file.is_file():
        raise CheckpointError(f"no such file: {file}")
    dummies: Any = types.ModuleType("dummies")
    dummies.Unpickler, dummies.load = Unpickler, pickle.load
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how a file was made: nothing a user can change
            bound_names(file)
            try:
                return torch.load(file, map_location="cpu", weights_only=True)
            except pickle.UnpicklingError:
                if not zipfile.is_zipfile(file):
                    raise
            return torch.load(file, map_location="cpu", weights_only=False, pickle_module=dummies)
    except (pickle.UnpicklingError, UnicodeDecodeError):
        raise CheckpointError(f"{file} is no checkpoint: nothing in it was run") from None
    except (*TORN, *ODD) as error:
        raise CheckpointError(f"cannot read {file}: {one_line(error)}") from None
