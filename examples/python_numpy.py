#!/usr/bin/env python3
"""python_numpy.py - kernels on NumPy's arrays, and on PyTorch's where it is installed.

    PYTHONPATH=python python3 examples/python_numpy.py        # in the source folder, after make

Ends with status 77 where NumPy is missing.  docs/python.md says more."""
import sys
import time

import kiln

try:
    import numpy as np
except ImportError:
    print("NumPy is missing")
    sys.exit(77)

SOURCE = """
kernel softmax(i64 rows, i64 cols, type T = f32, T y[rows][cols], const T x[rows][cols],
               f32 temperature = 1, optional f32 top[rows], constexpr i64 BLOCK = pow2ceil(cols))
    grid(rows)
{
    i64 r = program_id(0);
    auto v = (f32)load(x[r][0:BLOCK], -inf) / temperature;
    auto m = max(v);
    auto e = exp(v - m);
    y[r][0:BLOCK] = (T)(e / sum(e));
    if (given(top))
        top[r] = m;
}
"""


def reference(x, temperature=1.0):
    e = np.exp((x - x.max(1, keepdims=True)) / temperature)
    return e / e.sum(1, keepdims=True)


def main():
    m = kiln.compile(SOURCE, "softmax.kiln")
    print(m.softmax.help())
    x = np.random.default_rng(0).standard_normal((1000, 781)).astype("f4")

    y = m.softmax(x=x)                               # allocated here: a NumPy array, as x is
    error = abs(y - reference(x.astype("f8"))).max()
    start = time.perf_counter()
    m.softmax(x=x, y=y)                              # into an array of one's own
    ms = (time.perf_counter() - start) * 1e3
    print("numpy: %s %s on %s, %.3f ms, largest error %.1e" %
          (y.dtype, y.shape, kiln.context(), ms, error))
    assert error < 1e-6

    y, top = m.softmax(x=x, temperature=0.5, top=kiln.OUT)  # an optional output
    assert abs(y - reference(x.astype("f8"), 0.5)).max() < 1e-6
    assert (top == (x * 2).max(1)).all()

    a = kiln.nn.gemm(x, x.T)                         # the library; any strides
    assert np.allclose(a, x.astype("f8") @ x.T, rtol=1e-4, atol=1e-3)

    try:
        m.softmax(x=x, y=np.empty((1000, 780), "f4"))
    except kiln.ArgumentError as e:
        print("refused, as it should be:\n%s" % e)
    else:
        raise AssertionError("a wrong shape was taken")

    try:
        import torch
    except ImportError:
        print("torch: not installed")
        return
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        t = torch.from_numpy(x).to(device, torch.bfloat16)
        y = m.softmax(x=t)                           # on the tensor's device and current stream
        want = torch.softmax(t.float(), 1)
        error = (y.float() - want).abs().max().item()
        print("torch: %s on %s, largest error %.1e" % (y.dtype, y.device, error))
        assert y.dtype == torch.bfloat16 and y.device == t.device and error < 2e-3


main()
