"""A producer of DLPack capsules written by hand: counts how often each deleter is called."""
import ctypes as ct

from kiln import _array
from kiln._lib import DlManaged, DlManagedV1, DlTensor, c_i64p


class Producer:
    """values: floats, as f32.  old: from before DLPack 1.0, without max_version.  at: the address
    of other memory, on CUDA device `cuda`."""

    def __init__(self, values, shape=None, old=False, flags=0, major=1, code=2, at=None, cuda=None,
                 strides=None, leave=False):
        self.data = (ct.c_float * max(1, len(values)))(*values)
        self.shape = tuple(shape if shape is not None else (len(values),))
        self.strides, self.flags, self.major, self.code = strides, flags, major, code
        self.at, self.cuda = at, cuda
        self.deleted, self.made, self.streams, self.live = 0, 0, [], {}
        self.deleter = ct.CFUNCTYPE(None, ct.c_void_p)(self._delete)
        if old:
            self.__class__ = OldProducer

    def _delete(self, at):
        self.deleted += 1
        del self.live[at]

    def __dlpack_device__(self):
        return (1, 0) if self.cuda is None else (2, self.cuda)

    def _tensor(self):
        sizes = (ct.c_int64 * 8)(*self.shape)
        steps = (ct.c_int64 * 8)(*self.strides) if self.strides else None
        device, index = self.__dlpack_device__()
        t = DlTensor(self.at or ct.addressof(self.data), device, index, len(self.shape), self.code,
                     32, 1, ct.cast(sizes, c_i64p), ct.cast(steps, c_i64p) if steps else None, 0)
        return t, (sizes, steps)

    def __dlpack__(self, stream=None, max_version=None):
        self.streams.append(stream)
        t, keep = self._tensor()
        m = DlManagedV1(self.major, 0, None, ct.cast(self.deleter, ct.c_void_p), self.flags, t)
        return self._capsule(m, keep, _array._V1)

    def _capsule(self, m, keep, name):
        self.made += 1
        self.live[ct.addressof(m)] = (m, keep)
        return _array._new(ct.addressof(m), name, None)


class OldProducer(Producer):
    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        t, keep = self._tensor()
        m = DlManaged(t, None, ct.cast(self.deleter, ct.c_void_p))
        return self._capsule(m, keep, _array._V0)
