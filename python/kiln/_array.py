"""Arrays of others as kiln_tensor, element types, and arrays of Kiln's own.

A View holds a kiln_tensor and all that must live while it is used: NumPy's array, or a DLPack
capsule, which is taken over (renamed) and whose deleter is called once, by View.close.
"""
import ctypes as ct
import itertools
import operator
import sys

from . import _lib
from ._lib import DlManaged, DlManagedV1, DlTensor, Native, Tensor, VP, c

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
READ_ONLY = 1


class DType:
    """An element type: kiln.f32 and so on.  str() is its name in a kernel."""
    __slots__ = ("number", "name", "itemsize")

    def __init__(self, number):
        self.number = number
        self.name = _lib.text(c.kiln_dtype_name(number))
        self.itemsize = c.kiln_dtype_size(number)

    def __repr__(self):
        return "kiln." + self.name

    def __str__(self):
        return self.name


DTYPES = {t.number: t for t in map(DType, range(1, 16))}
BY_NAME = {t.name: t for t in DTYPES.values()}
_NUMPY = {"bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
          "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "f16",
          "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e4m3fn": "f8e4m3",
          "float8_e5m2": "f8e5m2"}
_FOREIGN = {v: k for k, v in _NUMPY.items()}
_CODE = {"bool": (6, 8), "f16": (2, 16), "f32": (2, 32), "f64": (2, 64), "bf16": (4, 16),
         "f8e4m3": (10, 8), "f8e5m2": (12, 8)}
# NumPy's typestr, of this machine's order of bytes; without the order
_TYPESTR = {("|" if t.itemsize == 1 else "<" if sys.byteorder == "little" else ">") +
            ("b" if t.name == "bool" else t.name[0]) + str(t.itemsize): t
            for t in DTYPES.values() if not t.name.startswith(("bf", "f8"))}
_BARE = {s[1:] for s in _TYPESTR}
_OF_DTYPE = {t: s for s, t in _TYPESTR.items()}


def dtype(t):
    """A DType from kiln.f32, "f32", numpy.float32, torch.float32, numpy.dtype("f4"), ..."""
    if isinstance(t, DType):
        return t
    if isinstance(t, str) and t in BY_NAME:
        return BY_NAME[t]
    name = getattr(t, "name", None) or getattr(t, "__name__", None) or str(t)
    name = str(name).replace("torch.", "").rstrip("_")
    if name in _NUMPY:
        return BY_NAME[_NUMPY[name]]
    raise TypeError("%r is not an element type that Kiln has" % (t,))


def _ints(values):
    return (ct.c_int64 * max(1, len(values)))(*values)


# ---- PyCapsule ----

_py = ct.pythonapi
_valid = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.c_char_p)(("PyCapsule_IsValid", _py))
_pointer = ct.PYFUNCTYPE(VP, ct.py_object, ct.c_char_p)(("PyCapsule_GetPointer", _py))
_rename = ct.PYFUNCTYPE(ct.c_int, ct.py_object, ct.c_char_p)(("PyCapsule_SetName", _py))
_new = ct.PYFUNCTYPE(ct.py_object, VP, ct.c_char_p, VP)(("PyCapsule_New", _py))
_V0, _V1 = b"dltensor", b"dltensor_versioned"  # a capsule keeps a pointer to its name
_USED0, _USED1 = b"used_dltensor", b"used_dltensor_versioned"
_DELETER = ct.CFUNCTYPE(None, VP)


class View:
    """A kiln_tensor and what keeps its memory alive."""

    def __init__(self):
        self.tensor = Tensor()
        self.device, self.index, self.read_only = CPU, 0, False
        self.keep, self._managed, self._deleter = [], None, None

    def close(self):
        """Give a capsule's memory back; once."""
        managed = self.__dict__.pop("_managed", None)
        if managed and self._deleter:
            _DELETER(self._deleter)(managed)
        self.keep = ()

    __del__ = close

    @property
    def on_cuda(self):
        return self.device == CUDA

    @property
    def ref(self):
        return ct.byref(self.tensor)

    @property
    def shape(self):
        t = self.tensor
        return tuple((ct.c_int64 * t.ndim).from_address(t.shape)) if t.ndim else ()

    @property
    def strides(self):
        t = self.tensor
        return tuple((ct.c_int64 * t.ndim).from_address(t.strides)) if t.strides else None


