"""The CUDA path without PyTorch: streams, memory on the device, lifetimes.  Needs a driver, or the
stand-in of tests/fakecuda in LD_LIBRARY_PATH."""
import ctypes as ct
import gc
import json
import os
import struct
import tempfile
import unittest
import unittest.mock

import kiln
from kiln import _array
from producer import Producer
from timeline import right_time_line

try:
    ctx = kiln.Context("cuda")
except kiln.DeviceError as e:
    ctx, why = None, str(e)

ADD = """
kernel add(i64 n, f32 y[n], const f32 x[n], f32 by = 1, constexpr i64 BLOCK = 64)
    grid(cdiv(n, BLOCK))
{
    i64 i = program_id(0) * BLOCK;
    y[i:BLOCK] = x[i:BLOCK] + by;
}
"""


def floats(a):
    return list(struct.unpack("%df" % a.size, a.tobytes()))


class Device(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = kiln.compile(ADD)  # not bound: goes where the arrays are
        cuda = ct.CDLL("libcuda.so.1")
        cls.stream = ct.c_void_p()
        # the context that Kiln holds, made current as a program of the driver API has it
        cls.current, cls.retained = ct.c_void_p(), ct.c_int()
        for f, *args in ((cuda.cuInit, 0), (cuda.cuDeviceGet, ct.byref(cls.retained), 0),
                         (cuda.cuDevicePrimaryCtxRetain, ct.byref(cls.current), cls.retained),
                         (cuda.cuCtxPushCurrent_v2, cls.current),
                         (cuda.cuStreamCreate, ct.byref(cls.stream), 0)):
            assert f(*args) == 0, f.__name__
        cls.cuda = cuda

    @classmethod
    def tearDownClass(cls):
        cls.cuda.cuStreamDestroy_v2(cls.stream)
        cls.cuda.cuCtxPopCurrent_v2(ct.byref(ct.c_void_p()))
        cls.cuda.cuDevicePrimaryCtxRelease_v2(cls.retained)


@unittest.skipIf(ctx is None, "no CUDA device")
class Cuda(Device):
    def on_device(self, values):
        a = ctx.array(Producer(values))
        return a, Producer(values, cuda=0, at=a._view().tensor.data)

    def test_result_on_the_device(self):
        a, _ = self.on_device([1, 2, 3])
        self.assertEqual(a.__dlpack_device__(), (2, 0))
        y = self.m.add(x=a)
        self.assertIs(y.context, ctx)
        self.assertEqual(floats(y), [2, 3, 4])
        self.assertFalse(hasattr(y, "__array_interface__"))

    def test_host_arrays_travel(self):
        p, y = Producer([1, 2]), Producer([0, 0])
        kiln.compile(ADD, context=ctx).add(x=p, y=y)
        self.assertEqual((list(y.data), p.deleted, y.deleted), ([2, 3], 1, 1))

    def test_streams_of_the_producer(self):
        a, p = self.on_device([1, 2, 3])
        self.m.add(x=p)  # the default stream: 1 in DLPack
        y = kiln.compile(ADD, context=ctx).add.on(self.stream.value)(x=p)
        self.assertEqual(p.streams, [1, self.stream.value])
        self.assertEqual(floats(y), [2, 3, 4])

        class Holder:
            cuda_stream = self.stream.value
        self.m.add.on(Holder())(x=p)
        self.assertEqual(p.streams[2], self.stream.value)
        ctx.sync()

    def test_trace(self):
        a, _ = self.on_device([1, 2, 3])
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "trace.json")
            with ctx.trace(path) as t:
                for _ in range(4):
                    y = self.m.add(x=a)
                self.assertEqual(floats(y), [2, 3, 4])
            with open(path, encoding="utf-8") as f:
                events = json.load(f)["traceEvents"]
            right_time_line(self, path)
        self.assertEqual(t.kernels()["add"][0], 4)
        self.assertEqual({e["name"] for e in events if e.get("cat") == "launch"}, {"launch add"})
        ran = [e for e in t.events if e.place == "device" and e.kind == "kernel"]
        launches = {e.id for e in t.events if e.kind == "launch"}
        self.assertEqual({e.id for e in ran}, launches)
        for e, later in zip(ran, ran[1:]):
            self.assertLessEqual(e.end, later.begin)
        flows = [e["id"] for e in events if e["ph"] == "s"]
        self.assertEqual(sorted(flows), sorted(e["id"] for e in events if e["ph"] == "f"))
        self.assertTrue(launches <= set(flows))

    def test_graph(self):
        for stream in (None, self.stream.value):
            a, p = self.on_device([1, 2, 3])
            m = kiln.compile(ADD, context=ctx)
            with ctx.record(stream) as g:
                y = m.add.on(g)(x=p)
                z = kiln.nn.softmax(ctx.empty((1, 4)), stream=g)
                y2 = m.add.on(g)(x=y, by=10)
                with self.assertRaisesRegex(kiln.ArgumentError, "K1818"):
                    m.add.on(g)(x=Producer([1, 2, 3]), y=y)
                with self.assertRaisesRegex(kiln.ArgumentError, "K1818"):
                    ctx.sync()
            self.assertEqual((len(g), p.streams, p.made - p.deleted), (3, [-1], 1))
            a.copy_from(Producer([7, 8, 9]))
            g.launch()
            self.assertEqual(floats(y2), [18, 19, 20])
            a.copy_from(Producer([1, 1, 1]))
            g.launch(self.stream.value)
            del g, m, y, z  # the launch is still queued
            gc.collect()
            self.assertEqual(p.made - p.deleted, 1)
            ctx.sync()
            gc.collect()
            self.assertEqual(p.made - p.deleted, 0)
            self.assertEqual(floats(y2), [12, 12, 12])

    def test_alive_until_done(self):
        for old in (False, True):
            a, p = self.on_device([1, 2, 3])
            if old:
                p.__class__ = Producer([0], old=True).__class__
            y = kiln.compile(ADD, context=kiln.context("cuda")).add.on(self.stream.value)(x=p)
            gc.collect()
            self.assertEqual((p.made, p.deleted), (1, 0))
            kiln.context("cuda").sync()
            gc.collect()
            self.assertEqual((p.made, p.deleted), (1, 1))
            self.assertEqual(floats(y), [2, 3, 4])

    def test_keeps_only_some(self):
        a, p = self.on_device([1, 2, 3])
        m = kiln.compile(ADD, context=ctx)
        y = ctx.empty(3)
        for _ in range(60):
            m.add(x=p, y=y)
        self.assertGreater(p.deleted, 40)
        ctx.sync()
        self.assertEqual((p.made, p.deleted), (60, 60))

    def test_refused(self):
        a, p = self.on_device([1, 2, 3])
        with self.assertRaisesRegex(ValueError, "runs on the host"):
            kiln.compile(ADD, device="interp").add(x=p)
        q = Producer([1], cuda=1, at=p.at)
        with self.assertRaisesRegex(ValueError, "cuda:1"):
            kiln.compile(ADD, context=ctx).add(x=q)
        self.assertEqual((p.deleted, q.deleted), (p.made, q.made))

    def test_export(self):
        a, _ = self.on_device([1, 2, 3])
        v = _array._take(a.__dlpack__(stream=self.stream.value, max_version=(1, 1)), "a")
        self.assertEqual((v.device, v.index, v.tensor.data), (2, 0, a._view().tensor.data))
        self.assertEqual(v.tensor.flags, 2)
        v.close()
        with self.assertRaises(BufferError):
            a.__dlpack__(dl_device=(1, 0))

    def test_nn(self):
        a, _ = self.on_device([0.5] * 8)
        x = kiln.nn.act(a, "relu")
        self.assertEqual((x.context, floats(x)), (ctx, [0.5] * 8))


