"""The C library: where it is found, its structures and functions, its errors as exceptions.

Nothing here is for users.  The layouts are those of kiln.h and kiln_dlpack.h, whose numbers are
pinned; a library of another minor version is refused.
"""
import collections
import ctypes as ct
import os
import warnings

c_i64p = ct.POINTER(ct.c_int64)
VP = ct.c_void_p
PP = ct.POINTER(VP)
MAJOR, MINOR = 0, 1


class Tensor(ct.Structure):
    _fields_ = [("data", VP), ("dtype", ct.c_int), ("ndim", ct.c_int32), ("shape", VP),
                ("strides", VP), ("size_bytes", ct.c_uint64), ("flags", ct.c_uint32)]


TENSOR_DEVICE = 2


class _Value(ct.Union):
    _fields_ = [("tensor", Tensor), ("i", ct.c_int64), ("f", ct.c_double), ("type", ct.c_int),
                ("u", ct.c_uint64)]


class Arg(ct.Structure):
    _fields_ = [("name", ct.c_char_p), ("kind", ct.c_int), ("u", _Value)]


ARG_TENSOR, ARG_INT, ARG_FLOAT, ARG_TYPE, ARG_UINT = 1, 2, 3, 4, 5


# print(user, text, n, program[3]), log(user, text, n), include(user, from, name, *length)
PRINT = ct.CFUNCTYPE(None, VP, VP, ct.c_size_t, c_i64p)
LOG = ct.CFUNCTYPE(None, VP, VP, ct.c_size_t)
INCLUDE = ct.CFUNCTYPE(VP, VP, ct.c_char_p, ct.c_char_p, ct.POINTER(ct.c_size_t))


class Options(ct.Structure):
    _fields_ = [("size", ct.c_uint32), ("device", ct.c_int), ("threads", ct.c_uint32),
                ("opt_level", ct.c_uint32), ("cc", ct.c_char_p), ("cache_dir", ct.c_char_p),
                ("keep_dir", ct.c_char_p), ("include_dirs", ct.POINTER(ct.c_char_p)),
                ("cc_timeout_ms", ct.c_uint32), ("checks", ct.c_uint32), ("alloc", VP),
                ("alloc_user", VP), ("cache_cap", ct.c_uint64), ("device_index", ct.c_int32),
                ("arch", ct.c_char_p), ("print", PRINT), ("print_user", VP), ("log", LOG),
                ("log_user", VP), ("include", INCLUDE), ("include_user", VP)]


class TraceEvent(ct.Structure):
    _fields_ = [("size", ct.c_uint32), ("kind", ct.c_int), ("phase", ct.c_int), ("place", ct.c_int),
                ("name", ct.c_char_p), ("detail", ct.c_char_p), ("begin_ns", ct.c_uint64),
                ("end_ns", ct.c_uint64), ("id", ct.c_uint64), ("thread", ct.c_uint64),
                ("stream", ct.c_uint64), ("bytes", ct.c_uint64), ("error_ns", ct.c_uint64),
                ("threads", ct.c_uint32), ("cache", ct.c_int), ("status", ct.c_int),
                ("flags", ct.c_uint32), ("programs", ct.c_uint64)]


TRACE = ct.CFUNCTYPE(None, VP, ct.POINTER(TraceEvent))


class Place(ct.Structure):
    _fields_ = [("file", ct.c_char_p), ("line", ct.c_uint32), ("col", ct.c_uint32),
                ("end_col", ct.c_uint32), ("text", ct.c_char_p)]


class Note(ct.Structure):
    _fields_ = [("place", Place), ("text", ct.c_char_p)]


class Diag(ct.Structure):
    _fields_ = [("severity", ct.c_int), ("code", ct.c_char_p), ("place", Place),
                ("text", ct.c_char_p), ("notes", ct.POINTER(Note)), ("nnotes", ct.c_size_t),
                ("fix", ct.c_char_p), ("fix_place", Place)]


