"""What a context did, and when: Context.trace."""
import collections
import ctypes as ct
import json
import threading

from . import _lib

c = _lib.c

Event = collections.namedtuple("Event", "kind place name detail begin end id thread stream bytes "
                                        "error threads programs recorded status")
Event.__doc__ = """Something that happened.  kind: "source", "launch", "kernel", "copy" and others of
kiln_trace_kind; place: "host", "device" or "worker"; detail: types and shapes; begin and end: seconds of
time.monotonic(); error: how far off these may be on a device; id: the same for a launch and its
kernel."""

_PLACES = {1: "host", 2: "device", 3: "worker"}
_PIDS = {"host": 1, "device": 2, "worker": 3}
_NAMES = {"host": "host", "worker": "threads that run programs"}
_STEPS = ("source", "bind", "lower", "passes", "emit", "cache", "compiler", "load")
_APART = 1000


def _tid(e):
    """A number for the track of an event.  Perfetto takes 0, and the number of the process, for the
    main thread of that process."""
    if e.place != "host":
        return _APART * _PIDS[e.place] + (e.stream if e.place == "device" else e.thread)
    return 1 if e.thread == threading.main_thread().native_id else e.thread


def _listener(events):
    """What the library calls; it knows the list and not the trace, so that it keeps nothing alive."""
    def text(s):
        return s.decode("utf-8", "replace")

    def hear(user, event):
        e = event.contents
        if e.phase != 1:  # begun, but not ended
            events.append(Event(
                text(c.kiln_trace_kind_name(e.kind)), _PLACES.get(e.place, "host"), text(e.name),
                text(e.detail), e.begin_ns * 1e-9, e.end_ns * 1e-9, e.id, e.thread, e.stream,
                e.bytes, e.error_ns * 1e-9, e.threads, e.programs, bool(e.flags & 1),
                text(c.kiln_status_name(e.status))))
    return hear


class Trace:
    """Collects what a context does inside `with`; see Context.trace."""

    def __init__(self, context, path, workers):
        self.context, self.path, self.events = context, path, []
        self._flags = 1 | (2 if workers else 0)
        self._hear = _lib.TRACE(_listener(self.events))

    def __enter__(self):
        _lib.call(c.kiln_context_trace, self.context._native.ptr, self._flags, self._hear, None)
        # the library may call as long as the context lives
        self.context._native.traces = getattr(self.context._native, "traces", []) + [self._hear]
        return self

    def __exit__(self, kind, error, where):
        try:
            if kind is None:
                self.context.sync()
        finally:
            _lib.call(c.kiln_context_trace, self.context._native.ptr, 0, _lib.TRACE(), None)
        self.events.sort(key=lambda e: (e.begin, -e.end))
        if kind is None and self.path is not None:
            self.save(self.path)

    def kernels(self):
        """For each kernel the number of runs and the seconds of all: {"softmax": (3, 0.0012)}.  On a
        GPU by its events."""
        where = "device" if any(e.place == "device" for e in self.events) else "host"
        sums = {}
        for e in self.events:
            if e.kind == "kernel" and e.place == where and not e.recorded:
                n, s = sums.get(e.name, (0, 0.0))
                sums[e.name] = n + 1, s + e.end - e.begin
        return sums

    def save(self, path):
        """Write Chrome trace JSON for https://ui.perfetto.dev, as `kiln trace -o` does."""
        zero = min((e.begin for e in self.events), default=0.0)
        us = lambda t: round((t - zero) * 1e6, 3)
        out, hosts = [], {e.id: e for e in self.events if e.place == "host" and e.id and
                          e.kind != "kernel"}
        queued = [(hosts[e.id], e) for e in self.events if e.place == "device" and e.id in hosts]
        calls = {call.id for call, _ in queued}

        def meta(place, tid, what, **args):
            out.append({"ph": "M", "pid": _PIDS[place], "tid": tid, "name": what, "args": args})

        def name(e):
            if e.kind in _STEPS:
                return e.kind
            if e.kind == "launch":
                return "launch " + e.name
            if e.place == "worker":
                return e.name + " (worker)"
            return e.name + " (call)" if e.place == "host" and e.id in calls else e.name

        for place in _PIDS:
            if any(e.place == place for e in self.events):
                meta(place, 0, "process_name", name=_NAMES.get(place, self.context.name or "device"))
                meta(place, 0, "process_sort_index", sort_index=_PIDS[place])
        for place, tid in sorted({(e.place, _tid(e)) for e in self.events}):
            n = tid - _APART * _PIDS[place]
            meta(place, tid, "thread_name",
                 name=("main" if tid == 1 else "thread %d" % tid) if place == "host" else
                 "worker %d" % n if place == "worker" else "stream %d" % n if n else "default stream")
            meta(place, tid, "thread_sort_index", sort_index=tid)
        for e in self.events:
            args = {"detail": e.detail, "bytes": e.bytes, "id": e.id, "threads": e.threads,
                    "programs": e.programs, "error_ns": round(e.error * 1e9)}
            if e.kind in _STEPS:
                args["file" if e.kind == "source" else "kernel"] = e.name
            out.append({"ph": "X", "pid": _PIDS[e.place], "tid": _tid(e), "ts": us(e.begin),
                        "dur": round(us(e.end) - us(e.begin), 3), "cat": e.kind, "name": name(e),
                        "args": {k: v for k, v in args.items() if v}})
        for pair in queued:
            for ph, at in zip("sf", pair):
                flow = {"ph": ph, "pid": _PIDS[at.place], "tid": _tid(at), "ts": us(at.begin),
                        "cat": "flow", "name": "queued", "id": at.id}
                out.append(dict(flow, bp="e") if ph == "f" else flow)
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"displayTimeUnit": "ns", "traceEvents": out}, f)