def _from_interface(x, name, face):
    v = View()
    kind = face["typestr"]
    t = _TYPESTR.get(kind)
    if t is None and kind[1:] in _BARE:
        raise TypeError("%s: its bytes are in the other order; %s.astype(%s.dtype.newbyteorder"
                        "('=')) makes a copy that fits" % (name, name, name))
    if t is None and kind[1] in "Vf":  # types of ml_dtypes
        t = BY_NAME.get(_NUMPY.get(getattr(getattr(x, "dtype", None), "name", "")))
    if t is None:
        raise TypeError("%s: elements of type %s are not possible" %
                        (name, getattr(x, "dtype", kind)))
    shape, strides = tuple(face["shape"]), face.get("strides")
    v.tensor.dtype, v.tensor.ndim = t.number, len(shape)
    v.tensor.data, v.read_only = face["data"][0], bool(face["data"][1])
    sizes = _ints(shape)
    v.tensor.shape = ct.addressof(sizes)
    v.keep = [x, face, sizes]
    if strides is not None:
        if any(s % t.itemsize for s in strides):
            raise ValueError("%s: its strides %s are not multiples of the element's %d bytes" %
                             (name, tuple(strides), t.itemsize))
        steps = _ints([s // t.itemsize for s in strides])
        v.tensor.strides = ct.addressof(steps)
        v.keep.append(steps)
    return v


def _take(capsule, name):
    """A View of a capsule; from here on its memory is the View's to give back."""
    v = View()
    if _valid(capsule, _V1):
        at = _pointer(capsule, _V1)
        m = DlManagedV1.from_address(at)
        _rename(capsule, _USED1)
        v._deleter, v._managed = m.deleter, at
        if m.major != 1:
            major = m.major
            v.close()
            raise BufferError("%s: DLPack of version %d, and Kiln reads version 1" % (name, major))
        v.read_only = bool(m.flags & READ_ONLY)
    elif _valid(capsule, _V0):
        at = _pointer(capsule, _V0)
        m = DlManaged.from_address(at)
        _rename(capsule, _USED0)
        v._deleter, v._managed = m.deleter, at
    else:
        raise TypeError("%s: __dlpack__ did not give an unused DLPack capsule" % name)
    index = ct.c_int32()
    try:
        _lib.call(c.kiln_dlpack_view, ct.byref(m.tensor), v.ref, ct.byref(index))
    except _lib.Error as e:
        v.close()
        raise TypeError("%s: %s" % (name, e)) from None
    v.device, v.index = m.tensor.device_type, index.value
    return v


def is_array(x):
    return hasattr(x, "__dlpack__") or hasattr(x, "__array_interface__")


def where(x):
    """(DLPack's device, index) of an array, without taking it."""
    f = getattr(x, "__dlpack_device__", None)
    if f is None:
        return CPU, 0
    device, index = f()
    return int(device), int(index)


def view(x, name, stream=None):
    """A View of an array; stream: the CUDA stream (an int) that will read it."""
    face = getattr(x, "__array_interface__", None)
    if face is not None and not isinstance(x, Array):
        return _from_interface(x, name, face)
    if not hasattr(x, "__dlpack__"):
        raise TypeError("%s: %s is not an array: it has neither __dlpack__ nor "
                        "__array_interface__" % (name, type(x).__name__))
    if isinstance(x, Array):
        return x._view()
    kw = {}
    if where(x)[0] == CUDA and stream is not None:
        kw["stream"] = stream or 1  # 0 is not allowed there: 1 is the default stream
    try:
        capsule = x.__dlpack__(max_version=(1, 1), **kw)
    except TypeError:
        capsule = x.__dlpack__(**kw)  # a producer from before 1.0
    v = _take(capsule, name)
    v.keep = [x, capsule]
    return v


# ---- Kiln's own arrays ----

_tokens = itertools.count(1)
_exported = {}  # what lives as long as somebody has a capsule's memory


@_DELETER
def _released(user):
    _exported.pop(user, None)


@_DELETER
def _released0(managed):
    _exported.pop(("v0", managed), None)


# A capsule that nobody takes over must give its memory back when it goes.  Its destructor cannot be
# written here: it is often called while an exception is on its way, which code in Python would
# lose.  So each capsule is kept, and those that nobody else has any more are looked through when
# the next array or capsule is made.
_capsules = {}


def sweep():
    for token in list(_capsules):
        kept = _capsules.pop(token, None)  # None: another thread has it
        if kept is None:
            continue
        if sys.getrefcount(kept[0]) > 2:  # kept's own and the call's
            _capsules[token] = kept
        elif _valid(kept[0], kept[1]):
            _DELETER(kept[3])(kept[2])


def _capsule(managed, name, deleter):
    capsule = _new(managed, name, None)
    _capsules[next(_tokens)] = (capsule, name, managed, deleter)
    return capsule


class Array:
    """A dense array in memory of a context's device.  NumPy and others read it without a copy
    through DLPack (numpy.from_dlpack, torch.from_dlpack) and, on devices of the host, through
    numpy.asarray; .numpy() gives a copy in host memory on any device."""

    def __init__(self, context, shape, dtype_):
        self.dtype = dtype(dtype_)
        self.shape = tuple(operator.index(n) for n in shape)
        if any(n < 0 for n in self.shape) or len(self.shape) > 8:
            raise ValueError("%s is not a shape" % (self.shape,))
        self.size = 1
        for n in self.shape:
            self.size *= n
        self.context, self.nbytes = context, self.size * self.dtype.itemsize
        sweep()
        ptr = VP()
        _lib.call(c.kiln_buffer_alloc, context._native.ptr, max(1, self.nbytes), ct.byref(ptr))
        self._native = Native(ptr.value, c.kiln_buffer_free, context._native)
        self._sizes = _ints(self.shape)

    ndim = property(lambda self: len(self.shape))

    def __repr__(self):
        return "kiln.Array(%s, %s, %s)" % (self.shape, self.dtype, self.context)

    def __len__(self):
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def _view(self):
        v = View()
        v.device, v.index = self.__dlpack_device__()
        v.tensor = Tensor(c.kiln_buffer_data(self._native.ptr), self.dtype.number, self.ndim,
                          ct.addressof(self._sizes), None, 0,
                          _lib.TENSOR_DEVICE if v.on_cuda else 0)
        v.keep = [self]
        return v

    def __dlpack_device__(self):
        cuda = self.context.device == "cuda"
        return (CUDA, self.context.index) if cuda else (CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError("the array is not on that device")
        if copy:
            raise BufferError("a copy is not made here")
        sweep()
        if stream != -1:
            self.context.sync()  # whatever writes it has ended: any stream may go on
        device, index = self.__dlpack_device__()
        if max_version is not None and max_version[0] >= 1:
            token, at = next(_tokens), VP()
            v = self._view()
            _exported[token] = self
            try:
                _lib.call(c.kiln_dlpack_export, v.ref, device, index, 0,
                          ct.cast(_released, VP), token, ct.byref(at))
            except _lib.Error:
                _exported.pop(token, None)
                raise
            return _capsule(at.value, _V1, DlManagedV1.from_address(at.value).deleter)
        code, bits = _CODE.get(self.dtype.name) or ("iu".index(self.dtype.name[0]),
                                                   self.dtype.itemsize * 8)
        strides = [1] * self.ndim
        for d in range(self.ndim - 2, -1, -1):
            strides[d] = strides[d + 1] * self.shape[d + 1]
        steps = _ints(strides)
        m = DlManaged(DlTensor(c.kiln_buffer_data(self._native.ptr), device, index, self.ndim, code,
                               bits, 1, ct.cast(self._sizes, _lib.c_i64p),
                               ct.cast(steps, _lib.c_i64p), 0), None, ct.cast(_released0, VP))
        _exported["v0", ct.addressof(m)] = (m, self, steps)
        return _capsule(ct.addressof(m), _V0, m.deleter)

    def __getattr__(self, name):
        # absent, not None, where the host cannot read the memory
        if name != "__array_interface__" or self.context.device == "cuda":
            raise AttributeError("kiln.Array has no %s" % name)
        if self.dtype not in _OF_DTYPE:
            raise AttributeError("NumPy has no %s" % self.dtype)
        return {"version": 3, "shape": self.shape, "strides": None,
                "typestr": _OF_DTYPE[self.dtype],
                "data": (c.kiln_buffer_data(self._native.ptr), False)}

    def tobytes(self):
        buf = ct.create_string_buffer(max(1, self.nbytes))
        _lib.call(c.kiln_buffer_download, self._native.ptr, 0, buf, self.nbytes, None)
        return buf.raw[:self.nbytes]

    def copy_from(self, x):
        """Copy a dense array of the host with the same shape and type."""
        v = view(x, "x")
        if v.device not in (CPU, CUDA_HOST) or v.tensor.dtype != self.dtype.number or \
                v.shape != self.shape:
            raise ValueError("a host array of shape %s and type %s is needed" %
                             (self.shape, self.dtype))
        step, strides = 1, v.strides
        for d in range(self.ndim - 1, -1, -1):
            if strides and self.size and self.shape[d] > 1 and strides[d] != step:
                raise ValueError("a dense array is needed")
            step *= self.shape[d]
        _lib.call(c.kiln_buffer_upload, self._native.ptr, 0, v.tensor.data, self.nbytes, None)
        v.close()
        return self

    def numpy(self):
        """A copy as a NumPy array."""
        import numpy
        t = numpy_dtype(self.dtype)
        if t is None:
            raise TypeError("NumPy has no %s; the package ml_dtypes adds it" % self.dtype)
        return numpy.frombuffer(bytearray(self.tobytes()), t).reshape(self.shape)


def numpy_dtype(t):
    """NumPy's type, or None where it has none and ml_dtypes is not imported."""
    import numpy
    name = _FOREIGN[t.name]
    try:
        return numpy.dtype(getattr(sys.modules.get("ml_dtypes"), name, None) or name)
    except TypeError:
        return None
