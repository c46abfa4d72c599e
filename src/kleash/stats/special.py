"""Distribution functions: those ufuncs of `scipy.special` that are used here, without the rest.

`import scipy.special` loads as well what lets it work with other array libraries, which looks
through all that NumPy has, its Fortran tools and its test tools too: 0.2 s of CPU, a fifth of what
it takes a verb to start. The ufuncs are one extension module of that package and do not need it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any

WHOLE, UFUNCS = "scipy.special", "scipy.special._ufuncs"


def _loaded() -> Any:
    """The module of the ufuncs; the whole package where that is loaded, or has no such module."""
    if WHOLE in sys.modules or (spec := find_spec(WHOLE)) is None:
        return import_module(WHOLE)
    sys.modules[WHOLE] = module_from_spec(spec)  # the package's place, its own code not run
    try:
        return import_module(UFUNCS)
    except ImportError:  # the module's name is SciPy's own affair
        pass
    finally:
        del sys.modules[WHOLE]  # whoever imports it later gets the real one
    return import_module(WHOLE)


_ufuncs = _loaded()
bdtr: Any = _ufuncs.bdtr
betaincinv: Any = _ufuncs.betaincinv
chdtrc: Any = _ufuncs.chdtrc
chdtri: Any = _ufuncs.chdtri
fdtr: Any = _ufuncs.fdtr
fdtrc: Any = _ufuncs.fdtrc
fdtri: Any = _ufuncs.fdtri
ndtr: Any = _ufuncs.ndtr
ndtri: Any = _ufuncs.ndtri
stdtr: Any = _ufuncs.stdtr
stdtrit: Any = _ufuncs.stdtrit
