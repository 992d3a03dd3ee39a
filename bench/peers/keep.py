#!/usr/bin/env python3
"""Keeps a peer of `kiln bench` from one run to the next: PyTorch and Triton take seconds to start.

    keep.py hold PATH PEER...   start PEER and keep it until this is ended; PATH becomes an executable
                                file to give to --peer
    keep.py relay SOCKET        what that file runs: lines to the socket and back

The protocol is that of docs/bench.md; `bye` ends the relay alone.  A peer that breaks or is left in
the middle of an answer is started anew for the next run.
"""
import json
import os
import select
import signal
import socket
import subprocess
import sys


class Peer:
    """The process that is kept, and what it answered to hello."""

    def __init__(self, argv):
        self.argv, self.hello = argv, None
        self.start()

    def start(self):
        self.child, self.rest = subprocess.Popen(
            self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True), b""

    def ask(self, line, conn):
        """A line to it; its answer, or None when it has ended or conn has."""
        if not self.child:
            self.start()
        try:
            self.child.stdin.write(line)
            self.child.stdin.flush()
        except OSError:
            return None
        out = self.child.stdout.fileno()
        while b"\n" not in self.rest:
            ready = select.select([out, conn], [], [])[0]
            if conn in ready:       # no question comes before an answer: Kiln has given up
                return None
            more = os.read(out, 65536)
            if not more:
                return None
            self.rest += more
        answer, self.rest = self.rest.split(b"\n", 1)
        return answer + b"\n"

    def end(self):
        """End it; how it ended by itself, if it did."""
        if not self.child:
            return ""
        try:
            rc = self.child.wait(0.5)
            why = f"it has crashed: signal {-rc}" if rc < 0 else f"it has ended with exit status {rc}"
        except subprocess.TimeoutExpired:
            why = "it was ended"
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()
        self.child = self.hello = None
        return why


def serve(peer, conn):
    """One run of `kiln bench`."""
    lines = conn.makefile("rb")
    for line in lines:
        do = json.loads(line)["do"]
        if do == "bye":
            return
        if do == "hello" and peer.hello:
            conn.sendall(peer.hello)
            continue
        answer = peer.ask(line, conn)
        if answer is None:
            why = peer.end()
            conn.sendall(json.dumps({"error": why, "again": True}).encode() + b"\n")
            return
        if do == "hello":
            peer.hello = answer
        conn.sendall(answer)


def hold(path, argv):
    at = path + ".socket"
    s = socket.socket(socket.AF_UNIX)
    s.bind(at)
    s.listen(1)
    with open(path + ".new", "w") as f:
        f.write(f"#!/bin/sh\nexec '{sys.executable}' '{os.path.abspath(__file__)}' relay '{at}'\n")
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)      # it is there when it works
    peer = Peer(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while True:
            conn, _ = s.accept()
            with conn:
                try:
                    serve(peer, conn)
                except OSError:     # the relay was ended
                    pass
    finally:
        if peer.child:
            peer.child.stdin.close()
        peer.end()
        for name in (path, at):
            os.unlink(name)


def relay(at):
    s = socket.socket(socket.AF_UNIX)
    s.connect(at)
    answers = s.makefile("rb")
    for line in sys.stdin.buffer:
        try:
            s.sendall(line)
        except OSError:
            return 1
        if json.loads(line)["do"] == "bye":
            return 0
        answer = answers.readline()
        if not answer:
            return 1
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "hold":
        hold(sys.argv[2], sys.argv[3:])
    elif len(sys.argv) == 3 and sys.argv[1] == "relay":
        sys.exit(relay(sys.argv[2]))
    else:
        sys.exit(__doc__)
