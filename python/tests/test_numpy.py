"""NumPy's arrays, and kiln.nn on them."""
import math
import unittest

import kiln

try:
    import numpy as np
except ImportError:
    np = None

ADD = """
kernel add(i64 n, type T, T y[n], const T x[n], T by = (T)1) grid(n)
{
    i64 i = program_id(0);
    y[i] = (T)(x[i] + by);
}
kernel view(i64 a, i64 b, i64 s, i64 t, f32 y[a][b], const f32 x[a][b] stride(s, t)) grid(a, b)
{
    i64 i = program_id(0), j = program_id(1);
    y[i][j] = x[i][j];
}
kernel flip(i64 n, bool y[n], const bool x[n]) grid(n)
{
    i64 i = program_id(0);
    y[i] = !x[i];
}
"""


@unittest.skipIf(np is None, "NumPy is missing")
class Numpy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ctx = kiln.Context("interp")
        cls.m = kiln.compile(ADD, context=cls.ctx)
        cls.rng = np.random.default_rng(1)

    def test_types(self):
        for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"):
            x = np.arange(5).astype(t)
            y = self.m.add(x=x)
            self.assertIsInstance(y, np.ndarray)
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x + 1)
        x = np.array([True, False])
        np.testing.assert_array_equal(self.m.flip(x=x), ~x)

    def test_bfloat16_becomes_kilns(self):
        y = self.m.add(x=self.ctx.empty(4, "bf16").copy_from(self.m_bf16()))
        self.assertEqual((type(y), y.dtype), (kiln.Array, kiln.bf16))
        self.assertEqual(y.tobytes(), np.array([0x4000] * 4, "<u2").tobytes())  # 2.0

    def m_bf16(self):
        one = kiln.compile("kernel f(i64 n, bf16 y[n]) grid(n) { y[program_id(0)] = 1; }",
                           context=self.ctx)
        return one.f(n=4)

    def test_scalars_of_numpy(self):
        x = np.zeros(3, "f4")
        np.testing.assert_array_equal(self.m.add(x=x, by=np.float32(2.5)), [2.5] * 3)
        np.testing.assert_array_equal(self.m.add(x=x, by=np.int64(2), T=np.float32), [2] * 3)
        np.testing.assert_array_equal(self.m.add(x=x, by=np.array(3.0), T=x.dtype), [3] * 3)

    def test_strides(self):
        x = self.rng.standard_normal((6, 8)).astype("f4")
        for v in (x.T, x[::2, 1::3], x[::-1], x[:, ::-1]):
            s, t = (n // 4 for n in v.strides)
            np.testing.assert_array_equal(self.m.view(x=v, s=s, t=t), v)
        with self.assertRaises(kiln.ArgumentError):  # add wants dense arrays
            self.m.add(x=x[:, 0])
        odd = np.zeros(3, np.dtype([("a", "f4"), ("b", "i1")]))["a"]
        with self.assertRaisesRegex(ValueError, "strides"):
            self.m.add(x=odd)

    def test_refused(self):
        x = np.zeros(3, "f4")
        for bad in (x.astype(">f4"), x.astype("c8"), np.array(["a"]), x.astype("M8[s]"),
                    np.zeros(3, object)):
            with self.assertRaisesRegex(TypeError, "^x: "):
                self.m.add(x=bad)
        y = np.zeros(3, "f4")
        y.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "y is read-only"):
            self.m.add(x=x, y=y)
        x.flags.writeable = False
        np.testing.assert_array_equal(self.m.add(x=x), [1, 1, 1])
        with self.assertRaises(kiln.ArgumentError):
            self.m.add(x=x, y=np.zeros(3, "f8"))
        with self.assertRaises(kiln.ArgumentError):
            self.m.add(x=x, y=np.zeros((3, 1), "f4"))

    def test_empty(self):
        self.assertEqual(self.m.add(x=np.zeros(0, "f4")).shape, (0,))

    def test_array_and_back(self):
        x = self.rng.standard_normal((3, 5)).astype("f4")
        a = self.ctx.array(x)
        for back in (a.numpy(), np.asarray(a), np.from_dlpack(a)):
            np.testing.assert_array_equal(back, x)
        view = np.asarray(a)
        view[0, 0] = 7  # the same memory
        self.assertEqual(a.numpy()[0, 0], 7)
        del a
        self.assertEqual(view[0, 0], 7)
        with self.assertRaises(ValueError):
            self.ctx.empty((3, 5)).copy_from(x.T)
        with self.assertRaises(ValueError):
            self.ctx.empty((5, 3)).copy_from(x.T)

    def test_refused_by_numpy(self):
        a = self.ctx.empty(4, "bf16")
        with self.assertRaisesRegex(Exception, "dtype"):  # NumPy's own words come through
            np.from_dlpack(a)
        b = self.ctx.empty(4)
        np.from_dlpack(b)
        from kiln import _array
        _array.sweep()
        self.assertEqual((_array._exported, _array._capsules), ({}, {}))

    # ---- kiln.nn ----

    def test_rows(self):
        x = (self.rng.standard_normal((7, 33)) * 3).astype("f4")
        d = x.astype("f8")
        e = np.exp(d - d.max(1, keepdims=True))
        soft = e / e.sum(1, keepdims=True)
        np.testing.assert_allclose(kiln.nn.softmax(x), soft, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(kiln.nn.log_softmax(x), np.log(soft), rtol=1e-5, atol=1e-5)
        g, b = self.rng.standard_normal((2, 33)).astype("f4")
        n = (d - d.mean(1, keepdims=True)) / np.sqrt(d.var(1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(kiln.nn.layernorm(x, g, b), n * g + b, rtol=1e-4, atol=1e-5)
        r = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-6)
        np.testing.assert_allclose(kiln.nn.rmsnorm(x, g), r * g, rtol=1e-4, atol=1e-5)
        out = np.empty_like(x)
        self.assertIs(kiln.nn.softmax(x, out=out), out)
        np.testing.assert_array_equal(out, kiln.nn.softmax(x))

    def test_act(self):
        x = np.linspace(-4, 4, 41).astype("f4")
        want = [v / (1 + math.exp(-v)) for v in x.tolist()]
        np.testing.assert_allclose(kiln.nn.act(x, "silu"), want, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(kiln.nn.act(x, "relu", x), np.maximum(x, 0) * x, rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "activation"):
            kiln.nn.act(x, "swish")

    def test_gemm(self):
        a, b = (self.rng.standard_normal(s).astype("f4") for s in ((17, 9), (9, 21)))
        bias, res = (self.rng.standard_normal(s).astype("f4") for s in ((21,), (17, 21)))
        want = a.astype("f8") @ b
        np.testing.assert_allclose(kiln.nn.gemm(a, b), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(kiln.nn.gemm(a.T.copy().T, b, bias, "relu", res, alpha=2),
                                   np.maximum(2 * want + bias, 0) + res, rtol=1e-4, atol=1e-5)
        with self.assertRaises(kiln.ArgumentError):
            kiln.nn.gemm(a, a)
        with self.assertRaisesRegex(ValueError, "matrices"):
            kiln.nn.gemm(a[0], b)

    def test_attention(self):
        q = self.rng.standard_normal((2, 4, 10, 16)).astype("f4")
        k, v = self.rng.standard_normal((2, 2, 2, 10, 16)).astype("f4")
        kk, vv = (np.repeat(t.astype("f8"), 2, 1) for t in (k, v))
        s = q @ kk.swapaxes(-1, -2) / 4
        s = np.where(np.tri(10, dtype=bool), s, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        want = e / e.sum(-1, keepdims=True) @ vv
        np.testing.assert_allclose(kiln.nn.attention(q, k, v, causal=True), want, rtol=1e-4,
                                   atol=1e-5)


if __name__ == "__main__":
    unittest.main()
