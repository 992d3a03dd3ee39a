#!/usr/bin/env python3
"""Small random kernels full of races: the interpreter and the executor must find the same codes at
the same lines.  usage: random.py KILN [FIRST [END]]"""
import os
import random
import re
import subprocess
import sys
import tempfile

HEAD = """kernel k(i64 n, i32 a[24] = 0, i32 b[24] = 0, i32 y[n])
    grid(n)
{
    i64 p = program_id(0);
    i32 s = 0;
"""


def order(r, *kinds):
    kind = r.choice(("relaxed", "relaxed") + ("acquire", "release", "acq_rel"))
    return ", .order = " + kind if kind in kinds else ""


def statement(r):
    array, width = r.choice("ab"), r.choice((1, 2, 4))
    step, first = r.choice((0, 1, 2, 4)), r.randint(0, 6)
    at = "p * %d + %d" % (step, first) if step else "%d" % first
    part, one = "%s[%s : %d]" % (array, at, width), "%s[%s]" % (array, at)
    text = r.choice((
        "%s = %s;" % (part, r.choice(("(i32)p", "7"))),
        "%s = %s;" % (part, r.choice(("(i32)p", "7"))),
        "s += sum(%s);" % part,
        "s += sum(%s);" % part,
        "%s += 1;" % part,
        "s += atomic_add(%s, 1%s);" % (one, order(r, "acquire", "release", "acq_rel")),
        "atomic_max(%s[%s + range(%d)], (i32)p);" % (array, at, width) if width > 1
        else "atomic_max(%s, (i32)p);" % one,
        "s += atomic_load(%s%s);" % (one, order(r, "acquire")),
        "atomic_store(%s, (i32)p%s);" % (one, order(r, "release")),
    ))
    if r.random() < 0.35:
        text = "if (p %s %d) %s" % (r.choice(("==", "!=", "<")), r.randint(0, 3), text)
    return "    " + text + "\n"


def kernel(seed):
    r = random.Random(seed)
    return HEAD + "".join(statement(r) for _ in range(r.randint(1, 5))) + "    y[p] = s;\n}\n"


def findings(kiln, path, device):
    done = subprocess.run([kiln, "check", path, "n=4", "--device", device],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.findall(r"^[^ ]*:(\d+):\d+: \w+\[(K\d+)\]", done.stdout, re.M)
    return done.returncode, sorted(set(found)), done.stdout


def main():
    kiln = os.path.abspath(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    end = int(sys.argv[3]) if len(sys.argv) > 3 else first + 300
    bad = racy = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.kiln")
        for seed in range(first, end):
            with open(path, "w") as f:
                f.write(kernel(seed))
            a, b = findings(kiln, path, "interp"), findings(kiln, path, "sim")
            racy += bool(a[1])
            if a[0] > 1 or b[0] > 1 or a[1] != b[1]:
                bad += 1
                print("seed %d\n%s%s\n%s" % (seed, kernel(seed), a[2], b[2]))
    print("%d kernels, %d with findings, %d differ" % (end - first, racy, bad))
    return 1 if bad or not racy else 0


if __name__ == "__main__":
    sys.exit(main())
