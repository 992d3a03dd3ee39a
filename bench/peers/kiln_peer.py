"""The protocol kiln.peer/1 of `kiln bench --peer PROGRAM` (docs/bench.md), for peers in Python.

An adapter calls serve(name, version, find):

    find(case) -> [(implementation, make), ...], or a text that says why there is none
    make(arrays) -> (run, outputs)
        arrays    {name: numpy array} of what the kernel reads; bf16 as uint16 (see case.dtype)
        run()     computes once; everything else belongs before it
        outputs() {name: numpy array} of what was computed

make is called once for each copy of the arrays.  On a GPU give serve a Clock of CUDA events
(CudaClock), and let make put the arrays on the device.
"""
import json
import os
import shutil
import sys
import time


class Case:
    """What is asked for: the kernel, its arrays without data, its scalars."""

    def __init__(self, q):
        self.kernel, self.file = q["kernel"], os.path.basename(q["file"])
        self.device, self.device_index = q["device"], q["device_index"]
        self.threads, self.cold_bytes, self.folder = q["threads"], q["cold_bytes"], q["folder"]
        self.scalars = q["scalars"]
        self.arrays = {a["name"]: a for a in q["arrays"]}

    def dtype(self, name):
        return self.arrays[name]["dtype"]

    def dtypes(self):
        return {a["dtype"] for a in self.arrays.values()}

    def shape(self, name):
        return tuple(self.arrays[name]["shape"])

    def bytes(self):
        size = {"bool": 1, "i8": 1, "u8": 1, "f8e4m3": 1, "f8e5m2": 1, "i16": 2, "u16": 2, "f16": 2,
                "bf16": 2, "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8}
        total = 0
        for a in self.arrays.values():
            n = size[a["dtype"]]
            for d in a["shape"]:
                n *= d
            total += n
        return total


class HostClock:
    """The monotonic clock around each run, which has ended when it returns."""

    def __init__(self, case):
        self.case, self.junk = case, None

    def flush(self):
        import numpy as np
        if self.junk is None:
            self.junk = np.random.default_rng(1).random(self.case.cold_bytes // 8)
        self.junk.max()

    def take(self, runs, flush):
        ms = []
        for run in runs:
            if flush:
                self.flush()
            t = time.perf_counter()
            run()
            ms.append((time.perf_counter() - t) * 1e3)
        return ms


class CudaClock:
    """Events of PyTorch around each run.  The device waits in a kernel that does nothing until all are
    queued, so that the time between two events is the device's even where Python needs longer to
    launch a run than the device to do it."""

    HELD = 64           # runs queued at a time: what a stream holds back before launches wait for it
    CYCLES = 2.0e9      # a second of the waiting kernel: no device has a faster clock than that by much

    def __init__(self, case):
        import torch
        self.torch, self.host_ms = torch, []
        self.dev = torch.device("cuda", case.device_index)
        torch.cuda.empty_cache()    # what the last case had
        self.junk = torch.randn(max(case.cold_bytes // 4, 1 << 24), device=self.dev)
        self.wait = 0.001

    def queue(self, runs, flush, seconds):
        """Queue runs behind a wait of so many seconds: their times, the host's, and that of all."""
        torch, host = self.torch, []
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
                 for _ in runs]
        torch.cuda.synchronize(self.dev)
        torch.cuda._sleep(int(seconds * self.CYCLES))
        start = time.perf_counter()
        for run, (a, b) in zip(runs, pairs):
            if flush:
                self.junk.max()     # reading leaves nothing to be written back
            a.record()
            t = time.perf_counter()
            run()
            host.append((time.perf_counter() - t) * 1e3)
            b.record()
        took = time.perf_counter() - start
        torch.cuda.synchronize(self.dev)
        return [a.elapsed_time(b) for a, b in pairs], host, took

    def take(self, runs, flush):
        ms, self.host_ms = [], []
        for at in range(0, len(runs), self.HELD):
            some = runs[at:at + self.HELD]
            for _ in range(4):      # until the wait was the longer one
                times, host, took = self.queue(some, flush, self.wait)
                if took < self.wait:
                    break
                self.wait = min(1.5 * took, 0.1)
            ms += times
            self.host_ms += host
        return ms


class OnDevice:
    """Arrays of a case as tensors: each goes to a GPU once, and its copies are made there."""

    def __init__(self, case, dev):
        self.case, self.dev, self.first = case, dev, {}

    def __call__(self, name, v):
        import torch
        if name not in self.first or self.dev.type == "cpu":
            t = torch.from_numpy(v)
            t = t.view(torch.bfloat16) if self.case.dtype(name) == "bf16" else t
            if self.dev.type == "cpu":
                return t
            self.first[name] = t.to(self.dev)
        return self.first[name].clone()


class Implementation:
    """One implementation of a case, over copies of its arrays."""

    def __init__(self, case, make, arrays, clock):
        size = max(case.bytes(), 1)
        self.n = case.cold_bytes // size + 1
        self.flush = self.n > 48
        self.n = 1 if self.flush else max(self.n, 2)
        self.clock, self.next, self.case = clock, 0, case
        if case.device == "cpu":
            self.copies = [make({k: v.copy() for k, v in arrays.items()}) for _ in range(self.n)]
        else:       # make copies them to the device
            self.copies = [make(arrays) for _ in range(self.n)]
        for run, _ in self.copies:      # compile, first touch
            run()

    def result(self):
        import numpy as np
        run, outputs = self.copies[0]
        run()
        files = {}
        for name, v in outputs().items():
            files[name] = os.path.join(self.case.folder, "result_" + name + ".npy")
            np.save(files[name], np.ascontiguousarray(v))
        return files

    def time(self, cold, n):
        if not cold:
            run = self.copies[0][0]
            run()
            return self.clock.take([run] * n, False)
        order = [(self.next + i) % self.n for i in range(n)]
        self.next = (self.next + n) % self.n
        return self.clock.take([self.copies[i][0] for i in order], self.flush)


class Server:
    def __init__(self, name, version, find, clocks, ready):
        self.name, self.version, self.find, self.clocks, self.ready = name, version, find, clocks, ready
        self.impl, self.clock = [], None

    def case(self, q):
        import numpy as np
        self.impl, self.clock = [], None
        case = Case(q)
        if case.device not in self.clocks:
            return {"skip": "not on " + case.device}
        found = self.find(case)
        if isinstance(found, str):
            return {"skip": found}
        self.clock = self.clocks[case.device](case)
        arrays = {k: np.load(a["path"]) for k, a in case.arrays.items() if a["reads"]}
        self.impl = [Implementation(case, make, arrays, self.clock) for _, make in found]
        return {"implementations": [name for name, _ in found]}

    def answer(self, q):
        if q["do"] == "hello":
            if self.ready:
                self.ready(q["threads"])
            return {"name": self.name, "version": self.version}
        if q["do"] == "case":
            return self.case(q)
        if q["do"] == "result":
            i = self.impl[q["implementation"]]
            return {"files": i.result(), "copies": i.n, "flush": i.flush}
        ms = self.impl[q["implementation"]].time(q["cold"], q["n"])
        return {"ms": ms, "host_ms": getattr(self.clock, "host_ms", [])}


def serve(name, version, find, clocks=None, ready=None):
    """Answer until `bye`.  ready(threads) is called once, before everything else."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)       # what a library prints must not stand among the answers
    server, folder = Server(name, version, find, clocks or {"cpu": HostClock}, ready), None
    for line in sys.stdin:
        q = json.loads(line)
        if q["do"] == "bye":
            return
        folder = q.get("folder", folder)
        try:
            answer = server.answer(q)
        except Exception as e:      # whatever an implementation raises is its answer
            answer = {"error": f"{type(e).__name__}: {e}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()
    if folder:      # Kiln ended without a word: nobody else removes the arrays
        shutil.rmtree(folder, ignore_errors=True)


def missing(name, why):
    """A peer whose library is not there still answers, so that the report says why."""
    serve(name, "", lambda case: why, {"cpu": HostClock, "cuda": HostClock})
