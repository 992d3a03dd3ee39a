"""Contexts, modules, kernels: what a launch needs, from Python values."""
import collections
import contextlib
import ctypes as ct
import inspect
import operator
import os
import sys
import threading

from . import _array, _lib
from ._array import Array, DType
from ._lib import Native, VP, c
from ._trace import Trace

_DEVICES = {"auto": 0, "interp": 1, "cpu": 2, "cuda": 3, "sim": 4}
_NAMES = {v: k for k, v in _DEVICES.items()}


class _Out:
    def __repr__(self):
        return "kiln.OUT"


OUT = _Out()  # as an argument: allocate this optional output, too


def _torch_tensor(x):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _raw(stream):
    """A CUDA stream as an int: from one, or from an object of PyTorch or CuPy."""
    for name in ("cuda_stream", "ptr"):
        stream = getattr(stream, name, stream)
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    return operator.index(stream)


class _Callbacks:
    """What the library calls; kept as long as its context."""

    def __init__(self, o, print, log, include):
        self._mine = threading.local()  # of a thread: text handed out, exception to be raised
        if print is not None:
            def on_print(user, text, n, program):
                print(_lib.text(ct.string_at(text, n)), tuple(program[:3]))
            o.print = _lib.PRINT(on_print)
        if log is not None:
            def on_log(user, text, n):
                log(_lib.text(ct.string_at(text, n)))
            o.log = _lib.LOG(on_log)
        if include is not None:
            mine = self._mine

            def on_include(user, file, name, length):
                try:
                    text = include(os.fsdecode(file), os.fsdecode(name))
                    if text is None:
                        return None
                    text = text.encode("utf-8") if isinstance(text, str) else bytes(text)
                except BaseException as e:
                    mine.error = e
                    return None
                mine.text = ct.create_string_buffer(text, len(text) + 1)
                length[0] = len(text)
                return ct.addressof(mine.text)
            o.include = _lib.INCLUDE(on_include)
        self._keep = (o.print, o.log, o.include)

    def call(self, f, *args):
        """_lib.call, and what include raised in it."""
        self._mine.error = None
        try:
            _lib.call(f, *args)
        except _lib.Error:
            if self._mine.error is None:
                raise
        error, self._mine.error = self._mine.error, None
        if error is not None:
            raise error


