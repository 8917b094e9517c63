"""A folder on the path of Spark's Python workers; Python itself imports `sitecustomize` from it."""
