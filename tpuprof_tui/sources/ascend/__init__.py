"""What Huawei's CANN writes: folders of torch_npu, MindSpore, msprof and msprof-analyze, as text and as databases."""