class Context:
    """A device: "auto" (the CPU with a C compiler, else the interpreter), "cpu", "interp", "sim",
    "cuda" or "cuda:1".  Compiler, cache folder and threads are as the environment says
    (KILN_CC, KILN_CACHE_DIR, KILN_THREADS); threads=N overrides.  checks=False turns off what the
    interpreter reports of bounds and unwritten elements.

    Callbacks, which must not use Kiln: print(text, program) gets what kernels print, a line at a
    time, and the program's number as three ints; log(text) what is compiled, in any thread;
    include(file, name) gives the text of #include "name" in `file` as str or bytes, or None: look
    beside the source.  What include raises, kiln.compile raises; an exception of the others is
    reported and ignored."""

    def __init__(self, device="auto", threads=0, checks=True, print=None, log=None, include=None):
        name, _, index = str(device).partition(":")
        if name not in _DEVICES or (index and not (name == "cuda" and index.isdigit())):
            raise ValueError("device %r; one of auto, cpu, cuda, cuda:N, interp, sim" % (device,))
        o = _lib.Options(size=ct.sizeof(_lib.Options), device=_DEVICES[name], threads=threads,
                         checks=3 if checks else 0, device_index=int(index or 0))
        if c.kiln_options_from_env(ct.byref(o)):
            raise ValueError("KILN_THREADS is not a number from 1 to 4096")
        nowhere = (ct.c_char_p * 1)()  # includes: beside the source, no further folders
        o.include_dirs = nowhere
        self._calls = _Callbacks(o, print, log, include)
        ptr = VP()
        _lib.call(c.kiln_context_create, ct.byref(o), ct.byref(ptr))
        self._native = Native(ptr.value, c.kiln_context_free)
        self._native.calls = self._calls  # as long as the library may call them
        self.device = _NAMES[c.kiln_context_device(ptr)]
        info = c.kiln_context_device_info(ptr)
        self.index = info.contents.index if info else 0
        self.name = _lib.text(info.contents.name) if info else ""
        self._pending = collections.deque()
        self._nn, self._lock = None, threading.Lock()

    def __repr__(self):
        return "cuda:%d" % self.index if self.device == "cuda" else self.device

    def sync(self):
        """Wait for everything launched."""
        ended = []  # taken before: what is launched meanwhile may go on after it
        with contextlib.suppress(IndexError):
            while True:
                ended.append(self._pending.popleft())
        _lib.call(c.kiln_sync, self._native.ptr)
        for _, views in ended:
            for v in views:
                v.close()

    def empty(self, shape, dtype="f32"):
        """A kiln.Array of this device, not initialised."""
        return Array(self, (shape,) if isinstance(shape, int) else shape, dtype)

    def array(self, x):
        """A kiln.Array with a copy of a dense host array."""
        v = _array.view(x, "x")
        return Array(self, v.shape, _array.DTYPES[v.tensor.dtype]).copy_from(x)

    def record(self, stream=None):
        """A Graph that records: `with ctx.record() as g: m.add.on(g)(x=x, y=y)`.  stream: a CUDA
        stream of others to record on, an int or an object of PyTorch or CuPy."""
        return Graph(self, stream)

    def trace(self, path=None, workers=False):
        """A Trace that collects what happens: `with ctx.trace("trace.json") as t: ...`, then
        t.kernels() and t.events.  path: a file for https://ui.perfetto.dev.  workers: the threads of
        the CPU, too.  At its end the block waits for the device."""
        return Trace(self, path, workers)

    def _nn_handle(self):
        with self._lock:
            if self._nn is None:
                ptr = VP()
                _lib.call(c.kiln_nn_create, self._native.ptr, ct.byref(ptr))
                self._nn = Native(ptr.value, c.kiln_nn_free, self._native)
            return self._nn.ptr

    def _keep(self, views, stream):
        """Keep memory of other producers until what was queued on the stream has ended."""
        ptr = VP()
        _lib.call(c.kiln_event_create, self._native.ptr, ct.byref(ptr))
        event = Native(ptr.value, c.kiln_event_free, self._native)
        _lib.call(c.kiln_event_record, event.ptr, stream)
        self._pending.append((event, views))
        while len(self._pending) > 16:
            with contextlib.suppress(IndexError):  # another thread took it
                old = self._pending.popleft()
                _lib.call(c.kiln_event_sync, old[0].ptr)
                for v in old[1]:
                    v.close()


_contexts, _lock = {}, threading.Lock()


def context(device="auto"):
    """The process's context of a device; made once."""
    if isinstance(device, Context):
        return device
    key = "cuda:0" if device == "cuda" else str(device)
    with _lock:
        if key not in _contexts:
            _contexts[key] = Context(key)
        return _contexts[key]


def pick_context(fixed, values):
    """The context of a launch: a fixed one, else that of the arrays' memory."""
    if fixed is not None:
        return fixed
    best = None
    for x in values:
        if isinstance(x, Array):
            if x.context.device == "cuda":
                return x.context
            best = best or x.context
        elif hasattr(x, "__dlpack_device__"):
            device, index = _array.where(x)
            if device == _array.CUDA:
                return context("cuda:%d" % index)
    return best or context()


