"""Work of operators by the shapes and types of their inputs: floating-point operations, and bytes read and written.

A multiply-add counts as two operations; each input and output as read or written once, which no kernel can undercut.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from tpuprof_tui.lazy_names import lazy_pattern

Shape = Sequence[int]
#: Bytes per element, by type.
ELEMENT_BYTES: Final = {
    "c10::Half": 2, "c10::BFloat16": 2, "float": 4, "double": 8, "signed char": 1, "unsigned char": 1, "int": 4,
    "long int": 8, "bool": 1, "short int": 2, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1,
}  # fmt: skip
#: The same by PyTorch's number of the type, as arguments have it.
_BYTES_OF_TYPE: Final = {"0": 1, "1": 1, "3": 4, "5": 2, "6": 4, "7": 8, "15": 2}


class Lengths(NamedTuple):
    """Sums over the requests of a batch: of numbers of queries and keys, of queries squared and of queries by keys."""

    queries: int
    keys: int
    squares: int
    pairs: int


class Call(NamedTuple):
    """Inputs of a call of an operator."""

    dims: Sequence[Shape]  #: Shape of each input, empty if it is no tensor
    sizes: Sequence[int | None]  #: Bytes per element of each; None if its type is not known
    args: Sequence[Any] = ()  #: Values of each that are no tensors, as text
    lengths: Lengths | None = None  #: Of the batch that it runs for, if an annotation tells them

    def moved(self, *parts: tuple[int, int | None]) -> int | None:
        """Bytes of some elements (number, bytes of each); None if one is not known."""
        known = [count * size for count, size in parts if size is not None]
        return sum(known) if len(known) == len(parts) else None


#: Operations; and bytes, None if a type is not known.
Work = tuple[int, "int | None"]
Formula = Callable[[Call], "Work | None"]

_VLLM: Final = lazy_pattern(r"sq(\d{1,15})sk(\d{1,15})sqsq(\d{1,18})sqsk(\d{1,18})")
_SGLANG: Final = tuple(lazy_pattern(rf"\b[cg]_{key}=(\d{{1,18}})") for key in ("sq", "sk", "sqsq", "sqsk"))


def lengths_in_name(name: str) -> Lengths | None:
    """The lengths that the name of an annotation of vLLM or SGLang tells; None if it tells none."""
    found = [sum(map(int, of_part)) for of_part in zip(*_VLLM.findall(name), strict=True)]
    found = found or [sum(map(int, pattern.findall(name))) for pattern in _SGLANG]
    return Lengths(*found) if found[1] else None


# -- products


def _product(left: int, right: int, call: Call, out: int | None = None, *, transposed: bool = False) -> Work | None:
    """(..., m, k) times (..., k, n), the right one transposed if so; ``out``: bytes of an element of the product."""
    one, two = call.dims[left], call.dims[right]
    inner, columns = (two[-1], two[-2]) if transposed else (two[-2], two[-1])
    if len(one) != len(two) or len(one) not in (2, 3) or one[-1] != inner:
        return None
    batch, lines = math.prod(one[:-2]), one[-2]
    size = call.sizes[left]
    return 2 * batch * lines * inner * columns, call.moved(
        (math.prod(one), size), (math.prod(two), call.sizes[right]), (batch * lines * columns, out or size)
    )


def _scaled_product(call: Call) -> Work | None:
    """Of 8-bit numbers; its seventh argument is the type of the product."""
    return _product(0, 1, call, _BYTES_OF_TYPE.get(str(call.args[6])) if len(call.args) > 6 else None)


def _into_product(call: Call) -> Work | None:
    """The first input is the product of the two that follow."""
    return _product(1, 2, call, call.sizes[0])


def _packed_product(columns: Callable[[Call], int], call: Call) -> Work | None:
    """A matrix times packed weights of ``columns`` columns."""
    lines, inner = call.dims[0]
    out = lines * columns(call)
    moved = call.moved((math.prod(call.dims[0]), call.sizes[0]), (math.prod(call.dims[1]), call.sizes[1]),
                       (out, call.sizes[0]))  # fmt: skip
    return 2 * out * inner, moved


def _grouped_product(call: Call) -> Work | None:
    """Lines of a matrix (m, k), each times the weights (k, n) of one of several experts."""
    data, weights = call.dims[:2]
    if len(data) == len(weights) == 3:
        return _product(0, 1, call)
    if len(data) != 2 or len(weights) != 3 or data[1] != weights[1]:
        return None
    out = data[0] * weights[2]
    return 2 * out * data[1], call.moved((math.prod(data), call.sizes[0]), (math.prod(weights), call.sizes[1]),
                                         (out, call.sizes[0]))  # fmt: skip


def _experts(call: Call) -> Work | None:
    """Tokens (t, h), weights (experts, 2 i, h) and (experts, h, i), choice (t, k): two products for each choice.

    Of the weights those of as many experts as there are choices are read, at most of all.
    """
    tokens, gates, down, chosen = call.dims[:4]
    if (len(tokens), len(gates), len(down), len(chosen)) != (2, 3, 3, 2) or tokens[1] != gates[2]:
        return None
    choices, weights = math.prod(chosen), math.prod(gates[1:]) + math.prod(down[1:])
    read = min(gates[0], choices)
    return 2 * choices * weights, call.moved((2 * math.prod(tokens), call.sizes[0]), (read * weights, call.sizes[1]))


# -- attention and convolutions


def _attention(causal: int, call: Call) -> Work | None:
    """Query, key and value of (batch, heads, length, size); a causal mask (argument ``causal``) halves the work."""
    query, key, value = call.dims[:3]
    if not len(query) == len(key) == len(value) == 4:
        return None
    heads, length, size = query[0] * query[1], query[2], query[3]
    both = 2 * heads * length * key[2] * (size + value[3])
    elements = math.prod(query) + math.prod(key) + math.prod(value) + heads * length * value[3]
    masked = len(call.args) > causal and str(call.args[causal]) == "True"
    return both // 2 if masked else both, call.moved((elements, call.sizes[0]))


def _paged_attention(call: Call) -> Work | None:
    """Query, key and value of (tokens, heads, size), over all keys in the cache, whose number an annotation tells.

    A query sees the keys before it: of n queries of a request (n² - n) / 2 fewer than all.
    """
    query, key, value = call.dims[:3]
    lengths = call.lengths
    if lengths is None or not len(query) == len(key) == len(value) == 3:
        return None
    pairs = lengths.pairs - max(lengths.squares - lengths.queries, 0) // 2
    of_cache = lengths.keys * key[1] * (key[2] + value[2])
    return 2 * pairs * query[1] * (query[2] + value[2]), call.moved(
        (lengths.queries * query[1] * (query[2] + value[2]), call.sizes[0]), (of_cache, call.sizes[1])
    )


def _convolution(call: Call) -> Work | None:
    """Input (batch, channels, ...), weight (channels out, channels in of a group, ...), then stride and padding."""
    (data, weight), size = call.dims[:2], call.sizes[0]
    stride, padding, dilation = (_counts(call.args[index], len(data) - 2) for index in (3, 4, 5))
    if len(data) < 3 or len(data) != len(weight) or not stride or not padding or not dilation:
        return None
    read = math.prod(data) + math.prod(weight)
    if len(call.args) > 6 and str(call.args[6]) == "True":
        # transposed: each input element is multiplied by the whole weight
        return 2 * math.prod(data) * weight[1] * math.prod(weight[2:]), call.moved((read, size))
    sizes = [(size + 2 * pad - far * (wide - 1) - 1) // step + 1 for size, pad, far, wide, step in
             zip(data[2:], padding, dilation, weight[2:], stride, strict=True)]  # fmt: skip
    out = data[0] * weight[0] * math.prod(sizes)
    return 2 * out * math.prod(weight[1:]), call.moved((read + out, size))


def _numbers(text: Any) -> list[int]:
    """A list of numbers, or one number, given as such or as JSON; empty if it is neither."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return []
    found = found if isinstance(found, list) else [found]
    return found if all(type(each) is int and abs(each) < 1 << 20 for each in found) else []


