#!/usr/bin/env python3
"""Kiln beside PyTorch (eager and torch.compile) and Triton on one GPU, in one run, in turn.

    python3 bench/gpu/peers.py --build build --out DIR [--only TEXT] [--turns 2] [--device 0]

For each case of `kernels --list`: Kiln, then the peers, then again, --turns times.  Everything is
timed alike: events around each launch, random inputs in several sets that together exceed the L2
cache, a large copy first that keeps the device busy while launches are queued, the median of at
least 20.  DIR receives results.jsonl (every figure) and summary.json (the best variant of each
peer: the median of the turns).  A peer that is not installed is left out, and the summary says so.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

DTYPE = {"f32": "float32", "bf16": "bfloat16"}
COLD = 128 << 20


class Kiln:
    """bench/gpu/kernels as a child process."""

    def __init__(self, build, device):
        exe = os.path.join(build, "bench", "gpu", "kernels")
        self.exe, self.device = exe, str(device)
        self.p = subprocess.Popen([exe, "--device", self.device, "--serve"], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def cases(self, only):
        out = subprocess.run([self.exe, "--list", "--only", only], capture_output=True, text=True)
        return out.stdout.split("\n")[:-1]

    def run(self, case):
        rows = []
        self.p.stdin.write(case + "\n")
        self.p.stdin.flush()
        for line in self.p.stdout:
            r = json.loads(line)
            if "end" in r:
                return rows
            rows.append(r)
        raise RuntimeError("the Kiln process ended")


class Torch:
    def __init__(self, device):
        import torch
        self.torch = torch
        self.dev = f"cuda:{device}"
        torch.cuda.set_device(device)
        torch.manual_seed(0)
        self.plug = [torch.zeros(256 << 20, device=self.dev) for _ in range(2)]
        try:
            import triton_kernels
            self.triton = triton_kernels
        except Exception as e:  # not installed, or not for this device
            print(f"without Triton: {e}", file=sys.stderr)
            self.triton = None

    def sets(self, op, rows, cols, dt):
        """Tensors of each set, output first, as triton_run takes them; bytes moved by a launch."""
        t, like = self.torch, dict(device=self.dev, dtype=dt)
        line = op.startswith("gelu") or op in ("add", "saxpy")
        shape = (cols,) if line else (rows, cols)
        size = rows * cols * dt.itemsize
        if op == "rowsum":
            out, moved = lambda: t.empty(rows, device=self.dev), size + 4 * rows
        elif op == "transpose":
            out, moved = lambda: t.empty(cols, rows, **like), 2 * size
        else:
            out, moved = lambda: t.randn(shape, **like), (3 if op in ("add", "saxpy") else 2) * size
        extra = {"add": 1, "layernorm": 2, "rmsnorm": 1}.get(op, 0)
        one = moved if op != "rowsum" else size
        n = max(2, min(24, COLD // one + 2))
        made = []
        for _ in range(n):
            rest = [t.randn(shape if op == "add" else (cols,), **like) for _ in range(extra)]
            made.append([out(), t.randn(shape, **like), *rest])
        return made, moved

    def eager(self, op):
        t, F = self.torch, self.torch.nn.functional
        if op.startswith("gelu"):
            form = "tanh" if "tanh" in op else "none"
            return lambda y, x: F.gelu(x, approximate=form)
        return {
            "add": lambda z, x, y: t.add(x, y, out=z),
            "saxpy": lambda y, x: t.add(y, x, alpha=0.5, out=y),
            "softmax": lambda y, x: t.softmax(x, -1),
            "rowsum": lambda s, x: x.sum(-1, dtype=t.float32),
            "layernorm": lambda y, x, w, b: F.layer_norm(x, (x.shape[1],), w, b),
            "rmsnorm": lambda y, x, w: F.rms_norm(x, (x.shape[1],), w),
            "transpose": lambda y, x: y.copy_(x.t()),
        }[op]

    def compiled(self, op):
        t, F = self.torch, self.torch.nn.functional
        t._dynamo.reset()
        if op == "transpose":
            f = lambda y, x: x.t().contiguous()  # noqa: E731
        elif op == "saxpy":
            f = lambda y, x: 0.5 * x + y  # noqa: E731
        elif op == "add":
            f = lambda z, x, y: x + y  # noqa: E731
        else:
            f = self.eager(op)
        return t.compile(f, dynamic=False)

    def measure(self, f, sets, moved):
        t = self.torch
        begin = time.perf_counter()
        f(*sets[0])
        t.cuda.synchronize()
        first = (time.perf_counter() - begin) * 1e3
        for s in sets:
            f(*s)
        n = 30 if moved > 1 << 30 else 100
        ev = [[t.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(n)]
        for _ in range(2):
            self.plug[1].copy_(self.plug[0])
        for i, (a, b) in enumerate(ev):
            if moved < 1 << 28 and i % 10 == 0:  # the host is slower than such a kernel
                t.cuda._sleep(200000)
            a.record()
            f(*sets[i % len(sets)])
            b.record()
        t.cuda.synchronize()
        ms = sorted(a.elapsed_time(b) for a, b in ev)
        return dict(ms=ms[n // 2], least_ms=ms[0], n=n, sets=len(sets), bytes=moved,
                    gbs=moved / ms[n // 2] / 1e6, first_ms=first)

    def run(self, case):
        op, shape, name = case.split()
        op = op.replace("_fast", "")  # peers have one form
        rows, cols = (map(int, shape.split("x")) if "x" in shape else (1, int(shape)))
        dt = getattr(self.torch, DTYPE[name])
        sets, moved = self.sets(op, rows, cols, dt)
        jobs = [("torch", "", self.eager(op)), ("torch.compile", "", self.compiled(op))]
        if self.triton:
            jobs += [("triton", v, f) for v, f in self.triton.triton_run(op, rows, cols)]
        out = []
        for peer, variant, f in jobs:
            r = dict(case=case, peer=peer, variant=variant)
            try:
                r.update(self.measure(f, sets, moved))
            except Exception as e:
                r["error"] = repr(e)[:300]
            out.append(r)
        copy = [(a, b) for a, b in zip(*[iter(self.copies(moved, len(sets)))] * 2)]
        out.append(dict(case=case, peer="torch copy_", variant="",
                        **self.measure(lambda a, b: a.copy_(b), copy, moved // 2 * 2)))
        del sets, copy
        self.torch.cuda.empty_cache()
        return out

    def copies(self, moved, n):
        return [self.torch.empty(moved // 2, dtype=self.torch.uint8, device=self.dev)
                for _ in range(2 * n)]

    def ceilings(self):
        """What memory does: a large copy, a large read."""
        t = self.torch
        x = t.randn(1 << 28, device=self.dev)
        y = t.empty_like(x)
        out = [dict(case="copy 2^28 f32", peer="torch copy_", variant="",
                    **self.measure(lambda: y.copy_(x), [()], 8 << 28)),
               dict(case="read 2^28 f32", peer="torch.sum", variant="",
                    **self.measure(lambda: x.sum(), [()], 4 << 28))]
        del x, y
        t.cuda.empty_cache()
        return out


def summary(rows):
    """For each case and peer the variant with the least time: the median over the turns."""
    best = {}
    for r in rows:
        if "case" in r and "ms" in r:
            best.setdefault((r["case"], r["peer"]), {}).setdefault(r["variant"], []).append(r)
    table = {}
    for (case, peer), variants in best.items():
        v = min(variants, key=lambda k: statistics.median(x["ms"] for x in variants[k]))
        ms = statistics.median(x["ms"] for x in variants[v])
        r = variants[v][0]
        line = dict(variant=v, ms=ms, gbs=r["bytes"] / ms / 1e6, turns=len(variants[v]))
        for key in ("registers", "spill_bytes", "threads", "ctas_per_sm"):
            if key in r:
                line[key] = r[key]
        if "copy_gbs" in r:
            copy = statistics.median(x["copy_gbs"] for x in variants[v])
            table.setdefault(case, {})["driver copy"] = dict(gbs=copy)
        table.setdefault(case, {})[peer] = line
    for peers in table.values():
        copies = [p["gbs"] for k, p in peers.items() if "copy" in k]
        others = [p["ms"] for k, p in peers.items() if k != "kiln" and "ms" in p and "copy" not in k]
        if "kiln" in peers and copies:
            peers["kiln"]["of_copy"] = peers["kiln"]["gbs"] / max(copies)
        if "kiln" in peers and others:
            peers["kiln"]["against_best_peer"] = min(others) / peers["kiln"]["ms"]
    return table


def show(table):
    names = ["kiln", "torch", "torch.compile", "triton", "driver copy", "torch copy_"]
    print(f"\n{'GB/s':34s}" + "".join(f"{n:>15s}" for n in names) + "   of copy  x best peer")
    for case, peers in table.items():
        cells = [f"{peers[n]['gbs']:15.0f}" if n in peers else f"{'-':>15s}" for n in names]
        k = peers.get("kiln", {})
        print(f"{case:34s}" + "".join(cells) + f"   {k.get('of_copy', math.nan):7.3f}"
              f"   {k.get('against_best_peer', math.nan):7.2f}")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default="build")
    p.add_argument("--out", default=".")
    p.add_argument("--only", default="")
    p.add_argument("--turns", type=int, default=2)
    p.add_argument("--device", type=int, default=0)
    p.add_argument("--seconds", type=float, default=1e9, help="begin no case after this time")
    o = p.parse_args()
    os.makedirs(o.out, exist_ok=True)
    began = time.time()
    kiln = Kiln(o.build, o.device)
    try:
        torch = Torch(o.device)
    except Exception as e:
        print(f"without PyTorch: {e}", file=sys.stderr)
        torch = None
    rows, left = [], []
    with open(os.path.join(o.out, "results.jsonl"), "w", encoding="utf-8") as f:
        def keep(new, turn=0):
            for r in new:
                r["turn"] = turn
                rows.append(r)
                f.write(json.dumps(r) + "\n")
                if "error" in r:
                    print(f"{r.get('case')}: {r['peer']} {r.get('variant', '')}: {r['error']}",
                          file=sys.stderr)
            f.flush()
        if torch:
            keep([dict(peer="about", torch=torch.torch.__version__,
                       device=torch.torch.cuda.get_device_name(o.device),
                       triton=getattr(torch.triton and torch.triton.triton, "__version__", None))])
            keep(torch.ceilings())
        for case in kiln.cases(o.only):
            if time.time() - began > o.seconds:
                left.append(case)
                continue
            for turn in range(o.turns):
                keep(kiln.run(case), turn)
                if torch:
                    keep(torch.run(case), turn)
        table = summary(rows)
    with open(os.path.join(o.out, "summary.json"), "w", encoding="utf-8") as f:
        json.dump(dict(cases=table, not_run=left), f, indent=1)
    show(table)
    if left:
        print("not run, out of time:", ", ".join(left))


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
