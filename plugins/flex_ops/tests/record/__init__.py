"""Models that TensorFlow's converter writes with SELECT_TF_OPS, recorded with the outputs of TensorFlow's own function.

`python -m plugins.flex_ops.tests.record` in the repository's root records all models again, with the names of modules of this folder
(`tensor_lists strings`) those of these modules only. It needs TensorFlow; `test_recorded_models.py` runs what is recorded without.
A module of this folder has a function `record_all()`, which calls `record` for each of its models.
"""
