"""The kernels of the benchmark as a Triton user writes them: one tile a row where a row fits, a
loop where it does not.  triton_run(op, ...) gives a list of (variant, function of one input set)."""
import triton
import triton.language as tl


@triton.jit
def gelu(y, x, n, TANH: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    if TANH:
        r = v / (1 + tl.exp(-1.5957691216057308 * (v + 0.044715 * v * v * v)))
    else:
        r = 0.5 * v * (1 + tl.erf(v * 0.7071067811865476))
    tl.store(y + i, r.to(y.dtype.element_ty), mask=i < n)


@triton.jit
def add(z, x, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def saxpy(y, x, a, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    r = a * tl.load(x + i, mask=i < n).to(tl.float32) + tl.load(y + i, mask=i < n).to(tl.float32)
    tl.store(y + i, r.to(y.dtype.element_ty), mask=i < n)


@triton.jit
def softmax(y, x, n, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, B)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + r * n + c, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=c < n)


@triton.jit
def softmax_online(y, x, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    m = tl.full((), -float("inf"), tl.float32)
    s = tl.zeros((), tl.float32)
    for c0 in range(0, n, B):
        c = c0 + tl.arange(0, B)
        v = tl.load(x + row + c, mask=c < n, other=-float("inf")).to(tl.float32)
        k = tl.maximum(m, tl.max(v, axis=0))
        s = s * tl.exp(m - k) + tl.sum(tl.exp(v - k), axis=0)
        m = k
    for c0 in range(0, n, B):
        c = c0 + tl.arange(0, B)
        v = tl.load(x + row + c, mask=c < n, other=0.0).to(tl.float32)
        tl.store(y + row + c, (tl.exp(v - m) / s).to(y.dtype.element_ty), mask=c < n)


@triton.jit
def rowsum(s, x, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    acc = tl.zeros((B,), tl.float32)
    for c0 in range(0, n, B):
        c = c0 + tl.arange(0, B)
        acc += tl.load(x + row + c, mask=c < n, other=0.0).to(tl.float32)
    tl.store(s + tl.program_id(0), tl.sum(acc, axis=0))


@triton.jit
def rowsum_short(s, x, m, n, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    c = tl.arange(0, B)
    v = tl.load(x + r[:, None] * n + c[None, :], mask=(r[:, None] < m) & (c[None, :] < n), other=0.0)
    tl.store(s + r, tl.sum(v.to(tl.float32), axis=1), mask=r < m)


@triton.jit
def norm(y, x, w, b, n, eps, RMS: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    c = tl.arange(0, B)
    v = tl.load(x + row + c, mask=c < n, other=0.0).to(tl.float32)
    if not RMS:
        v = tl.where(c < n, v - tl.sum(v, axis=0) / n, 0.0)
    v = v * tl.rsqrt(tl.sum(v * v, axis=0) / n + eps)
    v = v * tl.load(w + c, mask=c < n).to(tl.float32)
    if not RMS:
        v = v + tl.load(b + c, mask=c < n).to(tl.float32)
    tl.store(y + row + c, v.to(y.dtype.element_ty), mask=c < n)


@triton.jit
def transpose(y, x, m, n, B: tl.constexpr):
    i = tl.program_id(1).to(tl.int64) * B + tl.arange(0, B)
    j = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    v = tl.load(x + i[:, None] * n + j[None, :], mask=(i[:, None] < m) & (j[None, :] < n))
    tl.store(y + j[:, None] * m + i[None, :], tl.trans(v), mask=(j[:, None] < n) & (i[None, :] < m))


@triton.jit
def matmul(c, a, b, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        q = k0 + tl.arange(0, BK)
        x = tl.load(a + i[:, None] * k + q[None, :], mask=(i[:, None] < m) & (q[None, :] < k),
                    other=0.0)
        y = tl.load(b + q[:, None] * n + j[None, :], mask=(q[:, None] < k) & (j[None, :] < n),
                    other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + i[:, None] * n + j[None, :], acc.to(c.dtype.element_ty),
             mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def many(y, a0, a1, a2, a3, a4, a5, a6, a7, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9,
         B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(a0 + i) * s0 + tl.load(a1 + i) * s1 + tl.load(a2 + i) * s2 + tl.load(a3 + i) * s3
    v += tl.load(a4 + i) * s4 + tl.load(a5 + i) * s5 + tl.load(a6 + i) * s6 + tl.load(a7 + i) * s7
    tl.store(y + i, v + s8 * s9)


def triton_run(op, rows, cols):
    """(variant, f(outputs and inputs of a set)) for each variant that is tried."""
    p2 = triton.next_power_of_2(cols)
    runs = []

    def per_row(k, b, warps, extra=()):
        for w in warps:
            def f(y, x, *rest, w=w):
                k[(rows,)](y, x, *rest, cols, *extra, B=b, num_warps=w)
            runs.append((f"B={b} w={w}", f))

    if op.startswith("gelu"):
        for b, w in ((1024, 4), (2048, 4), (4096, 8)):
            def f(y, x, b=b, w=w):
                gelu[(triton.cdiv(cols, b),)](y, x, cols, TANH="tanh" in op, B=b, num_warps=w)
            runs.append((f"B={b} w={w}", f))
    elif op == "add":
        for b, w in ((1024, 4), (4096, 8)):
            def f(z, x, y, b=b, w=w):
                add[(triton.cdiv(cols, b),)](z, x, y, cols, B=b, num_warps=w)
            runs.append((f"B={b} w={w}", f))
    elif op == "saxpy":
        for b, w in ((1024, 4), (4096, 8)):
            def f(y, x, b=b, w=w):
                saxpy[(triton.cdiv(cols, b),)](y, x, 0.5, cols, B=b, num_warps=w)
            runs.append((f"B={b} w={w}", f))
    elif op == "softmax" and cols <= 65536:
        per_row(softmax, p2, (4, 8, 16, 32) if cols > 8192 else (2, 4, 8, 16))
    elif op == "softmax":
        for b in (4096, 8192):
            per_row(softmax_online, b, (8, 16))
    elif op == "rowsum" and cols <= 256:
        for r in (16, 32, 64):
            def f(s, x, r=r):
                rowsum_short[(triton.cdiv(rows, r),)](s, x, rows, cols, R=r, B=p2)
            runs.append((f"R={r}", f))
    elif op == "rowsum" and rows >= 1024:
        for b in (1024, 4096):
            per_row(rowsum, b, (4, 8))
    elif op in ("layernorm", "rmsnorm"):
        for w in ((8, 16, 32) if cols > 8192 else (4, 8, 16)):
            def f(y, x, g, b=None, w=w):
                norm[(rows,)](y, x, g, g if b is None else b, cols, 1e-5, RMS=op == "rmsnorm", B=p2,
                              num_warps=w)
            runs.append((f"w={w}", f))
    elif op == "transpose":
        for b, w in ((32, 4), (64, 4), (64, 8), (128, 8)):
            def f(y, x, b=b, w=w):
                transpose[(triton.cdiv(cols, b), triton.cdiv(rows, b))](y, x, rows, cols, B=b,
                                                                       num_warps=w)
            runs.append((f"B={b} w={w}", f))
    return runs
