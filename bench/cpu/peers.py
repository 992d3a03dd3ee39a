#!/usr/bin/env python3
"""Kiln beside PyTorch and OpenBLAS (numpy) on the CPU, in one run, in turn, on the same data.

    python3 bench/cpu/peers.py [--build build] [--venv DIR] [--runs 15] [--threads 1,2] [--quick]

Needs numpy and torch.  Without them in this Python, a virtual environment is made in --venv
(default: ~/.cache/kiln/peers, outside the tree) and both are installed there with pip; the
download of torch is large.  A peer that cannot be had is left out, and the table says so.

Each case: Kiln three times, then each peer, then again, --runs times after a warm-up; the median
counts.  Before each a pause: the threads of OpenMP and OpenBLAS spin for a while when their work is
done, on the cores that the next one needs.
Every result is compared with the same computation in double precision.  OPENBLAS_CORETYPE is
taken out of the environment: some systems set it to an older processor.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

CASES = [
    ("softmax", 4096, 4096), ("softmax", 64, 262144), ("softmax_online", 64, 262144),
    ("gelu", 4096, 4096), ("gelu", 64, 262144),
    ("layernorm", 4096, 4096), ("layernorm", 64, 262144),
    ("rowsum", 4096, 4096), ("rowsum", 64, 262144),
    ("matmul", 1024, 1024),
]


PAUSE = 0.06  # seconds


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build")
    p.add_argument("--venv", default=os.path.expanduser("~/.cache/kiln/peers"))
    p.add_argument("--runs", type=int, default=15)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--quick", action="store_true", help="3 runs, small shapes: a test of the script")
    p.add_argument("--child", type=int, help=argparse.SUPPRESS)
    p.add_argument("--data", help=argparse.SUPPRESS)
    return p.parse_args()


def find_python(venv):
    """A Python that has numpy, and torch if at all possible."""
    def has(py, mod):
        return subprocess.run([py, "-c", "import " + mod], capture_output=True).returncode == 0
    if has(sys.executable, "numpy") and has(sys.executable, "torch"):
        return sys.executable
    py = os.path.join(venv, "bin", "python")
    if not os.path.exists(py):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    for mod in ("numpy", "torch"):
        if not has(py, mod):
            print(f"installing {mod} into {venv}", file=sys.stderr)
            subprocess.run([py, "-m", "pip", "install", "-q", mod])
    return py if has(py, "numpy") else sys.executable


class Kiln:
    """bench/cpu/kernels as a child process."""

    def __init__(self, build, threads, data):
        exe = os.path.join(build, "bench", "cpu", "kernels")
        self.p = subprocess.Popen([exe, str(threads)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.ask("data " + data)

    def ask(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        answer = self.p.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"kiln: {line}: {answer}")
        return answer

    def make(self, name, rows, cols):
        self.device = self.ask(f"make {name} {rows} {cols}").split()[1]

    def run(self):
        return float(self.ask("run"))

    def sums(self):
        return [float(x) for x in self.ask("sum").split()]

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def inputs(np, data, name, rows, cols):
    count = rows * cols
    x = np.resize(data, count).reshape(rows, cols)
    if name == "matmul":
        return x, np.resize(data[len(data) // 2:], count).reshape(rows, cols)
    return x, (np.resize(data, cols), np.resize(data, cols))


def numpy_peer(np, name, x, other):
    """What numpy users write; matmul is OpenBLAS."""
    if name == "matmul":
        y = np.empty_like(x)
        return lambda: np.matmul(x, other, out=y)
    if name == "rowsum":
        return lambda: x.sum(axis=1)
    return None


def torch_peer(torch, name, x, other):
    F = torch.nn.functional
    t = torch.from_numpy(x)
    if name == "matmul":
        b, y = torch.from_numpy(other), torch.empty_like(t)
        return lambda: torch.mm(t, b, out=y)
    if name in ("softmax", "softmax_online"):
        y = torch.empty_like(t)
        return lambda: torch.softmax(t, dim=1, out=y)
    if name == "gelu":
        y = torch.empty_like(t)
        return lambda: torch._C._nn.gelu(t, out=y)
    if name == "layernorm":
        g, b = (torch.from_numpy(v) for v in other)
        return lambda: F.layer_norm(t, (t.shape[1],), g, b)
    if name == "rowsum":
        y = torch.empty(t.shape[0])
        return lambda: torch.sum(t, dim=1, out=y)
    return None


def reference_sums(np, name, x, other):
    """Sum and sum of squares of the result in double precision."""
    total = squares = 0.0
    rows = max(1, (1 << 22) // x.shape[1])
    for r in range(0, x.shape[0], rows):
        v = x[r:r + rows].astype(np.float64)
        if name == "matmul":
            y = v @ other.astype(np.float64)
        elif name == "rowsum":
            y = v.sum(axis=1)
        elif name == "layernorm":
            g, b = (w.astype(np.float64) for w in other)
            m = v.mean(axis=1, keepdims=True)
            y = (v - m) / np.sqrt(((v - m) ** 2).mean(axis=1, keepdims=True) + 1e-5) * g + b
        elif name == "gelu":
            from math import erf
            y = 0.5 * v * (1 + np.vectorize(erf)(v * 0.7071067811865476))
        else:
            e = np.exp(v - v.max(axis=1, keepdims=True))
            y = e / e.sum(axis=1, keepdims=True)
        total += float(y.sum())
        squares += float((y * y).sum())
    return total, squares


def moved(name, rows, cols):
    """Bytes that must move; for matmul, operations."""
    if name == "matmul":
        return 2.0 * rows * cols * cols
    return 4.0 * rows * cols * (1 if name == "rowsum" else 2)


def timed(fn):
    t = time.perf_counter()
    fn()
    return time.perf_counter() - t


def child(opt):
    """All cases with one number of threads."""
    import numpy as np
    try:
        import torch
        torch.set_num_threads(opt.child)
        torch.set_grad_enabled(False)
    except ImportError:
        torch = None
    data = np.fromfile(opt.data, dtype=np.float32)
    kiln = Kiln(opt.build, opt.child, opt.data)
    runs = 3 if opt.quick else opt.runs
    for name, rows, cols in CASES:
        if opt.quick:
            rows, cols = min(rows, 64), min(cols, 512)
            if name == "matmul":
                rows = cols = 128
        x, other = inputs(np, data, name, rows, cols)
        kiln.make(name, rows, cols)
        peers = {"kiln": kiln.run}
        np_fn = numpy_peer(np, name, x, other)
        torch_fn = torch_peer(torch, name, x, other) if torch else None
        if torch_fn:
            peers["torch"] = lambda: timed(torch_fn)
        if np_fn:
            peers["numpy"] = lambda: timed(np_fn)
        if name != "matmul":
            y = np.empty_like(x)
            if torch:
                ty, tx = torch.from_numpy(y), torch.from_numpy(x)
                peers["copy"] = lambda: timed(lambda: ty.copy_(tx))
            else:
                peers["copy"] = lambda: timed(lambda: np.copyto(y, x))
        times = {k: [] for k in peers}
        for k in peers:
            peers[k]()
        for _ in range(runs):
            for k in peers:
                time.sleep(PAUSE)
                for _ in range(3):
                    times[k].append(peers[k]())
        med = {k: statistics.median(v) for k, v in times.items()}
        want, got = reference_sums(np, name, x, other), kiln.sums()
        ok = abs(got[1] - want[1]) <= 1e-4 * abs(want[1])
        ours = med["kiln"]
        best = min((v for k, v in med.items() if k in ("torch", "numpy")), default=None)
        rate = moved(name, rows, cols) / ours / 1e9
        cells = [f"{name:15s}{rows:5d}x{cols:<7d}{opt.child:2d}", f"{ours * 1e3:9.2f}"]
        for k in ("torch", "numpy", "copy"):
            cells.append(f"{med[k] * 1e3:9.2f}" if k in med else f"{'-':>9s}")
        cells.append(f"{rate:7.2f}")
        cells.append(f"{best / ours:7.2f}" if best else f"{'-':>7s}")
        print("".join(cells) + ("" if ok else "  WRONG") +
              ("" if kiln.device == "cpu" else "  (interpreted)"), flush=True)
    kiln.close()


def main():
    opt = options()
    if opt.child:
        child(opt)
        return
    py = find_python(opt.venv)
    env = dict(os.environ)
    env.pop("OPENBLAS_CORETYPE", None)
    env.pop("OPENBLAS_L2_SIZE", None)
    versions = subprocess.run([py, "-c",
                               "import numpy; print('numpy', numpy.__version__)\n"
                               "try:\n import torch; print('torch', torch.__version__)\n"
                               "except ImportError: print('no torch: it could not be had here')"],
                              capture_output=True, text=True, env=env).stdout.split("\n")
    print("; ".join(v for v in versions if v))
    print("milliseconds, medians; speed: GB/s that must move, GFLOP/s for matmul;")
    print("ratio: the better peer's time over Kiln's (above 1: Kiln is faster)")
    print(f"{'case':15s}{'shape':>13s}{'th':>2s}{'kiln':>9s}{'torch':>9s}{'numpy':>9s}"
          f"{'copy':>9s}{'speed':>7s}{'ratio':>7s}")
    with tempfile.TemporaryDirectory() as d:
        data = os.path.join(d, "data.f32")
        make = ("import numpy as np, sys\n"
                "np.random.default_rng(1).standard_normal(1 << 22, dtype=np.float32)"
                ".tofile(sys.argv[1])")
        subprocess.run([py, "-c", make, data], check=True, env=env)
        for t in opt.threads.split(","):
            env["OPENBLAS_NUM_THREADS"] = env["OMP_NUM_THREADS"] = env["MKL_NUM_THREADS"] = t
            args = [py, os.path.abspath(__file__), "--child", t, "--data", data,
                    "--build", opt.build, "--runs", str(opt.runs)]
            subprocess.run(args + (["--quick"] if opt.quick else []), check=True, env=env)


if __name__ == "__main__":
    main()