class Launch:
    """One call: the stream, the arrays' views, what is allocated; used with `with`."""

    def __init__(self, ctx, values, stream=None):
        self.ctx, self.views, self._torch = ctx, [], []
        self.stream, self._torch_stream, self.raw = None, None, None
        self._like = None  # the first array: outputs are made by its library
        self._graph = stream if isinstance(stream, Graph) else None
        for x in values:
            if self._like is None or (_torch_tensor(x) and not _torch_tensor(self._like)):
                self._like = x
        if self._graph is not None:
            if self._graph.context is not ctx:
                raise ValueError("a graph of %s, and the kernel runs on %s" %
                                 (self._graph.context, ctx))
            self.raw = -1  # of DLPack: the producer does nothing to the stream
            return
        if ctx.device != "cuda":
            if stream is not None:
                raise ValueError("a stream, and the device is %s" % ctx)
            return
        if stream is not None:
            self.raw = _raw(stream)
        if any(_torch_tensor(x) and x.is_cuda for x in values):
            torch = sys.modules["torch"]
            self._torch_stream = torch.cuda.current_stream(ctx.index)
            if self.raw is None:
                self.raw = self._torch_stream.cuda_stream
            elif self.raw != self._torch_stream.cuda_stream:
                self._torch_stream = torch.cuda.ExternalStream(self.raw, ctx.index)
        self.raw = self.raw or 0

    def __enter__(self):
        if self._graph is not None:
            self.stream = self._graph._recorder()
        elif self.raw:
            ptr = VP()
            _lib.call(c.kiln_stream_from_cuda, self.ctx._native.ptr, self.raw, ct.byref(ptr))
            self.stream = ptr.value
        return self

    def array(self, x, name, written):
        v = _array.view(x, name, self.raw)
        self.views.append(v)
        if v.on_cuda and self.ctx.device != "cuda":
            raise ValueError("%s is in memory of cuda:%d, and the kernel runs on the host (%s)" %
                             (name, v.index, self.ctx))
        if v.on_cuda and v.index != self.ctx.index:
            raise ValueError("%s is in memory of cuda:%d, and the kernel runs on %s" %
                             (name, v.index, self.ctx))
        if written and v.read_only:
            raise ValueError("%s is read-only, and the kernel writes it" % name)
        if v.on_cuda and _torch_tensor(x):
            self._torch.append(x)
        return v

    def empty(self, shape, dtype):
        """An output: of NumPy or PyTorch as the inputs, else a kiln.Array."""
        if _torch_tensor(self._like):
            torch = sys.modules["torch"]
            kind = getattr(torch, _array._FOREIGN[dtype.name], None)
            if kind is not None:
                return torch.empty(shape, dtype=kind, device=self._like.device)
        elif self._like is not None and not isinstance(self._like, Array) and \
                hasattr(self._like, "__array_interface__") and "numpy" in sys.modules:
            kind = _array.numpy_dtype(dtype)
            if kind is not None:
                return sys.modules["numpy"].empty(shape, kind)
        return Array(self.ctx, shape, dtype)

    def done(self, *keep):
        """The launch is queued, or on the host done.  keep: what a recorded one needs besides."""
        foreign = []
        if self._graph is not None:  # memory lives as long as the graph
            self._graph._views += [*self.views, *keep]
            self.views = []
            return
        for v in self.views:
            if v.on_cuda and not any(_torch_tensor(x) or isinstance(x, Array) for x in v.keep):
                foreign.append(v)
        for x in self._torch:  # PyTorch reuses the memory only when this stream has come here
            x.record_stream(self._torch_stream)
        if foreign:
            self.views = [v for v in self.views if v not in foreign]
            self.ctx._keep(foreign, self.stream)

    def __exit__(self, *exc):
        if self.stream and self._graph is None:
            c.kiln_stream_free(self.stream)
        for v in self.views:
            v.close()
        return False


# ---- graphs ----

class _Hold:
    """Something that is used until an event; as a View to Context._keep."""

    def __init__(self, *kept):
        self.kept = kept

    def close(self):
        self.kept = ()


