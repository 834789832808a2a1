"""NumPy array types used by the reader."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
U8 = npt.NDArray[np.uint8]
#: Contents of a file.
Bytes = U8