class ParamInfo(ct.Structure):
    _fields_ = [("name", ct.c_char_p), ("kind", ct.c_int), ("dtype", ct.c_int),
                ("type_name", ct.c_char_p), ("rank", ct.c_int32), ("is_const", ct.c_int32),
                ("is_optional", ct.c_int32), ("has_default", ct.c_int32), ("reads", ct.c_int32),
                ("writes", ct.c_int32), ("has_init", ct.c_int32), ("decl", ct.c_char_p)]


ARRAY, SCALAR, CONST, TYPE = 1, 2, 3, 4


class DeviceInfo(ct.Structure):
    _fields_ = [("name", ct.c_char_p), ("arch", ct.c_char_p), ("index", ct.c_int32),
                ("driver", ct.c_int32), ("sms", ct.c_int32), ("clock_khz", ct.c_int32),
                ("memory_clock_khz", ct.c_int32), ("bus_bits", ct.c_int32),
                ("memory_bytes", ct.c_uint64), ("l2_bytes", ct.c_uint64),
                ("shared_bytes", ct.c_uint64)]


class DlTensor(ct.Structure):
    _fields_ = [("data", VP), ("device_type", ct.c_int32), ("device_id", ct.c_int32),
                ("ndim", ct.c_int32), ("code", ct.c_uint8), ("bits", ct.c_uint8),
                ("lanes", ct.c_uint16), ("shape", c_i64p), ("strides", c_i64p),
                ("byte_offset", ct.c_uint64)]


class DlManaged(ct.Structure):
    _fields_ = [("tensor", DlTensor), ("manager", VP), ("deleter", VP)]


class DlManagedV1(ct.Structure):
    _fields_ = [("major", ct.c_uint32), ("minor", ct.c_uint32), ("manager", VP), ("deleter", VP),
                ("flags", ct.c_uint64), ("tensor", DlTensor)]


class Epilogue(ct.Structure):
    _fields_ = [("bias", ct.POINTER(Tensor)), ("residual", ct.POINTER(Tensor)), ("act", ct.c_int)]


class Attn(ct.Structure):
    _fields_ = [("scale", ct.c_double), ("causal", ct.c_int), ("window", ct.c_int64),
                ("slopes", ct.POINTER(Tensor))]


# ---- finding it ----

def _candidates():
    named = os.environ.get("KILN_LIBRARY")
    if named:
        yield named
        return
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.join(here, "..", "..", "build")):
        for name in ("libkiln.so", "libkiln.so.%d" % MAJOR):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                yield path
    yield "libkiln.so.%d" % MAJOR
    yield "libkiln.so"


def _open():
    tried = []
    for path in _candidates():
        try:
            return ct.CDLL(path)
        except OSError as e:
            tried.append(str(e))
    raise ImportError("libkiln.so was not found; set KILN_LIBRARY to its path\n  " +
                      "\n  ".join(tried))


c = _open()


def _declare(name, result, *args):
    try:
        f = getattr(c, name)
    except AttributeError:
        raise ImportError("%s of libkiln.so is missing: the library is older than this package"
                          % name) from None
    f.restype, f.argtypes = result, args


