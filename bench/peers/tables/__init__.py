"""The contenders, each as one class. They run in a worker, some with another PySpark than ours.

So `hudi`, `paimon`, `session` and `table` import nothing but PySpark.
"""
