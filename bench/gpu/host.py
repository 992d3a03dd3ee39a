#!/usr/bin/env python3
"""What Kiln costs the host, beside the driver, ptxas, PyTorch and Triton, in one run on one host.

    python3 bench/gpu/host.py --build build --out DIR [--turns 3] [--device 0] [--no-device]

Launches: bench/gpu/launch (kiln_launch and cuLaunchKernel, 19 arguments), a Triton kernel with 19
arguments and PyTorch operations, in turn, in bursts that the device's queue holds.  Code: what
tests/times measures, ptxas alone on the same texts, and Triton's compile of its forms of the
same kernels with an empty cache.  DIR/host.jsonl receives one line a figure, DIR/ptx the texts.
A peer that is not installed is left out.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BURST, BURSTS = 200, 30


def bursts(f, sync):
    """Median and least nanoseconds of a call over bursts; the first five warm up."""
    ns = []
    for _ in range(BURSTS + 5):
        sync()
        begin = time.perf_counter_ns()
        for _ in range(BURST):
            f()
        ns.append((time.perf_counter_ns() - begin) / BURST)
    sync()
    ns = sorted(ns[5:])
    return dict(median_ns=ns[len(ns) // 2], least_ns=ns[0])


# ---- launches ----

def peer_launches(device):
    """(who, arguments, function), and how to wait for the device."""
    import torch
    dev = f"cuda:{device}"
    torch.cuda.set_device(device)
    a = [torch.randn(256, device=dev) for _ in range(9)]
    s = [0.5 + i for i in range(10)]
    jobs = [("torch.add(a, b, out=c)", 3, lambda: torch.add(a[1], a[2], out=a[0])),
            ("torch.addcmul(a, b, c, out=d)", 4,
             lambda: torch.addcmul(a[1], a[2], a[3], out=a[0]))]
    try:
        from triton_kernels import many
        jobs.append(("triton", 19, lambda: many[(1,)](*a, *s, B=256)))
    except Exception as e:
        print(f"without Triton: {e}", file=sys.stderr)
    return jobs, torch.cuda.synchronize


def launches(o, keep):
    exe = os.path.join(o.build, "bench", "gpu", "launch")
    jobs, sync = [], None
    if not o.no_device:
        try:
            jobs, sync = peer_launches(o.device)
        except Exception as e:
            print(f"without PyTorch: {e}", file=sys.stderr)
    seen = {}
    for _ in range(o.turns):
        out = subprocess.run([exe, "--device", str(o.device)], capture_output=True, text=True)
        if out.returncode:
            print(f"launch: {out.stderr}", file=sys.stderr)
        for line in out.stdout.splitlines():
            r = json.loads(line)
            seen.setdefault((r["peer"], r["arguments"]), []).append(r)
        for who, n, f in jobs:
            try:
                seen.setdefault((who, n), []).append(bursts(f, sync))
            except Exception as e:
                print(f"{who}: {e!r}", file=sys.stderr)
    medians = {k: statistics.median(r["median_ns"] for r in v) for k, v in seen.items()}
    raw = medians.get(("cuLaunchKernel", 19))
    for (who, n), v in seen.items():
        ns = medians[who, n]
        keep(dict(bench="launch", arguments=n, peer=who, median_ns=ns, turns=len(v),
                  least_ns=min(r["least_ns"] for r in v), ratio=ns / raw if raw else None))


# ---- Kiln's code, and ptxas on it ----

def find_ptxas():
    for p in (os.environ.get("PTXAS"), shutil.which("ptxas"), "/usr/local/cuda/bin/ptxas"):
        if p and os.access(p, os.X_OK):
            return p
    try:
        import triton
        p = os.path.join(os.path.dirname(triton.__file__), "backends/nvidia/bin/ptxas")
        return p if os.access(p, os.X_OK) else None
    except Exception:
        return None


def timed(argv, turns):
    """Median milliseconds of a command; None if it fails."""
    ms = []
    for _ in range(turns):
        begin = time.perf_counter()
        if subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).returncode:
            return None
        ms.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(ms)


def codes(o, keep):
    texts = os.path.join(o.out, "ptx")
    shutil.rmtree(texts, ignore_errors=True)
    os.makedirs(texts)
    exe = next((p for p in (os.path.join(o.build, "tests", "compile-times"),
                            os.path.join(o.build, "compile-times")) if os.path.exists(p)), None)
    if not exe:
        print("compile-times is missing", file=sys.stderr)
        return
    where = ["--no-device"] if o.no_device else ["--device", str(o.device)]
    out = subprocess.run([exe, "--keep", texts, "--turns", str(max(3, o.turns)), *where],
                         capture_output=True, text=True)
    sys.stderr.write(out.stderr)
    ptxas = find_ptxas()
    if ptxas:
        version = subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout
        keep(dict(bench="ptxas", version=version.strip().split("\n")[-2:],
                  start_ms=timed([ptxas, "--version"], 5)))
    for line in out.stdout.splitlines():
        r = json.loads(line)
        path = os.path.join(texts, f"{r['kernel']}-{r.get('label')}.ptx")
        if ptxas and "error" not in r and os.path.exists(path):
            arch = next(x.split()[1] for x in open(path) if x.startswith(".target"))
            r["ptxas_ms"] = timed([ptxas, f"-arch={arch}", "-o", "/dev/null", path], o.turns)
        keep(r)


# ---- Triton ----

def triton_compiles(o, keep):
    import torch
    import triton
    import triton_kernels as tk
    dev = f"cuda:{o.device}"
    names = dict(f32=torch.float32, bf16=torch.bfloat16)
    done = []

    def cold(fn, args, **meta):
        """Milliseconds of one compile: an empty folder, nothing kept in the process."""
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            if hasattr(fn, "device_caches"):
                fn.device_caches.clear()
            begin = time.perf_counter()
            fn.warmup(*args, grid=(1,), **meta)
            ms = (time.perf_counter() - begin) * 1e3
            done.append(len(os.listdir(folder)))  # what it kept: none means that it did not compile
            return ms

    a = [torch.empty(256, device=dev) for _ in range(9)]
    cold(tk.many, (*a, *[0.5] * 10), B=256)  # starts the compiler itself
    for label, t in names.items():
        x = torch.empty(4096, device=dev, dtype=t)
        s = torch.empty(4096, device=dev)
        n = 4096
        jobs = [("add", tk.add, (x, x, x, n), dict(B=1024)),
                ("saxpy", tk.saxpy, (x, x, 0.5, n), dict(B=1024)),
                ("erf_form", tk.gelu, (x, x, n), dict(TANH=False, B=1024)),
                ("tanh_form", tk.gelu, (x, x, n), dict(TANH=True, B=1024)),
                ("softmax", tk.softmax, (x, x, 1024), dict(B=1024, num_warps=4)),
                ("softmax", tk.softmax, (x, x, 16384), dict(B=16384, num_warps=16)),
                ("softmax_online", tk.softmax_online, (x, x, 131072), dict(B=4096, num_warps=8)),
                ("rowsum", tk.rowsum, (s, x, 16384), dict(B=1024, num_warps=4)),
                ("rowsum_short", tk.rowsum_short, (s, x, n, 64), dict(R=64, B=64)),
                ("layernorm", tk.norm, (x, x, x, x, 8192, 1e-5),
                 dict(RMS=False, B=8192, num_warps=8)),
                ("rmsnorm", tk.norm, (x, x, x, x, 8192, 1e-5),
                 dict(RMS=True, B=8192, num_warps=8)),
                ("transpose", tk.transpose, (x, x, n, n), dict(B=64)),
                ("matmul", tk.matmul, (x, x, x, n, n, n), dict(BM=128, BN=128, BK=32,
                                                               num_warps=8))]
        for name, fn, args, meta in jobs:
            cols = {1024: "-1024", 16384: "-16384", 131072: "-131072", 8192: "-8192"}
            at = cols.get(next((v for v in args if isinstance(v, int) and v in cols), 0), "")
            at = "-8192" if name == "transpose" else at
            r = dict(bench="triton compile", kernel=name, label=label + at)
            try:
                ms = [cold(fn, args, **meta) for _ in range(o.turns)]
                r.update(median_ms=statistics.median(ms), least_ms=min(ms))
                if not all(done[-o.turns:]):
                    r["error"] = "nothing was compiled"
            except Exception as e:
                r["error"] = repr(e)[:300]
            keep(r)
    keep(dict(bench="triton", version=triton.__version__))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build")
    p.add_argument("--out", default=".")
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--device", type=int, default=0)
    p.add_argument("--no-device", action="store_true", help="source to PTX and ptxas only")
    o = p.parse_args()
    os.makedirs(o.out, exist_ok=True)
    with open(os.path.join(o.out, "host.jsonl"), "w", encoding="utf-8") as f:
        def keep(r):
            f.write(json.dumps(r) + "\n")
            f.flush()
            if "error" in r:
                print(f"{r['bench']} {r.get('kernel', '')}: {r['error']}", file=sys.stderr)
        if not o.no_device:
            launches(o, keep)
        codes(o, keep)
        if not o.no_device:
            try:
                triton_compiles(o, keep)
            except Exception as e:
                print(f"without Triton: {e!r}", file=sys.stderr)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
