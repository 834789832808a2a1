"""Source of Ascend profiles: text files and databases of torch_npu, MindSpore, msprof and msprof-analyze."""
