"""Kinds of events in a PyTorch trace by category (``cat``), and what names tell of them, as to TensorBoard and HTA."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from tpuprof_tui.lazy_names import lazy_pattern

#: How the names of steps and of nn.Modules begin.
STEP: Final = "ProfilerStep#"
MODULE: Final = "nn.Module: "


class Kind(IntEnum):
    """Kind of an event."""

    OPERATOR = 0
    ANNOTATION = 1
    CALL = 2
    KERNEL = 3
    COPY = 4
    SET = 5
    #: A wait on the device; not counted as work.
    WAIT = 6
    #: The mirror of an annotation on the device; not counted as work.
    MARK = 7
    #: A Python frame.
    FRAME = 8
    #: A Python event of PyTorch before 1.12, which counts as CPU activity.
    OLD_FRAME = 9
    OTHER = 10
    #: Events of a device whose name decides what they are: of MTIA, and of other programs.
    NAMED = 11


DEVICE_WORK: Final = (Kind.KERNEL, Kind.COPY, Kind.SET)
ON_DEVICE: Final = (*DEVICE_WORK, Kind.WAIT, Kind.MARK)
ON_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.CALL, Kind.FRAME, Kind.OLD_FRAME)
#: Categories of the profiler's own events.
OF_PROFILER: Final = ("trace", "overhead")

#: Category of events that communicate, whatever their names.
COLLECTIVE_COMM: Final = "collective_comm"
KINDS: Final = {
    "operator": Kind.OPERATOR, "cpu_op": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION,
    # collectives of oneCCL on the host
    COLLECTIVE_COMM: Kind.ANNOTATION,
    **dict.fromkeys(("runtime", "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "xpu_runtime", "xpu_driver",
                     "privateuse1_runtime", "privateuse1_driver", "mtia_runtime", "hpu_op"), Kind.CALL),
    "kernel": Kind.KERNEL,
    "memcpy": Kind.COPY, "gpu_memcpy": Kind.COPY,
    "memset": Kind.SET, "gpu_memset": Kind.SET,
    # nodes of graphs that run a function on the host, or record an event, while the stream waits
    **dict.fromkeys(("cuda_sync", "xpu_sync", "graph_host_node", "graph_event_node"), Kind.WAIT),
    "gpu_user_annotation": Kind.MARK,
    "python_function": Kind.FRAME, "python": Kind.OLD_FRAME,
    "mtia_ccp_events": Kind.NAMED,
    # unitrace of Intel
    "gpu_op": Kind.NAMED,
    # rocprofv3 of AMD
    "kernel_dispatch": Kind.KERNEL, "memory_copy": Kind.COPY, "marker_api": Kind.ANNOTATION,
    **dict.fromkeys(("hip_api", "hsa_api", "rccl_api", "rocdecode_api", "rocjpeg_api"), Kind.CALL),
}  # fmt: skip

#: Process of the host's events in traces of ``EventList.export_chrome_trace``, which have no categories.
LEGACY_HOST: Final = "CPU functions"
#: How the names of the processes of its devices end ("CUDA functions"); the number of the device is their thread.
_LEGACY_DEVICE: Final = " functions"


def kind_of(category: str, process: Any, thread: Any) -> Kind:
    """Kind of the events of a category, process and thread (see `legacy_lanes`)."""
    if not category and process == LEGACY_HOST:
        return Kind.OPERATOR
    if not category and isinstance(thread, str) and thread.endswith(_LEGACY_DEVICE):
        return Kind.KERNEL
    return KINDS.get(category.lower(), Kind.OTHER)


def legacy_lanes(
    categories: Iterable[str], processes: Iterable[Any], threads: Iterable[Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Processes and threads of events; of legacy events of a device its number is the process."""
    pairs = [
        (thread, process) if not category and isinstance(process, str) and process.endswith(_LEGACY_DEVICE)
        and process != LEGACY_HOST else (process, thread)
        for category, process, thread in zip(categories, processes, threads, strict=True)
    ]  # fmt: skip
    found, others = zip(*pairs, strict=True)
    return found, others


def is_legacy(category: str, process: Any, thread: Any) -> bool:
    """Whether the kind of such events is known by their process alone."""
    return not category and kind_of(category, process, thread) != Kind.OTHER


