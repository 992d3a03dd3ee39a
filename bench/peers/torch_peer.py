#!/usr/bin/env python3
"""PyTorch as a peer of `kiln bench`, on CPU or GPU: eager and through torch.compile.

KILN_PEER_COMPILE=0 leaves the compiled ones out (they need a C++ compiler or Triton)."""
import os
import sys

import kiln_peer

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as e:
    kiln_peer.missing("torch", str(e))
    sys.exit(0)

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
         "i32": torch.int32, "i64": torch.int64}


def functions(case):
    """Eager with an output where PyTorch has such a form, and the plain function to compile."""
    eps, act = case.scalars.get("eps", 1e-5), case.scalars.get("ACT", 0)

    def norm(a):
        return F.layer_norm(a["x"], a["x"].shape[-1:], a.get("gamma"), a.get("beta"), eps)

    def rms(a):
        return F.rms_norm(a["x"], a["x"].shape[-1:], a.get("gamma"), eps)

    def product(a):
        y = a["a"] @ a["b"]
        y = y + a["bias"] if "bias" in a else y
        forms = {1: F.gelu, 2: lambda v: F.gelu(v, approximate="tanh"), 3: F.relu}
        return forms[act](y) if act else y

    def sums(a):
        return torch.sum(a["x"], 1, dtype=TYPES[case.dtype("s")])

    def whole(name, otherwise):
        return int(case.scalars.get(name, otherwise))

    def pair(one, two, otherwise):
        return whole(one, otherwise), whole(two, otherwise)

    def convolution(a):
        return F.conv2d(a["x"], a["w"], None, pair("SH", "SW", 1), pair("PH", "PW", 0),
                        pair("DH", "DW", 1), whole("groups", 1))

    def pool(a):
        size, step, pad = pair("KH", "KW", 2), pair("SH", "SW", 2), pair("PH", "PW", 0)
        if whole("MEAN", 0):
            return F.avg_pool2d(a["x"], size, step, pad, count_include_pad=bool(whole("INCLUDE", 1)))
        return F.max_pool2d(a["x"], size, step, pad, pair("DH", "DW", 1))

    plain = {
        "softmax": lambda a: torch.softmax(a["x"], 1), "erf_form": lambda a: F.gelu(a["x"]),
        "tanh_form": lambda a: F.gelu(a["x"], approximate="tanh"), "layernorm": norm,
        "rmsnorm": rms, "rowsum": sums, "rowsum_short": sums, "matmul": product,
        "transpose": lambda a: a["x"].T.contiguous(), "add": lambda a: a["x"] + a["y"],
        "softmax_columns": lambda a: torch.softmax(a["x"], 0),
    }
    plain["softmax_online"] = plain["softmax"]
    if "bias" not in case.arrays and not act:
        plain["conv2d"] = convolution
    if not whole("MEAN", 0) or pair("DH", "DW", 1) == (1, 1):
        plain["pool"] = pool
    forms = (F.relu, F.silu, F.gelu, lambda v: F.gelu(v, approximate="tanh"), torch.sigmoid, torch.tanh)
    if case.kernel == "act" and 0 <= act < len(forms):
        plain["act"] = lambda a: forms[act](a["x"])
    plain["layernorm_looped"], plain["rmsnorm_looped"] = norm, rms
    into = {
        "softmax": lambda a, y: torch.softmax(a["x"], 1, out=y),
        "erf_form": lambda a, y: torch._C._nn.gelu(a["x"], out=y),
        "tanh_form": lambda a, y: torch._C._nn.gelu(a["x"], approximate="tanh", out=y),
        "transpose": lambda a, y: y.copy_(a["x"].T), "add": lambda a, y: torch.add(a["x"], a["y"], out=y),
        "rowsum": lambda a, y: torch.sum(a["x"], 1, dtype=y.dtype, out=y),
    }
    into["softmax_online"], into["rowsum_short"] = into["softmax"], into["rowsum"]
    if case.kernel == "matmul" and "bias" not in case.arrays and not act:
        into["matmul"] = lambda a, y: torch.mm(a["a"], a["b"], out=y)
    return plain.get(case.kernel), into.get(case.kernel)


def find(case):
    if not case.dtypes() <= TYPES.keys():
        return "torch has no " + ", ".join(sorted(case.dtypes() - TYPES.keys()))
    plain, into = functions(case)
    out = [n for n, a in case.arrays.items() if a["writes"]]
    if not plain or len(out) != 1:
        return "it does not do this kernel"
    o = out[0]
    dev = torch.device(case.device, case.device_index if case.device == "cuda" else 0)

    tensor = kiln_peer.OnDevice(case, dev)

    def back(t):
        t = t.cpu()
        return t.view(torch.uint16).numpy() if t.dtype == torch.bfloat16 else t.numpy()

    def eager(arrays):
        a = {k: tensor(k, v) for k, v in arrays.items()}
        y = torch.empty(case.shape(o), dtype=TYPES[case.dtype(o)], device=dev)
        if into:
            return (lambda: into(a, y)), (lambda: {o: back(y)})
        kept = {}
        return (lambda: kept.__setitem__(o, plain(a))), (lambda: {o: back(kept[o])})

    torch._dynamo.reset()
    code = torch.compile(lambda a: plain(a), dynamic=False)

    def compiled(arrays):
        a = {k: tensor(k, v) for k, v in arrays.items()}
        kept = {}
        return (lambda: kept.__setitem__(o, code(a))), (lambda: {o: back(kept[o])})

    result = [("eager", eager)]
    if os.environ.get("KILN_PEER_COMPILE", "1") != "0":
        result.append(("compile", compiled))
    return result


def ready(threads):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True   # the fastest algorithm, by trial


class TorchClock(kiln_peer.HostClock):
    """The cache is flushed by PyTorch's own threads, so that they are awake when the time begins."""

    def flush(self):
        if self.junk is None:
            self.junk = torch.randn(self.case.cold_bytes // 4)
        self.junk.max()


clocks = {"cpu": TorchClock}
if torch.cuda.is_available():
    clocks["cuda"] = kiln_peer.CudaClock
kiln_peer.serve("torch", torch.__version__, find, clocks, ready)
