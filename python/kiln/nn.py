"""The kernel library (kiln_nn.h) on arrays: the output comes back, or goes into out=.

The place of work is that of the arrays, or context=; streams are as with kernels.
"""
import ctypes as ct

from . import _array, _core, _lib
from ._lib import c

_ACTS = {None: 0, "none": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3, "silu": 4, "sigmoid": 5,
         "tanh": 6}


def _act(name):
    if name not in _ACTS:
        raise ValueError("activation %r; one of %s" % (name, ", ".join(filter(None, _ACTS))))
    return _ACTS[name]


def _run(f, shape, out, arrays, context, stream, args):
    """f(nn, stream, *args): args is called with a function from a name to the pointer of its
    tensor, and gives the list; `arrays` holds the inputs, None for those left out."""
    given = [x for x in arrays.values() if x is not None]
    if out is not None:
        given.append(out)
    ctx = _core.pick_context(context, given)
    with _core.Launch(ctx, given, stream) as launch:
        refs = {n: None if x is None else launch.array(x, n, False) for n, x in arrays.items()}
        first = next(iter(refs.values()))
        if out is None:
            out = launch.empty(shape(refs), _array.DTYPES[first.tensor.dtype])
        refs["out"] = launch.array(out, "out", True)

        def pointer(name):
            return None if refs[name] is None else ct.pointer(refs[name].tensor)
        _lib.call(f, ctx._nn_handle(), launch.stream, *args(pointer))
        launch.done()
    return out


def _same(refs):
    return next(iter(refs.values())).shape


def softmax(x, *, out=None, context=None, stream=None):
    """Softmax along the last axis."""
    return _run(c.kiln_nn_softmax, _same, out, {"x": x}, context, stream,
                lambda p: [p("out"), p("x")])


def log_softmax(x, *, out=None, context=None, stream=None):
    """Logarithm of softmax along the last axis."""
    return _run(c.kiln_nn_log_softmax, _same, out, {"x": x}, context, stream,
                lambda p: [p("out"), p("x")])


def layernorm(x, gamma=None, beta=None, eps=1e-5, *, out=None, context=None, stream=None):
    """Layer norm along the last axis; gamma and beta: [cols]."""
    return _run(c.kiln_nn_layernorm, _same, out, {"x": x, "gamma": gamma, "beta": beta}, context,
                stream, lambda p: [p("out"), None, None, p("x"), p("gamma"), p("beta"), eps])


def rmsnorm(x, gamma=None, eps=1e-6, *, out=None, context=None, stream=None):
    """RMS norm along the last axis."""
    return _run(c.kiln_nn_rmsnorm, _same, out, {"x": x, "gamma": gamma}, context, stream,
                lambda p: [p("out"), p("x"), p("gamma"), eps])


def act(x, name="gelu", gate=None, *, out=None, context=None, stream=None):
    """An activation (gelu, gelu_tanh, relu, silu, sigmoid, tanh) of each element, times gate."""
    number = _act(name)
    return _run(c.kiln_nn_act, _same, out, {"x": x, "gate": gate}, context, stream,
                lambda p: [number, p("out"), p("x"), p("gate")])


def gemm(a, b, bias=None, act=None, residual=None, alpha=1.0, *, out=None, context=None,
         stream=None):
    """act(alpha a b + bias) + residual; a: [M][K] or [Z][M][K], any strides."""
    number = _act(act)

    def args(p):
        e = _lib.Epilogue(p("bias"), p("residual"), number)
        return [p("out"), p("a"), p("b"), alpha, None, 1.0, ct.pointer(e)]

    def shape(refs):
        a, b = refs["a"].shape, refs["b"].shape
        if len(a) < 2 or len(b) < 2:
            raise ValueError("gemm: matrices are needed, not shapes %s and %s" % (a, b))
        return a[:-1] + b[-1:]
    return _run(c.kiln_nn_gemm, shape, out, {"a": a, "b": b, "bias": bias, "residual": residual},
                context, stream, args)


def attention(q, k, v, causal=False, scale=0.0, window=0, slopes=None, *, out=None, context=None,
              stream=None):
    """softmax(scale q k^T) v.  q: [B][H][L][D]; k, v: [B][G][S][D], H a multiple of G; dense.
    scale 0: 1/sqrt(D); window > 0: only that many places back; slopes: ALiBi."""
    def args(p):
        a = _lib.Attn(scale, int(causal), window, p("slopes"))
        return [p("out"), None, p("q"), p("k"), p("v"), ct.pointer(a)]
    return _run(c.kiln_nn_attention, _same, out, {"q": q, "k": k, "v": v, "slopes": slopes},
                context, stream, args)
