"""Name patterns that classify events, as in the TensorBoard plugin and HTA."""

from __future__ import annotations

import re
from typing import Final

from ..read.steps import STEP

#: Names of kernels that use tensor cores contain one of these.
TENSOR_CORES: Final = (
    "h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel",
    "conv1x1", "conv2d_c1_k1", "direct_group", "xmma_implicit_gemm", "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm", "c1688",
)  # fmt: skip
#: Names of kernels since Hopper, of CUTLASS and of Triton's products: used for advice only, not for shares.
_NEWER: Final = ("nvjet", "tensorop", "wgmma", "tcgen05", "deep_gemm", "triton_tem_")
_ATEN: Final = (
    "_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution "
    "cudnn_convolution cudnn_convolution_transpose prelu addmm addmv addr matmul mm mv linear addbmm baddbmm bmm "
    "chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell "
    "rnn_relu_cell cudnn_convolution_transpose_backward cudnn_convolution_backward_weight addmm_ "
    "cudnn_convolution_transpose_backward_weight cudnn_convolution_transpose_backward_input "
    "cudnn_convolution_backward_input cudnn_convolution_backward"
)
#: Cards whose kernel names do not follow these patterns.
OTHER_CARDS: Final = re.compile(r"AMD|Radeon|Instinct|Intel|MTIA|ARTEMIS", re.IGNORECASE)
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
LOADER: Final = re.compile(r"enumerate\(DataLoader\)#.*\.__next__|enumerate\(DataPipe\)#.*")
#: Bytes per element, by type.
ELEMENT_BYTES: Final = {
    "long int": 8, "float": 4, "int": 4, "c10::Half": 2, "c10::BFloat16": 2, "unsigned char": 1,
}  # fmt: skip


def uses_tensor_cores(name: str) -> bool:
    """Whether a kernel uses tensor cores, by its name."""
    return any(part in name for part in TENSOR_CORES)


def may_use_tensor_cores(name: str) -> bool:
    """Whether a kernel may use tensor cores, by names that the peers' lists lack too."""
    return uses_tensor_cores(name) or any(part in name for part in _NEWER)


def is_tree_annotation(name: str) -> bool:
    """Whether an annotation is a node of the tree of operators."""
    return name.startswith(STEP) or name in TREE_COLLECTIVES or bool(LOADER.fullmatch(name))