class FakeTorch:
    """As much of PyTorch as a launch touches; its tensors are Kiln's arrays under a producer."""

    def __init__(self, current):
        class Stream:
            def __init__(self, cuda_stream, index=0):
                self.cuda_stream, self.index = cuda_stream, index

        class Tensor:
            is_cuda, device, dtype = True, "cuda:0", None

            def __init__(self, values):
                self.array = ctx.array(Producer(values))
                self.producer = Producer(values, cuda=0, at=self.array._view().tensor.data)
                self.used = []

            def __dlpack_device__(self):
                return self.producer.__dlpack_device__()

            def __dlpack__(self, **kw):
                return self.producer.__dlpack__(**kw)

            def record_stream(self, stream):
                self.used.append((stream.cuda_stream, stream.index))

        class Cuda:
            ExternalStream = Stream

            @staticmethod
            def current_stream(index):
                return Stream(current, index)

        self.Tensor, self.cuda, self.float32 = Tensor, Cuda, "float32"
        self.made = []

    def empty(self, shape, dtype, device):
        self.made.append((shape, dtype, device))
        return self.Tensor([0] * shape[0])


@unittest.skipIf(ctx is None, "no CUDA device")
class LikeTorch(Device):
    def work(self, current, on=None):
        torch = FakeTorch(current)
        kernel = kiln.compile(ADD, context=ctx).add
        if on is not None:
            kernel = kernel.on(on)
        with unittest.mock.patch.dict("sys.modules", torch=torch):
            x = torch.Tensor([1, 2, 3])
            y = kernel(x=x)
        stream = current if on is None else on
        self.assertEqual(torch.made, [((3,), "float32", "cuda:0")])
        ctx.sync()
        self.assertEqual(floats(y.array), [2, 3, 4])
        for t in (x, y):  # DLPack's number of the default stream is 1
            self.assertEqual(t.producer.streams, [stream or 1])
            self.assertEqual(t.used, [(stream, 0)])
            self.assertEqual((t.producer.made, t.producer.deleted), (1, 1))

    def test_current_stream(self):
        self.work(0)
        self.work(self.stream.value)

    def test_another_stream(self):
        self.work(0, self.stream.value)


if __name__ == "__main__":
    unittest.main()
