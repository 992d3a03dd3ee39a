#!/usr/bin/env python3
"""NumPy as a peer of `kiln bench`: what its users write.  Products of matrices are its BLAS."""
import math
import sys

import kiln_peer

try:
    import numpy as np
except ImportError as e:
    kiln_peer.missing("numpy", str(e))
    sys.exit(0)

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


def one(name, shape, dtype, fn):
    """An implementation with one output, which fn(arrays, output) fills."""
    def make(a):
        y = np.empty(shape, dtype)
        return (lambda: fn(a, y)), (lambda: {name: y})
    return make


def softmax(a, y):
    x = a["x"]
    np.subtract(x, x.max(axis=1, keepdims=True), out=y)
    np.exp(y, out=y)
    np.divide(y, y.sum(axis=1, keepdims=True), out=y)


def gelu_tanh(a, y):
    x = a["x"]
    u = x * x
    u *= 0.044715
    u += 1
    u *= x
    u *= math.sqrt(2 / math.pi)
    np.tanh(u, out=u)
    u += 1
    u *= x
    np.multiply(u, 0.5, out=y)


def layernorm(a, y, eps):
    x = a["x"]
    np.subtract(x, x.mean(axis=1, keepdims=True), out=y)
    v = np.einsum("ij,ij->i", y, y)[:, None] / x.shape[1]
    y /= np.sqrt(v + eps).astype(x.dtype)
    if "gamma" in a:
        y *= a["gamma"]
    if "beta" in a:
        y += a["beta"]


def rmsnorm(a, y, eps):
    x = a["x"]
    v = np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1]
    np.divide(x, np.sqrt(v + eps).astype(x.dtype), out=y)
    if "gamma" in a:
        y *= a["gamma"]


def find(case):
    if not case.dtypes() <= TYPES.keys():
        return "numpy has no " + ", ".join(sorted(case.dtypes() - TYPES.keys()))
    k, eps = case.kernel, case.scalars.get("eps", 1e-5)
    out = [n for n, a in case.arrays.items() if a["writes"]]
    if len(out) != 1:
        return "it does not do this kernel"
    o = out[0]
    fn = {
        "softmax": softmax, "softmax_online": softmax, "tanh_form": gelu_tanh,
        "layernorm": lambda a, y: layernorm(a, y, eps),
        "layernorm_looped": lambda a, y: layernorm(a, y, eps),
        "rmsnorm": lambda a, y: rmsnorm(a, y, eps),
        "rmsnorm_looped": lambda a, y: rmsnorm(a, y, eps),
        "rowsum": lambda a, y: np.sum(a["x"], axis=1, out=y),
        "rowsum_short": lambda a, y: np.sum(a["x"], axis=1, out=y),
        "transpose": lambda a, y: np.copyto(y, a["x"].T),
        "add": lambda a, y: np.add(a["x"], a["y"], out=y),
        "matmul": lambda a, y: np.matmul(a["a"], a["b"], out=y),
    }.get(k)
    if k == "erf_form":
        return "numpy has no erf"
    if not fn or (k == "matmul" and ("bias" in case.arrays or case.scalars.get("ACT", 0))):
        return "it does not do this kernel"
    return [("numpy", one(o, case.shape(o), TYPES[case.dtype(o)], fn))]


kiln_peer.serve("numpy", np.__version__, find)
