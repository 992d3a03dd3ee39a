"""Without NumPy: kernels, reflection, errors, DLPack capsules, lifetimes, threads."""
import ctypes as ct
import gc
import inspect
import json
import os
import struct
import tempfile
import threading
import unittest
import warnings

import kiln
from kiln import _array
from producer import Producer
from timeline import right_time_line

ADD = """
kernel add(i64 n, f32 y[n], const f32 x[n], f32 by = 1, optional f32 z[n],
           constexpr i64 BLOCK = 64) grid(cdiv(n, BLOCK))
{
    i64 i = program_id(0) * BLOCK;
    y[i:BLOCK] = x[i:BLOCK] + by;
    if (given(z))
        z[i:BLOCK] = x[i:BLOCK] * 2;
}
kernel twice(i64 n, f32 y[n]) grid(n)
{
    i64 i = program_id(0);
    y[i] = y[i] * 2;
}
kernel fill(i64 n, type T, T y[n], T v) grid(n)
{
    y[program_id(0)] = v;
}
"""


def floats(a):
    return list(struct.unpack("%df" % a.size, a.tobytes()))


class Core(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ctx = kiln.Context("interp")
        cls.m = kiln.compile(ADD, context=cls.ctx)

    def test_output_is_made_here(self):
        p = Producer([1, 2, 3])
        y = self.m.add(x=p)
        self.assertIsInstance(y, kiln.Array)
        self.assertEqual((y.shape, y.dtype, floats(y)), ((3,), kiln.f32, [2, 3, 4]))

    def test_optional_output(self):
        y, z = self.m.add(x=Producer([1, 2]), by=0.5, z=kiln.OUT)
        self.assertEqual((floats(y), floats(z)), ([1.5, 2.5], [2, 4]))

    def test_tuned(self):
        m = kiln.compile("kernel b(i64 n, constexpr i64 B = 4, i64 y[cdiv(n, B)], const f32 x[n]) "
                         "grid(cdiv(n, B)) { y[program_id(0)] = B + (i64)x[0]; }", context=self.ctx)
        x = Producer([0] * 8)
        self.assertEqual(m.b(x=x).shape, (2,))
        m.tune("kiln-tune 1\nkernel b\nuse B=2\n")
        self.assertEqual(m.b(x=x).shape, (4,))
        self.assertEqual(m.b(x=x, B=8).shape, (1,))
        with self.assertRaisesRegex(kiln.Error, "K1819"):
            m.tune("kiln-tune 1\nkernel b\nuse B 2\n")
        with self.assertWarnsRegex(kiln.KilnWarning, "K1820"):
            m.tune("kiln-tune 1\nkernel c\nuse B=2\n")
        m.tune(None)
        self.assertEqual(m.b(x=x).shape, (2,))
        with tempfile.TemporaryDirectory() as d:
            for name, text in (("k.kiln", ADD), ("k.tune", "kiln-tune 1\nkernel add\nuse BLOCK=2\n")):
                with open(os.path.join(d, name), "w") as f:
                    f.write(text)
            m = kiln.load(os.path.join(d, "k.kiln"), self.ctx, tune=os.path.join(d, "k.tune"))
            self.assertEqual(floats(m.add(x=Producer([1, 2, 3]))), [2, 3, 4])

    def test_given_output(self):
        p, y = Producer([1, 2]), Producer([0, 0])
        self.assertIsNone(self.m.add(x=p, y=y))
        self.assertEqual(list(y.data), [2, 3])

    def test_types(self):
        for t, v, form in (("u64", 2**64 - 1, "Q"), (kiln.i8, -128, "b"), ("bool", True, "?"),
                           (kiln.f64, 0.1, "d"), ("f16", 1.5, "e"), (kiln.i64, -2**63, "q")):
            y = self.m.fill(n=3, T=t, v=v)
            self.assertEqual(struct.unpack("3" + form, y.tobytes()), (v,) * 3)
            self.assertEqual(y.dtype, kiln.dtype(t))
        with self.assertRaises(kiln.ArgumentError):
            self.m.fill(n=3, T="u8", v=256)
        with self.assertRaises(OverflowError):
            self.m.fill(n=3, T="u64", v=2**64)
        with self.assertRaises(TypeError):
            self.m.fill(n=3, T="f128", v=1)

    def test_reflection(self):
        k = self.m.add
        self.assertEqual([p.name for p in k.params], ["n", "y", "x", "by", "z", "BLOCK"])
        self.assertEqual(list(inspect.signature(k).parameters), [p.name for p in k.params])
        y = k.params[1]
        self.assertEqual((y.kind, y.dtype, y.rank, y.writes, y.reads, y.optional),
                         ("array", kiln.f32, 1, True, False, False))
        self.assertIn("allocated if left out", k.__doc__)
        self.assertIn("f32 by = 1", k.__doc__)
        self.assertEqual([k.name for k in self.m], ["add", "twice", "fill"])
        self.assertIn("add", dir(self.m))
        self.assertIs(self.m["add"], k)

    def test_wrong_calls(self):
        p = Producer([1, 2])
        for error, what, kw in (
                (TypeError, "no parameter q", dict(x=p, q=1)),
                (TypeError, "by: a number", dict(x=p, by="2")),
                (TypeError, "by: a number", dict(x=p, by=[2])),
                (TypeError, "x: list is not an array", dict(x=[1.0, 2.0])),
                (ValueError, "x is not an output", dict(x=kiln.OUT)),
                (kiln.ArgumentError, "y", dict(x=p, y=Producer([0, 0, 0]))),
                (kiln.ArgumentError, "x", dict(x=Producer([1, 2, 3, 4], (2, 2)))),
                (kiln.ArgumentError, "x", dict(x=Producer([1, 2], code=0)))):  # i32
            with self.assertRaisesRegex(error, what):
                self.m.add(**kw)
        with self.assertRaisesRegex(AttributeError, "no kernel nothing; it has add"):
            self.m.nothing
        with self.assertRaises(kiln.ArgumentError):  # y is read: there is nothing to allocate
            self.m.twice(n=3)
        with self.assertRaises(ValueError):
            kiln.Context("gpu")
        with self.assertRaises(ValueError):
            self.m.add.on(5)(x=p)

    def test_compile_error(self):
        with self.assertRaises(kiln.CompileError) as e:
            kiln.compile("kernel f(i64 n, f32 y[n]) {\n    y[0:4] = q;\n}\n", "f.kiln",
                         context=self.ctx)
        d = e.exception.diagnostics[0]
        self.assertEqual((d.severity, d.code, d.file, d.line, d.column),
                         ("error", "K0201", "f.kiln", 2, 14))
        self.assertIn("    2 |     y[0:4] = q;", str(e.exception))
        self.assertEqual(e.exception.status, "KILN_E_COMPILE")

    def test_bounds(self):
        m = kiln.compile("kernel f(i64 n, f32 y[n]) grid(1) { y[n + 1] = 2; }", context=self.ctx)
        with self.assertRaises(kiln.BoundsError):
            m.f(y=Producer([1, 2]))

    def test_load_and_include(self):
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, "h.kiln"), "w") as f:
                f.write("f32 half(f32 v) { return v / 2; }\n")
            path = os.path.join(d, "k.kiln")
            with open(path, "w") as f:
                f.write('#include "h.kiln"\n'
                        "kernel k(i64 n, f32 y[n], const f32 x[n]) grid(n)\n"
                        "{\n    i64 i = program_id(0);\n    y[i] = half(x[i]);\n}\n")
            m = kiln.load(path, context=self.ctx)
            self.assertEqual(floats(m.k(x=Producer([4, 6]))), [2, 3])
        with self.assertRaises(FileNotFoundError):
            kiln.load(path)

    # ---- capsules ----

    def test_deleter_once(self):
        for old in (False, True):
            p, y = Producer([1, 2, 3], old=old), Producer([0, 0, 0], old=old)
            self.m.add(x=p, y=y)
            gc.collect()
            for q in (p, y):
                self.assertEqual((q.made, q.deleted, q.live), (1, 1, {}))
            self.assertEqual(list(y.data), [2, 3, 4])

    def test_deleter_after_errors(self):
        p, y = Producer([1, 2, 3]), Producer([0, 0])
        with self.assertRaises(kiln.ArgumentError):
            self.m.add(x=p, y=y)
        strange = Producer([1, 2], code=5)  # complex
        with self.assertRaisesRegex(TypeError, "x: .*element type"):
            self.m.add(x=strange)
        later = Producer([1, 2], major=2)
        with self.assertRaisesRegex(BufferError, "version 2"):
            self.m.add(x=later)
        gc.collect()
        for q in (p, y, strange, later):
            self.assertEqual((q.made, q.deleted), (1, 1))

    def test_read_only(self):
        p, y = Producer([1, 2], flags=1), Producer([0, 0], flags=1)
        self.assertEqual(floats(self.m.add(x=p)), [2, 3])
        with self.assertRaisesRegex(ValueError, "y is read-only"):
            self.m.add(x=p, y=y)
        self.assertEqual((list(y.data), y.deleted), ([0, 0], 1))

    def test_used_capsule(self):
        p = Producer([1, 2])
        capsule = p.__dlpack__()

        class Again:
            def __dlpack__(self, **kw):
                return capsule

            def __dlpack_device__(self):
                return 1, 0
        self.m.add(x=Again())
        with self.assertRaisesRegex(TypeError, "unused"):
            self.m.add(x=Again())
        self.assertEqual(p.deleted, 1)

    def test_device_memory_is_refused(self):
        p = Producer([1, 2], cuda=0)
        with self.assertRaisesRegex(ValueError, "cuda:0"):
            self.m.add(x=p)
        self.assertEqual(p.deleted, p.made)

    def test_export(self):
        y = self.m.add(x=Producer([1, 2, 3]))
        for kw, name in (({}, b"dltensor"), ({"max_version": (1, 1)}, b"dltensor_versioned"),
                         ({"max_version": (0, 8)}, b"dltensor")):
            before = len(_array._exported)
            capsule = y.__dlpack__(**kw)
            self.assertTrue(_array._valid(capsule, name))
            self.assertEqual(len(_array._exported), before + 1)
            _array.sweep()
            self.assertEqual(len(_array._exported), before + 1)
            del capsule  # nobody took it
            _array.sweep()
            self.assertEqual(len(_array._exported), before)
            v = _array._take(y.__dlpack__(**kw), "y")
            self.assertEqual((v.shape, v.tensor.dtype), ((3,), 12))
            self.assertEqual((ct.c_float * 3).from_address(v.tensor.data)[:], [2, 3, 4])
            v.close()
            v.close()
            self.assertEqual(len(_array._exported), before)
        _array.sweep()
        self.assertEqual(len(_array._capsules), 0)
        with self.assertRaises(BufferError):
            y.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            y.__dlpack__(dl_device=(2, 0))

    def test_export_outlives_the_array(self):
        y = self.m.add(x=Producer([1, 2, 3]))
        v = _array._take(y.__dlpack__(max_version=(1, 0)), "y")
        del y
        gc.collect()
        self.assertEqual((ct.c_float * 3).from_address(v.tensor.data)[:], [2, 3, 4])

    # ---- lifetimes and threads ----

    def test_order_of_freeing(self):
        for _ in range(3):
            ctx = kiln.Context("interp")
            freed = []
            native = ctx._native
            free = native._free
            native._free = lambda p: (freed.append(p), free(p))
            del native
            m = kiln.compile(ADD, context=ctx)
            y = m.add(x=Producer([1]))
            del ctx, m
            gc.collect()
            self.assertEqual((floats(y), freed), ([2], []))
            del y
            gc.collect()
            self.assertEqual(len(freed), 1)

    def test_no_leak(self):
        p, y = Producer([1] * 1000), Producer([0] * 1000)

        def size():
            gc.collect()
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def work(n):
            for i in range(n):
                self.m.add(x=p, y=y)
                self.m.add(x=p).__dlpack__()
                try:
                    self.m.add(x=p, y=Producer([1]))
                except kiln.ArgumentError:
                    pass
        work(300)
        before, objects = size(), len(gc.get_objects())
        work(1000)
        self.assertLess(size() - before, 2 << 20)  # an array is 4 KB
        self.assertLess(len(gc.get_objects()) - objects, 50)
        _array.sweep()
        self.assertEqual((p.made, p.live, len(_array._exported)), (p.deleted, {}, 0))

    def test_threads(self):
        wrong = []
        m = kiln.compile(ADD)  # wherever the default is; the first launches race to compile

        def work(seed):
            for i in range(30):
                p = Producer([seed, i, seed + i])
                got = floats(m.add(x=p, by=float(seed)))
                if got != [seed + seed, i + seed, seed + i + seed] or p.deleted != 1:
                    wrong.append((seed, i, got))
        threads = [threading.Thread(target=work, args=(s,)) for s in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_devices_agree(self):
        want = floats(self.m.add(x=Producer([0.1, 0.2, 0.3])))
        for device in ("auto", "sim"):
            m = kiln.compile(ADD, device=device)
            self.assertEqual(floats(m.add(x=Producer([0.1, 0.2, 0.3]))), want)

    def test_print_and_log(self):
        said, logged = [], []
        ctx = kiln.Context("interp", print=lambda text, at: said.append((text, at)),
                           log=logged.append)
        m = kiln.compile("""
kernel say(i64 n, f32 y[n]) grid(n)
{
    i64 p = program_id(0);
    print("at {}: {}", p, y[p]);
    y[p] = 0;
}
""", context=ctx)
        gc.collect()  # nobody but the context has the callbacks
        m.say(y=Producer([0.5, 2]))
        self.assertEqual(sorted(said), [("at 0: 0.5", (0, 0, 0)), ("at 1: 2", (1, 0, 0))])
        self.assertTrue(any("say" in line for line in logged), logged)

    def test_include(self):
        asked = []

        def include(file, name):
            asked.append((file, name))
            if name == "broken.kiln":
                raise KeyError(name)
            return {"one.kiln": "f32 one() { return 1; }\n",
                    "two.kiln": b'#include "one.kiln"\nf32 two() { return one() + one(); }\n'
                    }.get(name)
        ctx = kiln.Context("interp", include=include)
        text = '#include "%s"\nkernel f(i64 n, f32 y[n]) grid(n) { y[program_id(0)] = two(); }\n'
        y = Producer([0, 0])
        kiln.compile(text % "two.kiln", "here.kiln", context=ctx).f(y=y)
        self.assertEqual(list(y.data), [2, 2])
        self.assertEqual(asked, [("here.kiln", "two.kiln"), ("two.kiln", "one.kiln")])
        with self.assertRaisesRegex(kiln.CompileError, "absent.kiln"):
            kiln.compile(text % "absent.kiln", context=ctx)
        with self.assertRaises(KeyError):  # its own exception
            kiln.compile(text % "broken.kiln", context=ctx)
        with self.assertRaisesRegex(kiln.CompileError, "absent.kiln"):
            kiln.compile(text % "absent.kiln", context=ctx)

    def test_graph(self):
        for device in ("interp", "sim"):
            ctx = kiln.Context(device)
            m = kiln.compile(ADD, context=ctx)
            x, z = Producer([1, 2]), Producer([0, 0])
            with ctx.record() as g:
                y = m.add.on(g)(x=x)
                m.add.on(g)(x=y, z=z, y=Producer([0, 0]))
                with self.assertRaisesRegex(kiln.ArgumentError, "K1818"):
                    m.add(x=x)  # the default stream
                self.assertIn("recording", repr(g))
            self.assertEqual((len(g), x.made - x.deleted, list(z.data)), (2, 1, [0, 0]))
            del m
            for v in (1, 5):
                x.data[0] = v
                g.launch()
                self.assertEqual(list(z.data), [2 * (v + 1), 6])
            with self.assertRaisesRegex(ValueError, "records once"):
                with g:
                    pass
            with self.assertRaisesRegex(ValueError, "does not record"):
                kiln.compile(ADD, context=ctx).add.on(g)(x=x)
            del g, y
            gc.collect()
            self.assertEqual((x.made - x.deleted, z.made - z.deleted), (0, 0))
            # an exception throws the recording away
            with self.assertRaises(ZeroDivisionError):
                with ctx.record() as g:
                    kiln.nn.softmax(Producer([1, 2], (1, 2)), context=ctx, stream=g)
                    1 / 0
            with self.assertRaisesRegex(ValueError, "nothing was recorded"):
                g.launch()
            ctx.sync()
            with ctx.record() as other:
                with self.assertRaisesRegex(ValueError, "a graph of"):
                    m = kiln.compile(ADD, device="interp")
                    m.add.on(other)(x=x)

    def test_trace(self):
        ctx = kiln.Context("interp", checks=False)
        m = kiln.compile(ADD, context=ctx)
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "trace.json")
            with ctx.trace(path, workers=True) as t:
                for _ in range(3):
                    m.add(x=Producer([1, 2]))
                with self.assertRaises(kiln.ArgumentError):
                    m.add(x=Producer([1, 2]), n=5)
            with open(path, encoding="utf-8") as f:
                spans = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
            right_time_line(self, path)
        runs, seconds = t.kernels()["add"]
        self.assertEqual(runs, 3)
        self.assertGreater(seconds, 0)
        launches = [e for e in t.events if e.kind == "launch"]
        self.assertEqual(len(launches), len([e for e in spans if e["cat"] == "launch"]))
        self.assertIn("x=2:f32", launches[0].detail)
        kernel = next(e for e in t.events if e.kind == "kernel" and e.id == launches[0].id)
        self.assertTrue(launches[0].begin <= kernel.begin <= kernel.end <= launches[0].end)
        self.assertTrue([e for e in t.events if e.place == "worker"])
        n = len(t.events)
        m.add(x=Producer([1, 2]))
        self.assertEqual(len(t.events), n)  # it has ended
        with self.assertRaises(ZeroDivisionError):
            with ctx.trace(path) as t:  # in a folder that is gone: nothing is written
                1 / 0

    def test_warning(self):
        with self.assertWarnsRegex(kiln.KilnWarning, r"K0208"):
            kiln.compile("kernel f(i64 n, f32 y[n], f32 unused) grid(1) { y[0] = 1; }",
                         context=self.ctx)


if __name__ == "__main__":
    unittest.main()