def _counts(text: Any, count: int) -> list[int]:
    """A list of ``count`` numbers from 0, a single one repeated; empty if it is no such list."""
    found = _numbers(text)
    if any(each < 0 for each in found):
        return []
    return found * count if len(found) == 1 else found if len(found) == count else []


# -- work on each element


def _elementwise(writes: str, call: Call) -> Work | None:
    """Reads all inputs and writes one of their common shape: ``first`` in place, ``flags``, or of the largest type."""
    inputs = [(shape, size) for shape, size in zip(call.dims, call.sizes, strict=False) if shape and size]
    if not inputs:
        return None
    out = math.prod(_common_shape([shape for shape, _ in inputs]))
    size = {"first": inputs[0][1], "flags": 1}.get(writes, max(size for _, size in inputs))
    return out, call.moved(*((math.prod(shape), size) for shape, size in inputs), (out, size))


def _common_shape(shapes: list[Shape]) -> list[int]:
    """The shape that others are broadcast to."""
    width = max(map(len, shapes))
    padded = [[1] * (width - len(shape)) + list(shape) for shape in shapes]
    return [max(sizes) if min(sizes) else 0 for sizes in zip(*padded, strict=True)]


def _passes(operations: int, passes: Sequence[tuple[int, int]], call: Call) -> Work | None:
    """``operations`` for each element of the first input of ``passes``: an input, and how often its bytes are moved."""
    count = math.prod(call.dims[passes[0][0]])
    read = ((times * math.prod(call.dims[index]), call.sizes[index]) for index, times in passes if call.dims[index])
    return (operations * count, call.moved(*read)) if call.dims[passes[0][0]] else None