class Graph:
    """Launches recorded once and launched again by one call, of Context.record:

        with ctx.record() as g:
            m.scale.on(g)(x=x, y=y)
            kiln.nn.softmax(y, out=z, stream=g)
        g.launch()

    In the block nothing runs, and nothing of the context can be waited for.  The graph keeps the
    arrays, and reads and writes their memory whenever it is launched; on CUDA they must lie on the
    device.  len() is how many operations it has."""

    def __init__(self, ctx, stream=None):
        if stream is not None and ctx.device != "cuda":
            raise ValueError("a stream, and the device is %s" % ctx)
        self.context, self._views, self._native = ctx, [], None
        ptr = VP()
        if stream is None:
            _lib.call(c.kiln_stream_create, ctx._native.ptr, ct.byref(ptr))
        else:
            _lib.call(c.kiln_stream_from_cuda, ctx._native.ptr, _raw(stream), ct.byref(ptr))
        self._stream, self._open = Native(ptr.value, c.kiln_stream_free, ctx._native), False

    def __repr__(self):
        return "<graph of %s: %s>" % (self.context, "recording" if self._open else
                                      "empty" if self._native is None else len(self))

    def __len__(self):
        return c.kiln_graph_count(self._native.ptr) if self._native is not None else 0

    def _recorder(self):
        if not self._open:
            raise ValueError("the graph does not record; use `with ctx.record() as g`")
        return self._stream.ptr

    def __enter__(self):
        if self._open or self._native is not None:
            raise ValueError("a graph records once")
        _lib.call(c.kiln_graph_begin, self._stream.ptr)
        self._open = True
        return self

    def __exit__(self, kind, *rest):
        self._open = False
        ptr = VP()
        if kind is not None:  # thrown away; the exception goes on
            with contextlib.suppress(_lib.Error):
                _lib.call(c.kiln_graph_end, self._stream.ptr, None)
            self._views = []
            return False
        _lib.call(c.kiln_graph_end, self._stream.ptr, ct.byref(ptr))
        self._native = Native(ptr.value, c.kiln_graph_free, self.context._native)
        self._native.kept = (self._views, self.context)  # let go when it has been freed
        return False

    def launch(self, stream=None):
        """Run it: on CUDA queued on a stream, by default the default one."""
        if self._native is None:
            raise ValueError("nothing was recorded")
        if self.context.device != "cuda":
            if stream is not None:
                raise ValueError("a stream, and the device is %s" % self.context)
            _lib.call(c.kiln_graph_launch, self._native.ptr, None)
            return
        ptr = VP()
        if stream is not None and _raw(stream):
            _lib.call(c.kiln_stream_from_cuda, self.context._native.ptr, _raw(stream),
                      ct.byref(ptr))
        try:
            _lib.call(c.kiln_graph_launch, self._native.ptr, ptr)
            # a graph that is let go now is freed, and its memory with it, when this has ended
            self.context._keep([_Hold(self._native)], ptr)
        finally:
            c.kiln_stream_free(ptr)


# ---- kernels ----

Param = collections.namedtuple(
    "Param", "name kind dtype type rank const optional default reads writes init decl")
Param.__doc__ = "What a kernel says of a parameter; kind: array, scalar, constexpr, type."
_KINDS = {_lib.ARRAY: "array", _lib.SCALAR: "scalar", _lib.CONST: "constexpr", _lib.TYPE: "type"}


def _params(k):
    out = []
    for i in range(c.kiln_kernel_param_count(k)):
        p = c.kiln_kernel_param(k, i).contents
        out.append(Param(_lib.text(p.name), _KINDS[p.kind], _array.DTYPES.get(p.dtype),
                         _lib.text(p.type_name), p.rank, bool(p.is_const), bool(p.is_optional),
                         bool(p.has_default), bool(p.reads), bool(p.writes), bool(p.has_init),
                         _lib.text(p.decl)))
    return tuple(out)


