"""Kiln from Python: tile kernels on arrays of NumPy, PyTorch and others.

    import kiln
    m = kiln.load("softmax.kiln")
    y = m.softmax(x=x)

Python's ctypes and libkiln.so are all it needs.  docs/python.md says more.
"""
from ._array import Array, BY_NAME as _types, DType, dtype
from ._core import OUT, Context, Graph, Kernel, Module, Param, compile, context, load
from ._lib import (ArgumentError, BoundsError, CompileError, DeviceError, Diagnostic, Error,
                   FileError, KilnWarning, OutOfMemoryError, ToolchainError, UnsupportedError)
from ._trace import Event, Trace
from . import nn

globals().update(_types)  # kiln.f32, kiln.bf16, ...
__version__ = "0.1.0"
__all__ = ["Array", "ArgumentError", "BoundsError", "CompileError", "Context", "DType",
           "DeviceError", "Diagnostic", "Error", "Event", "FileError", "Graph", "Kernel", "KilnWarning",
           "Module", "OUT", "OutOfMemoryError", "Param", "ToolchainError", "Trace",
           "UnsupportedError", "compile", "context", "dtype", "load", "nn", *_types]
