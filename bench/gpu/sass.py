#!/usr/bin/env python3
"""sass.py CASE... - the accesses of shared memory in a kernel's PTX beside those in what ptxas makes of it.

Needs kiln (O: where), ptxas and cuobjdump.  A CASE is a name of ncu_cases.txt.  Prints a line of JSON for
each: how many instructions of each width (bytes of a lane) the text holds.  ptxas may join accesses of
neighbours, and then the two differ; sass.jsonl keeps the lines of the kernels where that shows."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ncu  # noqa: E402

PTX = re.compile(r"\b(ld|st)\.(?:volatile\.)?shared(?:::cta)?(?:\.(v2|v4))?\.[bufs](\d+)\b")
MATRIX = re.compile(r"\b(ldmatrix|stmatrix)\b")
SASS = re.compile(r"\b(LDS|STS)(?:\.(U8|S8|U16|S16|64|128))?\b|\b(LDSM|STSM)\b")


def count(lines, what):
    return dict(sorted(collections.Counter(filter(None, map(what, lines))).items()))


def of_ptx(line):
    m = PTX.search(line)
    if m:
        return f"{m.group(1)} {int(m.group(3)) // 8 * int((m.group(2) or 'v1')[1:])}"
    m = MATRIX.search(line)
    return m.group(1) if m else None


def of_sass(line):
    m = SASS.search(line)
    if not m:
        return None
    if m.group(3):
        return {"LDSM": "ldmatrix", "STSM": "stmatrix"}[m.group(3)]
    size = {None: 4, "U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}[m.group(2)]
    return f"{'ld' if m.group(1) == 'LDS' else 'st'} {size}"


def run(words):
    p = subprocess.run(words, capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stderr)
    return p.stdout


def as_array(word):
    """What explain calls 4096x4096:f32 is, for emit, an array of zeros."""
    return re.sub(r"^(\w+)=([\dx]+):(\w+)$", r"\1=zeros(\2,\3)", word)


def main():
    cases = dict(ncu.read_cases(ncu.CASES))
    for name in sys.argv[1:]:
        ptx = run([ncu.program("kiln", "KILN"), "emit", "--stage", "ptx", "--arch", "sm_90",
                   *map(as_array, cases[name][0])])
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/k.ptx", "w") as f:
                f.write(ptx)
            run([os.environ.get("PTXAS", "ptxas"), "-arch=sm_90", f"{d}/k.ptx", "-o", f"{d}/k.cubin"])
            sass = run([os.environ.get("CUOBJDUMP", "cuobjdump"), "-sass", f"{d}/k.cubin"]).splitlines()
        print(json.dumps({"case": name, "ptx": count(ptx.splitlines(), of_ptx), "sass": count(sass, of_sass)}), flush=True)


if __name__ == "__main__":
    main()