class Kernel:
    """A kernel of a module.  Called with its parameters by keyword; arrays of NumPy, PyTorch or
    anything with __dlpack__.  What can be deduced may be left out.  Outputs that are left out are
    allocated by the inputs' library and returned: one as it is, several as a tuple in the order of
    the parameters.  Without such outputs the result is None."""

    def __init__(self, module, name, params, stream=None):
        self._module, self._stream = module, stream
        self.name = self.__name__ = name
        self.params = params
        self._by_name = {p.name: p for p in params}
        self.__doc__ = self.help()
        kw = inspect.Parameter.KEYWORD_ONLY
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(p.name, kw, default=None) for p in params])

    def __repr__(self):
        return "<kernel %s(%s)>" % (self.name, ", ".join(p.decl for p in self.params))

    def help(self):
        """The parameters as text."""
        lines = ["kernel %s" % self.name]
        for p in self.params:
            say = []
            if p.kind == "array":
                say.append("read and written" if p.writes and p.reads else
                           "written" if p.writes else "read")
                if self._allocates(p):
                    say.append("allocated if left out")
            elif not p.default:
                say.append("deduced where an array tells it")
            if p.default or p.optional:
                say.append("may be left out")
            lines.append("    %-40s %s" % (p.decl, ", ".join(say)))
        return "\n".join(lines)

    @staticmethod
    def _allocates(p):
        return p.kind == "array" and p.writes and not p.optional and (p.init or not p.reads)

    def on(self, stream):
        """The same kernel, launched on a CUDA stream: an int, or an object of PyTorch or CuPy; or
        recorded into a Graph."""
        return Kernel(self._module, self.name, self.params, stream)

    def _arg(self, p, x, launch, arg):
        arg.name = p.name.encode()
        if p.kind == "array":
            arg.kind = _lib.ARG_TENSOR
            arg.u.tensor = launch.array(x, p.name, p.writes).tensor
        elif p.kind == "type":
            arg.kind, arg.u.type = _lib.ARG_TYPE, _array.dtype(x).number
        else:
            if isinstance(x, (str, bytes)):
                raise TypeError("%s: a number is needed, not %r" % (p.name, x))
            try:
                n = operator.index(x)
            except TypeError:
                if hasattr(x, "__bool__") and type(x).__name__ in ("bool", "bool_"):
                    n = int(bool(x))  # NumPy's
                else:
                    try:
                        arg.kind, arg.u.f = _lib.ARG_FLOAT, float(x)
                        return
                    except (TypeError, ValueError):
                        raise TypeError("%s: a number is needed, not %s" %
                                        (p.name, type(x).__name__)) from None
            if -2**63 <= n < 2**63:
                arg.kind, arg.u.i = _lib.ARG_INT, n
            elif 0 <= n < 2**64:
                arg.kind, arg.u.u = _lib.ARG_UINT, n
            else:
                raise OverflowError("%s: %d has more than 64 bits" % (p.name, n))

    def __call__(self, /, **given):
        for name in given:
            if name not in self._by_name:
                raise TypeError("kernel %s has no parameter %s; it has %s" %
                                (self.name, name, ", ".join(self._by_name)))
            if given[name] is OUT and not self._by_name[name].writes:
                raise ValueError("%s is not an output of %s" % (name, self.name))
        values = {n: x for n, x in given.items() if x is not None}
        arrays = [x for n, x in values.items()
                  if self._by_name[n].kind == "array" and x is not OUT]
        ctx = pick_context(self._module._context, arrays)
        k = self._module._kernel(ctx, self.name)
        args = (_lib.Arg * max(1, len(self.params)))()
        n, results = 0, []
        with Launch(ctx, arrays, self._stream) as launch:
            for name, x in values.items():
                if x is not OUT:
                    self._arg(self._by_name[name], x, launch, args[n])
                    n += 1
            known = n
            for p in self.params:
                wanted = values.get(p.name)
                if wanted is not OUT and (wanted is not None or not self._allocates(p)):
                    continue
                kind, rank, shape = ct.c_int(), ct.c_int32(), (ct.c_int64 * 8)()
                _lib.call(c.kiln_infer_shape, k, args, known, p.name.encode(), ct.byref(kind),
                          ct.byref(rank), shape)
                x = launch.empty(tuple(shape[:rank.value]), _array.DTYPES[kind.value])
                self._arg(p, x, launch, args[n])
                n += 1
                results.append(x)
            _lib.call(c.kiln_launch, k, launch.stream, args, n)
            launch.done(self._module)
        return results[0] if len(results) == 1 else tuple(results) if results else None