def _reduction(call: Call) -> Work | None:
    """Reads the first input and writes one value for the lines along the axes of the second argument, or for all."""
    shape, size = call.dims[0], call.sizes[0]
    axes = _numbers(call.args[1]) if len(call.args) > 1 else []
    kept = [length for axis, length in enumerate(shape) if axes and not {axis, axis - len(shape)} & set(axes)]
    return (math.prod(shape), call.moved((math.prod(shape) + math.prod(kept), size))) if shape else None


_ELEMENTWISE: Final = (
    "add sub mul div pow neg exp log sqrt rsqrt tanh sigmoid relu silu gelu clamp clamp_min clamp_max cos sin abs "
    "reciprocal erf where maximum minimum addcmul addcdiv lerp threshold_backward gelu_backward silu_backward "
    "tanh_backward sigmoid_backward"
)
_FLAGS: Final = "eq ne lt le gt ge logical_and logical_or logical_not isnan"
_REDUCTIONS: Final = "sum mean max min amax amin all any argmax argmin prod var std logsumexp"
#: Operations for each element of normalisations and softmax, about, and which inputs they move how often, with what
#: they write in their shape.
_PASSES: Final = {
    "native_layer_norm": (8, ((0, 2), (2, 1), (3, 1))), "native_layer_norm_backward": (16, ((1, 2), (0, 1), (5, 1))),
    "native_batch_norm": (8, ((0, 2), (1, 1), (2, 1))), "native_batch_norm_backward": (16, ((1, 2), (0, 1), (2, 1))),
    "cudnn_batch_norm": (8, ((0, 2), (1, 1), (2, 1))), "cudnn_batch_norm_backward": (16, ((0, 2), (1, 1), (2, 1))),
    "miopen_batch_norm": (8, ((0, 2), (1, 1), (2, 1))), "miopen_batch_norm_backward": (16, ((0, 2), (1, 1), (2, 1))),
    "native_group_norm": (8, ((0, 2), (1, 1), (2, 1))), "rms_norm": (6, ((0, 2), (2, 1))),
    "_fused_rms_norm": (6, ((0, 2), (2, 1))), "_softmax": (5, ((0, 2),)), "_log_softmax": (5, ((0, 2),)),
    "_softmax_backward_data": (4, ((0, 2), (1, 1))), "_log_softmax_backward_data": (4, ((0, 2), (1, 1))),
    "copy_": (0, ((0, 1), (1, 1))), "fill_": (0, ((0, 1),)), "zero_": (0, ((0, 1),)),
}  # fmt: skip


