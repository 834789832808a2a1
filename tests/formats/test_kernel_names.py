"""Names of kernels that people can read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.formats.kernel_names import readable_names

ARRAY = "at::detail::Array<char*, 2>"
ADD = f"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, {ARRAY} >(int, {ARRAY})"
CLAMP = ("void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar("
         "at::TensorIteratorBase&, c10::Scalar)::{lambda()#1}::operator()() const::{lambda(double)#1}, "
         f"{ARRAY} >(int)")  # fmt: skip


@pytest.mark.parametrize(("name", "shown"), [
    (ADD, "vectorized_elementwise_kernel<4, CUDAFunctor_add>"),
    (CLAMP, "vectorized_elementwise_kernel<4, launch_clamp_scalar>"),
    ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_nn_align4>(Params)",
     "cutlass_80_tensorop_s1688gemm_64x64_nn_align4"),
    ("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::CUDAFunctor_add<float> >("
     "at::TensorIteratorBase&)::{lambda(int)#1}>(int)", "elementwise_kernel<128, 2, CUDAFunctor_add>"),
    ("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
     "ncclDevKernel_AllReduce_Sum_f16_RING_LL"),
    ("_ZN2ck16tensor_operation6device12kernel_batchINS_5TupleEEEvv", "kernel_batch"),
    *((name, name) for name in ("aten::mm", "nccl:all_reduce", "train.py(10): <module>", "<built-in method foo>",
                                "nn.Module: A_0", "ProfilerStep#3", "Memcpy HtoD (Pageable -> Device)", "MM2_NN",
                                "sm80_xmma_gemm_f16f16_tn", "enumerate(DataLoader)#_Iter.__next__")),
])  # fmt: skip
def test_what_is_shown(name, shown):
    assert readable_names([name]) == {name: shown}


def test_distinct_names_stay_distinct():
    names = [ADD, ADD.replace("float", "double"), ADD.replace("(int", "(long"), "vectorized_elementwise_kernel"]
    shown = readable_names(names)
    assert len(set(shown.values())) == 4
    assert shown[ADD.replace("float", "double")] == "vectorized_elementwise_kernel<4, CUDAFunctor_add<double>>"
    # what differs in parameters alone is shown whole
    assert shown[ADD] == ADD


@given(st.lists(st.text("ab<>(){}:,& _Z12", max_size=30)))
def test_any_names(names):
    shown = readable_names(names)
    assert set(shown) == set(names)
    assert len(set(shown.values())) == len(shown)
    assert all(text or not name for name, text in shown.items())