_T = ct.POINTER(Tensor)
for _row in (
        ("kiln_version", ct.c_uint),
        ("kiln_status_name", ct.c_char_p, ct.c_int),
        ("kiln_status_text", ct.c_char_p, ct.c_int),
        ("kiln_dtype_name", ct.c_char_p, ct.c_int),
        ("kiln_dtype_size", ct.c_size_t, ct.c_int),
        ("kiln_diags_count", ct.c_size_t, VP),
        ("kiln_diags_at", ct.POINTER(Diag), VP, ct.c_size_t),
        ("kiln_diags_render", ct.c_size_t, VP, ct.c_int, ct.c_char_p, ct.c_size_t),
        ("kiln_diags_free", None, VP),
        ("kiln_options_from_env", ct.c_int, ct.POINTER(Options)),
        ("kiln_context_create", ct.c_int, ct.POINTER(Options), PP, PP),
        ("kiln_context_free", None, VP),
        ("kiln_context_device", ct.c_int, VP),
        ("kiln_context_device_info", ct.POINTER(DeviceInfo), VP),
        ("kiln_context_trace", ct.c_int, VP, ct.c_uint32, TRACE, VP, PP),
        ("kiln_trace_kind_name", ct.c_char_p, ct.c_int),
        ("kiln_compile", ct.c_int, VP, ct.c_char_p, ct.c_char_p, ct.c_size_t, PP, PP),
        ("kiln_module_free", None, VP),
        ("kiln_module_tune", ct.c_int, VP, ct.c_char_p, ct.c_char_p, ct.c_size_t, PP),
        ("kiln_module_count", ct.c_size_t, VP),
        ("kiln_module_at", VP, VP, ct.c_size_t),
        ("kiln_kernel_name", ct.c_char_p, VP),
        ("kiln_kernel_param_count", ct.c_size_t, VP),
        ("kiln_kernel_param", ct.POINTER(ParamInfo), VP, ct.c_size_t),
        ("kiln_launch", ct.c_int, VP, VP, ct.POINTER(Arg), ct.c_size_t, PP),
        ("kiln_infer_shape", ct.c_int, VP, ct.POINTER(Arg), ct.c_size_t, ct.c_char_p,
         ct.POINTER(ct.c_int), ct.POINTER(ct.c_int32), c_i64p, PP),
        ("kiln_sync", ct.c_int, VP, PP),
        ("kiln_buffer_alloc", ct.c_int, VP, ct.c_size_t, PP, PP),
        ("kiln_buffer_data", VP, VP),
        ("kiln_buffer_free", None, VP),
        ("kiln_buffer_upload", ct.c_int, VP, ct.c_size_t, VP, ct.c_size_t, VP, PP),
        ("kiln_buffer_download", ct.c_int, VP, ct.c_size_t, VP, ct.c_size_t, VP, PP),
        ("kiln_stream_create", ct.c_int, VP, PP, PP),
        ("kiln_stream_from_cuda", ct.c_int, VP, VP, PP, PP),
        ("kiln_stream_cuda", VP, VP),
        ("kiln_stream_free", None, VP),
        ("kiln_event_create", ct.c_int, VP, PP, PP),
        ("kiln_event_record", ct.c_int, VP, VP, PP),
        ("kiln_event_wait", ct.c_int, VP, VP, PP),
        ("kiln_event_sync", ct.c_int, VP, PP),
        ("kiln_event_free", None, VP),
        ("kiln_graph_begin", ct.c_int, VP, PP),
        ("kiln_graph_end", ct.c_int, VP, PP, PP),
        ("kiln_graph_launch", ct.c_int, VP, VP, PP),
        ("kiln_graph_count", ct.c_size_t, VP),
        ("kiln_graph_free", None, VP),
        ("kiln_dlpack_view", ct.c_int, ct.POINTER(DlTensor), _T, ct.POINTER(ct.c_int32), PP),
        ("kiln_dlpack_export", ct.c_int, _T, ct.c_int32, ct.c_int32, ct.c_uint64, VP, VP, PP, PP),
        ("kiln_nn_create", ct.c_int, VP, PP, PP),
        ("kiln_nn_free", None, VP),
        ("kiln_nn_softmax", ct.c_int, VP, VP, _T, _T, PP),
        ("kiln_nn_log_softmax", ct.c_int, VP, VP, _T, _T, PP),
        ("kiln_nn_layernorm", ct.c_int, VP, VP, _T, _T, _T, _T, _T, _T, ct.c_double, PP),
        ("kiln_nn_rmsnorm", ct.c_int, VP, VP, _T, _T, _T, ct.c_double, PP),
        ("kiln_nn_act", ct.c_int, VP, VP, ct.c_int, _T, _T, _T, PP),
        ("kiln_nn_gemm", ct.c_int, VP, VP, _T, _T, _T, ct.c_double, _T, ct.c_double,
         ct.POINTER(Epilogue), PP),
        ("kiln_nn_attention", ct.c_int, VP, VP, _T, _T, _T, _T, _T, ct.POINTER(Attn), PP)):
    _declare(*_row)

