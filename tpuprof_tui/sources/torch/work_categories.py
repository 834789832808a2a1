"""Categories of device work: by the operator that launched it, else by the name of the kernel."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tpuprof_tui.lazy_names import lazy_pattern

from .kernel_names import COMMUNICATION

COMMUNICATION: Final = "communication"
COPY: Final = "copy"
OTHER: Final = "other"
#: Work that computes little for each element that it reads or writes, so that it can be part of another kernel.
FUSIBLE: Final = frozenset({"elementwise", "normalisation", "reduction"})
#: Parts of the names of operators and kernels, by category; the first that fits decides.
_NAMES: Final = (
    (COMMUNICATION, lazy_pattern(r"(?:nccl|gloo|mpi|ucc|xccl|hccl):|^_?c10d|all_reduce|all_gather|reduce_scatter"
                              r"|all_to_all")),
    ("optimizer", lazy_pattern(r"_foreach_|_fused_(?:adam|sgd|adagrad)|multi_tensor_apply|(?<![a-z])[Aa]dam")),
    ("MoE", lazy_pattern(r"(?<![a-zA-Z])moe(?![a-z])|expert|_grouped_mm|grouped_gemm|matmul_ogs|routing|bitmatrix")),
    ("attention", lazy_pattern(r"attention|attn|fmha|flash_(?:fwd|bwd)|(?:Prefill|Decode)With|reshape_and_cache"
                               r"|(?<![a-z])mla_")),
    ("convolution", lazy_pattern(r"conv(?:\dd|olution|olve|_)|[wd]grad|winograd|scudnn|implicit_gemm|igemm_"
                                 r"|[nN](?:chwTo|hwcTo)")),
    ("quantised GEMM", lazy_pattern(r"scaled_(?:fp4_)?mm|_int_mm|int[48]pack_mm|w8a8|w4a16|gptq|awq|[mM]arlin|machete"
                                    r"|f8f8bf16|f8i4bf16|deep_gemm|fp8_\w*(?:gemm|linear|mm)|gemm_\w*fp8|blockscale_gemm"
                                    )),
    ("GEMM", lazy_pattern(r"(?:^|::)(?:_?mm|bmm|addmm|baddbmm|matmul|linear|addmv|mv|dot|einsum)(?:_\w*)?$"
                          r"|(?<!fb)[Gg]emm|GEMM|gemv|Cijk_|nvjet|_matmul|matmul_|triton_tem_")),
    ("normalisation", lazy_pattern(r"(?i:(?:layer|batch|group|rms|instance)_?norm)|bn_(?:fw|bw)")),
    ("pooling", lazy_pattern(r"pool|interpolate|upsample")),
    ("reduction", lazy_pattern(r"softmax|[rR]educe|triton_(?:red|per)_|norm_kernel|cross_entropy|nll_loss|(?:^|::)"
                               r"(?:sum|mean|max|min|amax|amin|all|any|argmax|argmin|linalg_vector_norm|norm|std|var|cumsum"
                               r"|logsumexp|prod)(?:_\w*)?$")),
    ("indexing", lazy_pattern(r"index|gather|scatter|(?<!rotary_)embedding|sort|topk|radix|cub::|(?:^|::)(?:nonzero"
                              r"|unique\w*|masked_\w+)$")),
    ("elementwise", lazy_pattern(r"elementwise|triton_(?:poi|for)_|rotary|silu|gelu|swiglu|dropout|threshold|transpose"
                                 r"|permute|TensorOp|CatArray|distribution|_loss(?:_backward)?$|(?:^|::)(?:add|sub|mul"
                                 r"|div|pow|neg|exp|log|sqrt|rsqrt|tanh|sigmoid|relu|eq|ne|lt|gt|le|ge|clamp\w*|cos|sin"
                                 r"|abs|to|copy|_to_copy|zero|fill|arange|where|hardtanh|bitwise_\w+|logical_\w+|lerp"
                                 r"|reciprocal|erf|addcmul|addcdiv|tril|triu|cat|stack|repeat|roll|flip)_?"
                                 r"(?:_backward)?$")),
)  # fmt: skip
CATEGORIES: Final = (*(category for category, _ in _NAMES), COPY, OTHER)


@lru_cache(1 << 14)
def category_of(operator: str, kernel: str) -> str:
    """Category of a kernel that an operator launched (empty: not known)."""
    if COMMUNICATION.match(kernel):
        return COMMUNICATION
    known = (category for text in (operator, kernel) for category, names in _NAMES if text and names.search(text))
    return next(known, OTHER)