class Module:
    """A compiled source.  Its kernels are attributes and items; iterating gives them."""

    def __init__(self, text, name="kernel.kiln", context=None):
        self._text = text.encode("utf-8") if isinstance(text, str) else bytes(text)
        self._name, self._context = os.fsencode(name), context
        self._compiled, self._lock = {}, threading.Lock()
        self._tuned = (b"", b"")
        m = self._in(context or globals()["context"]())
        self._kernels = {}
        for i in range(c.kiln_module_count(m.ptr)):
            k = c.kiln_module_at(m.ptr, i)
            kernel = Kernel(self, _lib.text(c.kiln_kernel_name(k)), _params(k))
            self._kernels[kernel.name] = kernel

    def _in(self, ctx):
        with self._lock:
            m = self._compiled.get(ctx)
            if m is None:
                ptr = VP()
                ctx._calls.call(c.kiln_compile, ctx._native.ptr, self._name, self._text,
                                len(self._text), ct.byref(ptr))
                m = Native(ptr.value, c.kiln_module_free, ctx._native)
                if self._tuned[1]:
                    self._tune(m, *self._tuned)
                self._compiled[ctx] = m
            return m

    @staticmethod
    def _tune(m, name, text):
        _lib.call(c.kiln_module_tune, m.ptr, name, text, len(text))

    def tune(self, text, name="kernel.tune"):
        """The text of a file of `kiln tune`: launches take constants from it that they are not given.
        None or "": no more.  Not while another thread launches."""
        text = text.encode("utf-8") if isinstance(text, str) else bytes(text or b"")
        with self._lock:
            for m in self._compiled.values():
                self._tune(m, os.fsencode(name), text)
            self._tuned = os.fsencode(name), text

    def _kernel(self, ctx, name):
        m = self._in(ctx)
        return c.kiln_module_at(m.ptr, list(self._kernels).index(name))

    def __getattr__(self, name):
        kernels = self.__dict__.get("_kernels", {})
        if name in kernels:
            return kernels[name]
        raise AttributeError("%s has no kernel %s; it has %s" %
                             (os.fsdecode(self.__dict__.get("_name", b"?")), name,
                              ", ".join(kernels) or "none"))

    def __getitem__(self, name):
        return self._kernels[name]

    def __iter__(self):
        return iter(self._kernels.values())

    def __len__(self):
        return len(self._kernels)

    def __dir__(self):
        return [*super().__dir__(), *self._kernels]

    def __repr__(self):
        return "<module %s: %s>" % (os.fsdecode(self._name), ", ".join(self._kernels))


def compile(text, name="kernel.kiln", context=None, device=None):
    """A Module of a source text.  Without context and device, each launch runs where its arrays
    are: on their CUDA device, or on the host's default device."""
    if context is None and device is not None:
        context = globals()["context"](device)
    return Module(text, name, context)


def load(path, context=None, device=None, tune=None):
    """A Module of a file; #include "file" reads beside it.  tune: a file of `kiln tune`."""
    with open(path, "rb") as f:
        m = compile(f.read(), path, context, device)
    if tune is not None:
        with open(tune, "rb") as f:
            Module.tune(m, f.read(), tune)
    return m