_v = c.kiln_version()
if (_v // 10000, _v // 100 % 100) != (MAJOR, MINOR):
    raise ImportError("libkiln.so is version %d.%d, and this package is for %d.%d" %
                      (_v // 10000, _v // 100 % 100, MAJOR, MINOR))

# ---- errors ----

Diagnostic = collections.namedtuple("Diagnostic",
                                    "severity code file line column text notes fix")
Diagnostic.__doc__ = "One message of the compiler or of a launch; `kiln help CODE` explains it."


class Error(Exception):
    """What Kiln refused or could not do.  str() is the text with the place in the source;
    .status is the name of the status, .diagnostics the messages one by one."""
    status = "KILN_E_INTERNAL"
    diagnostics = ()


class CompileError(Error):
    """The kernel source has an error."""


class ArgumentError(Error, ValueError):
    """Arguments that do not fit the kernel."""


class OutOfMemoryError(Error, MemoryError):
    """The host or the device has no memory left."""


class DeviceError(Error, RuntimeError):
    """There is no such device, or it failed."""


class ToolchainError(Error, RuntimeError):
    """The C compiler is missing or failed."""


class UnsupportedError(Error, NotImplementedError):
    """Not supported by this version or device."""


class BoundsError(Error, IndexError):
    """An access outside an array, or another error that the interpreter checks."""


class FileError(Error, OSError):
    """A file could not be read or written."""


class KilnWarning(UserWarning):
    """A warning of the compiler."""


_CLASS = {-1: ArgumentError, -2: CompileError, -3: OutOfMemoryError, -4: DeviceError,
          -5: ToolchainError, -6: UnsupportedError, -7: BoundsError, -8: FileError}


def text(b):
    return b.decode("utf-8", "replace") if b is not None else None


def _list(diags):
    out = []
    for i in range(c.kiln_diags_count(diags)):
        d = c.kiln_diags_at(diags, i).contents
        out.append(Diagnostic(("note", "warning", "error")[d.severity], text(d.code),
                              text(d.place.file), d.place.line, d.place.col, text(d.text),
                              tuple(text(d.notes[j].text) for j in range(d.nnotes)),
                              text(d.fix)))
    return tuple(out)


def call(f, *args):
    """f(*args, &diags): raises the status's exception, turns what else is said into warnings."""
    diags = VP()
    status = f(*args, ct.byref(diags))
    if not status and not diags:
        return
    try:
        n = c.kiln_diags_render(diags, 0, None, 0)
        buf = ct.create_string_buffer(n + 1)
        c.kiln_diags_render(diags, 0, buf, n + 1)
        rendered, messages = text(buf.value).rstrip("\n"), _list(diags)
    finally:
        c.kiln_diags_free(diags)
    if status:
        e = _CLASS.get(status, Error)(rendered or text(c.kiln_status_text(status)))
        e.status, e.diagnostics = text(c.kiln_status_name(status)), messages
        raise e
    if rendered:
        warnings.warn(rendered, KilnWarning, stacklevel=4)


# ---- lifetimes ----

class Native:
    """An object of the library.  It is freed when nobody has it any more and all that were made
    from it are gone, in whatever order Python lets go of them.  Each step is one operation of a
    built-in type, so that threads and the collector may meet here."""

    def __init__(self, ptr, free, parent=None):
        self.ptr, self._free, self._parent = ptr, free, parent
        self._children, self._gone = set(), False
        if parent is not None:
            parent._children.add(id(self))

    def _try(self):
        if self._gone and not self._children:
            ptr = self.__dict__.pop("ptr", None)
            if ptr:
                self._free(ptr)
                if self._parent is not None:
                    self._parent._children.discard(id(self))
                    self._parent._try()

    def __del__(self):
        self._gone = True
        self._try()
