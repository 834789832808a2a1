"""Missing values of columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

#: Missing value of integer columns. Text columns use code -1, float columns NaN.
INT_MISSING: Final = int(np.iinfo(np.int64).min)


def is_missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Mask of missing values: NaN for floats, ``INT_MISSING`` for int64, negative for smaller integers (codes)."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values), dtype=np.bool_)
    if values.dtype == np.int64:
        return np.asarray(values == INT_MISSING, dtype=np.bool_)
    return np.asarray(values < 0, dtype=np.bool_)