def _formulas() -> Iterator[tuple[str, Formula]]:
    for name in _ELEMENTWISE.split():
        yield f"aten::{name}", partial(_elementwise, "")
        yield f"aten::{name}_", partial(_elementwise, "first")
    yield from ((f"aten::{name}", partial(_elementwise, "flags")) for name in _FLAGS.split())
    yield from ((f"aten::{name}", _reduction) for name in _REDUCTIONS.split())
    yield from ((f"aten::{name}", partial(_passes, *of)) for name, of in _PASSES.items())
    yield "_C::rms_norm", partial(_passes, 6, ((1, 1), (0, 1), (2, 1)))
    yield "_C::fused_add_rms_norm", partial(_passes, 7, ((0, 2), (1, 2), (2, 1)))
    yield from ((f"aten::{name}", partial(_product, 0, 1)) for name in ("mm", "bmm"))
    yield from ((f"aten::{name}", partial(_product, 1, 2)) for name in ("addmm", "baddbmm"))
    yield "aten::_scaled_mm", _scaled_product
    yield "aten::_int_mm", partial(_product, 0, 1, out=4)
    yield "aten::_weight_int4pack_mm", partial(_packed_product, lambda call: call.dims[3][1])
    yield "aten::_weight_int8pack_mm", partial(_packed_product, lambda call: call.dims[1][0])
    yield from ((f"{library}::cutlass_scaled_mm", _into_product) for library in ("_C", "vllm"))
    yield from ((f"fbgemm::{name}", partial(_product, 0, 1, out=2, transposed=True))
                for name in ("f8f8bf16", "f8f8bf16_rowwise"))  # fmt: skip
    yield from ((f"sgl_kernel::{name}_scaled_mm", partial(_product, 0, 1, out=2))
                for name in ("fp8", "int8", "fp8_blockwise"))  # fmt: skip
    yield "aten::_grouped_mm", _grouped_product
    yield from ((f"{library}::{place}place_fused_experts", _experts)
                for library in ("vllm", "sglang") for place in ("in", "out"))  # fmt: skip
    yield from ((f"{library}::unified_attention{end}", _paged_attention)
                for library in ("vllm", "sglang") for end in ("", "_with_output"))  # fmt: skip
    yield "aten::convolution", _convolution
    for name, causal in (("scaled_dot_product_attention", 5), ("_scaled_dot_product_flash_attention", 4),
                         ("_scaled_dot_product_efficient_attention", 6),
                         ("_scaled_dot_product_cudnn_attention", 6)):  # fmt: skip
        yield f"aten::{name}", partial(_attention, causal)


#: Work of each operator; operators nested inside these are part of them.
FORMULAS: Final[dict[str, Formula]] = dict(_formulas())


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)


def work_of(name: str, call: Call) -> Work | None:
    """Work of one call of an operator with a formula; None if its inputs do not tell it."""
    if not isinstance(call.dims, list) or not all(map(_is_shape, call.dims)):
        return None
    try:
        found = FORMULAS[name](call)
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError, ZeroDivisionError):
        return None
    if found is None or not 0 <= found[0] < 1 << 62 or not (found[0] or found[1]):
        return None
    return None if found[1] is not None and not 0 < found[1] < 1 << 62 else found