#: Names of kernels that use tensor cores contain one of these.
TENSOR_CORES: Final = (
    "h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel",
    "conv1x1", "conv2d_c1_k1", "direct_group", "xmma_implicit_gemm", "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm", "c1688",
)  # fmt: skip
#: What else tells that a kernel uses them: CUTLASS, cuDNN, instructions since Hopper, attention, products of Triton.
_USES: Final = lazy_pattern(
    r"_tensorop_|OpClassTensorOp|wmma|[gG]mma|GMMA|[uU]mma|tcgen05|(?<![a-z])[idq]mma|xmma_(?:fprop|dgrad|wgrad)|d884"
    r"|168(?:32|64)|tensor\d+x\d+x\d+|nvjet|deep_gemm|sm(?:90|100|120)_\w*gemm|[mM]arlin"
    r"|flash_(?:attn_)?(?:fwd|bwd|fprop|bprop)|FlashAttn(?:Fwd|Bwd)|fmha_(?:cutlass[FB]_b?f16|v2)|fmhaSm|PrefillWith"
    r"|triton_tem_|^_*(?:attn_[fb]wd|fused_moe_kernel|matmul_(?:kernel|ogs)|kernel_unified_attention)"
    r"|_grouped_kernel_stage1"
)
#: Kernels that use none, whatever else their name holds, and kernels whose task needs none.
_NEVER: Final = lazy_pattern(
    r"simt|ffma|(?<![a-z\d])(?:gc|[sdcz])gemm|scudnn|convolve_\w*gemm|flash_bwd_(?:dot|convert|preprocess)|_combine"
    r"|TensorOpWith|[sS]plitK_?[rR]educe|gemv"
)
_NEEDS_NONE: Final = lazy_pattern(
    r"at::native::|cub::|thrust::|nccl|cudnn::|cask_cudnn|fft|winograd|[wd]grad\w*_(?:engine|alg)|fbgemm_gpu::|embedding"
    r"|multi_tensor_apply|triton_(?:poi|red|per|for|spl)_|elementwise|layer_?norm|rms_?norm|batch_?norm|rotary|silu"
    r"|softmax_(?:warp|kernel)|reduce_kernel|cunn_|paged_attention_v|Memcpy|Memset|dot_kernel|reshape_and_cache"
    r"|epilogue::|transpose|[nN]hwcTo[nN]|nchwTo|permute_|_indices_kernel"
)
_ATEN: Final = (
    "_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution "
    "cudnn_convolution cudnn_convolution_transpose prelu addmm addmv addr matmul mm mv linear addbmm baddbmm bmm "
    "chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell "
    "rnn_relu_cell cudnn_convolution_transpose_backward cudnn_convolution_backward_weight addmm_ "
    "cudnn_convolution_transpose_backward_weight cudnn_convolution_transpose_backward_input "
    "cudnn_convolution_backward_input cudnn_convolution_backward"
)
#: Cards whose kernel names do not follow these patterns.
OTHER_CARDS: Final = lazy_pattern(r"AMD|Radeon|Instinct|Intel|MTIA|ARTEMIS", re.IGNORECASE)
#: Operators that can use tensor cores.
ELIGIBLE: Final = frozenset(f"aten::{name}" for name in _ATEN.split()) | {
    "CudnnConvolutionBackward", "BmmBackward0", "CudnnConvolutionTransposeBackward", "MmBackward", "AddmvBackward",
    "MvBackward", "AddmmBackward", "AddbmmBackward",
}  # fmt: skip
#: Annotations that are nodes of the tree of operators, in addition to steps and data loaders.
TREE_COLLECTIVES: Final = frozenset(
    f"{library}:{name}" for library in ("nccl", "gloo")
    for name in ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter")
)  # fmt: skip
_NO_OPERATOR: Final = (STEP, "Optimizer.", "enumerate(Data")
_NO_OPERATORS: Final = ("DataParallel.forward", "DistributedDataParallel.forward")
#: Names of communication kernels.
COMMUNICATION: Final = lazy_pattern(
    r"nccl|rccl|msccl|oneccl|(?:all-(?:reduce|gather|to-all)|reduce-scatter|collective-permute)(?:[-.\d]|$)",
    re.IGNORECASE,
)
#: Names of host events that communicate.
COLLECTIVE: Final = lazy_pattern(r"(?:nccl|gloo|mpi|ucc|xccl|hccl):")
LOADER: Final = lazy_pattern(r"enumerate\(DataLoader\)#.*\.__next__|enumerate\(DataPipe\)#.*")
#: Kinds of the events that load data.
LOADER_KINDS: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.OLD_FRAME, Kind.FRAME)
#: Bytes per element, by type.
ELEMENT_BYTES: Final = {
    "long int": 8, "float": 4, "int": 4, "c10::Half": 2, "c10::BFloat16": 2, "unsigned char": 1,
}  # fmt: skip


@lru_cache(1 << 14)
def uses_tensor_cores(name: str) -> bool:
    """Whether a kernel uses tensor cores, by TensorBoard's list of names."""
    return any(part in name for part in TENSOR_CORES)


@lru_cache(1 << 14)
def tensor_core_use(name: str) -> bool | None:
    """Whether a kernel of an NVIDIA card uses tensor cores, by more names than TensorBoard's list; None: unknown."""
    if _NEVER.search(name):
        return False
    if uses_tensor_cores(name) or _USES.search(name):
        return True
    return False if _NEEDS_NONE.search(name) else None


def is_tree_annotation(name: str) -> bool:
    """Whether an annotation is a node of the tree of operators."""
    return name.startswith(STEP) or name in TREE_COLLECTIVES or bool(LOADER.fullmatch(name))


def is_operator(name: str) -> bool:
    """Whether an event of category operator is an operator, by its name."""
    return not name.startswith(_NO_OPERATOR) and name not in _NO_OPERATORS


COLLECTIVES: Final = "communication"
COPY: Final = "copy"
OTHER: Final = "other"
#: Work that computes little for each element that it reads or writes, so that it can be part of another kernel.
FUSIBLE: Final = frozenset({"elementwise", "normalisation", "reduction"})
#: Parts of the names of operators and kernels, by category; the first that fits decides.
_NAMES: Final = (
    (COLLECTIVES, lazy_pattern(r"(?:nccl|gloo|mpi|ucc|xccl|hccl):|^_?c10d|all_reduce|all_gather|reduce_scatter"
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
        return COLLECTIVES
    known = (category for text in (operator, kernel) for category, names in _NAMES if text and names.search(text))
    return next(known, OTHER)
