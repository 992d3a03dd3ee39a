#!/usr/bin/env python3
"""Which kernels of the library pass, for which element types, on which back ends.

    tools/matrix.py --build build [--clang clang] [--ptxas PATH] [--only FILE] > table.md

Runs the cases of kernels/*.kiln on the checked interpreter, the CPU under gcc and clang, and the
PTX executor, and gives what the executor ran, emitted for each target, to ptxas.  A cell is the
number of cases that pass, `n of m` if some do not.  Exits with 1 if one does not.
"""
import argparse, collections, glob, os, re, subprocess, sys, tempfile

TYPES = ["f32", "f16", "bf16", "f64", "f8e4m3", "f8e5m2", "i8", "i16", "i32", "i64", "u8", "u16",
         "u32", "u64", "bool"]
TARGETS = [80, 86, 89, 90, 100, 120]


def cases(path):
    """Line of each case -> (kernel, type): the type that is given for T, or that of the first array
    with one of the types in its list."""
    out, kernels, here = {}, [], None
    for number, line in enumerate(open(path), 1):
        m = re.match(r"kernel (\w+)", line)
        if m:
            kernels.append(m.group(1))
        m = re.match(r"//! (\w+) (.*)", line)
        if not m:
            continue
        word, rest = m.groups()
        if word == "test":
            here = out[number] = {"kernel": None, "T": None, "array": None}
        elif word == "kernel":
            here["kernel"] = rest.strip()
        elif word == "type" and rest.replace(" ", "").startswith("T="):
            here["T"] = rest.split("=")[1].strip()
        elif word == "input" and not here["array"]:
            t = re.search(r"[,:](" + "|".join(TYPES) + r")\b", rest)
            here["array"] = t.group(1) if t else None
    for c in out.values():
        c["kernel"] = c["kernel"] or kernels[0]
        c["type"] = c["T"] or c["array"] or "other"
    return out


def run(kiln, paths, *args, env=None):
    r = subprocess.run([kiln, "test", "-v", *args, *paths], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, env=env)
    state = {}
    for line in r.stdout.splitlines():
        m = re.match(r"(ok|FAIL|skip)\w*\s+(\S+?):(\d+):", line)
        if m:
            state[m.group(2), int(m.group(3))] = m.group(1)
    if not state:
        sys.exit("matrix.py: " + r.stdout[-2000:])
    return state


def bodies(folder):
    """Entry -> texts without what names the source's lines."""
    out = collections.defaultdict(set)
    for path in glob.glob(folder + "/*.ptx"):
        text = open(path).read()
        text = re.sub(r"^\s*\.(file|loc)\b.*\n", "", text, flags=re.M)
        name = re.search(r"\.visible \.entry kiln_(\w+)\(", text).group(1)
        out[name].add(text)
    return out


def assemble(ptxas, texts, arch, work):
    """All texts of one target as one module; one by one if that does not go.  -> those refused"""
    def one(group):
        head = group[0][1].split(".visible", 1)[0]
        whole = head + "".join(
            re.sub(r"\bkiln_%s(?=\b|_\d)" % n, "k%d_%s" % (i, n), ".visible" + t.split(".visible", 1)[1])
            for i, (n, t) in enumerate(group))
        path = work + "/k.ptx"
        open(path, "w").write(whole)
        r = subprocess.run([ptxas, "-O1", "-c", "-arch=sm_%d" % arch, "-o", "/dev/null", path],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return r.returncode == 0
    # texts with other .extern or .version lines go apart
    heads = collections.defaultdict(list)
    for n, t in texts:
        heads[t.split(".visible", 1)[0]].append((n, t))
    bad = []
    for group in heads.values():
        if not one(group):
            bad += [x for x in group if not one([x])]
    return bad


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default="build")
    a.add_argument("--clang", default="/usr/bin/clang")
    a.add_argument("--gcc", default="/usr/bin/gcc")
    a.add_argument("--ptxas", default="/usr/local/cuda/bin/ptxas")
    a.add_argument("--only", default="")
    o = a.parse_args()
    kiln = os.path.abspath(o.build) + "/kiln"
    files = sorted(glob.glob("kernels/%s.kiln" % (o.only or "*")))
    known = {(f, n): c for f in files for n, c in cases(f).items()}
    work = tempfile.mkdtemp()
    ends = [("interp", run(kiln, files, "--device", "interp"))]
    for name, cc in (("CPU, gcc", o.gcc), ("CPU, clang", o.clang)):
        if os.access(cc, os.X_OK):
            ends.append((name, run(kiln, files, "--device", "cpu", "--cc", cc)))
    ends.append(("executor", run(kiln, files, "--device", "sim")))

    count = collections.defaultdict(lambda: [0, 0])
    failed = 0
    for name, state in ends:
        for at, c in known.items():
            cell = count[at[0], c["kernel"], c["type"], name]
            cell[1] += 1
            cell[0] += state.get(at) == "ok"
            if state.get(at) != "ok":
                failed += state.get(at) != "skip"
                print("%s: %s:%d %s" % (name, *at, state.get(at)), file=sys.stderr)

    names = [n for n, _ in ends]
    print("# Kernels, element types, back ends\n")
    print("Cases of `kernels/*.kiln` that pass, by kernel and by the type of T or, where the kernel has")
    print("none, of its first array. Each is compared with the checked interpreter bit by bit, and with")
    print("numbers or a reference kernel. `tools/matrix.py` makes this page.\n")
    print("| file | kernel | type | " + " | ".join(names) + " |")
    print("|---|---|---|" + "---|" * len(names))
    rows = sorted({k[:3] for k in count if "reference" not in k[1]},
                  key=lambda k: (k[0], k[1], (TYPES + ["other"]).index(k[2])))
    for f, k, t in rows:
        cells = [count[f, k, t, n] for n in names]
        print("| `%s` | %s | %s | %s |" % (
            os.path.basename(f)[:-5], k, t,
            " | ".join(str(c[0]) if c[0] == c[1] else "%d of %d" % tuple(c) for c in cells)))
    for n in names:
        print("%s%s: %d of %d cases" % ("\n" if n == names[0] else "", n,
              sum(count[k][0] for k in count if k[3] == n), sum(count[k][1] for k in count if k[3] == n)),
              end=".\n" if n == names[-1] else "; ")

    if os.access(o.ptxas, os.X_OK):
        version = subprocess.run([o.ptxas, "--version"], stdout=subprocess.PIPE, text=True).stdout
        print("\n## Assembled\n")
        print("Texts that the cases need, each once, given to ptxas (%s). For targets between the first"
              % re.search(r"V[\d.]+", version).group(0))
        print("and the last a text that is, but for its head, the one of the target before counts with that.\n")
        seen, table = {}, collections.defaultdict(dict)
        for arch in TARGETS:
            keep = work + "/%d" % arch
            os.mkdir(keep)
            run(kiln, files, "--device", "sim", "--arch", "sm_%d" % arch, "--keep", keep, "--no-cache")
            every = [(n, t) for n, ts in bodies(keep).items() for t in sorted(ts)]
            body = {(n, t): t.split(".visible", 1)[1] for n, t in every}
            todo = [x for x in every
                    if arch in (TARGETS[0], TARGETS[-1]) or body[x] not in seen.get(x[0], set())]
            bad = assemble(o.ptxas, todo, arch, work)
            for n, t in every:
                good, all_ = table[n].get(arch, (0, 0))
                table[n][arch] = (good + ((n, t) not in bad), all_ + 1)
                seen.setdefault(n, set()).add(body[n, t])
            failed += len(bad)
            for n, t in bad:
                print("ptxas sm_%d refuses %s" % (arch, n), file=sys.stderr)
        print("| kernel | " + " | ".join("sm_%d" % t for t in TARGETS) + " |")
        print("|---|" + "---|" * len(TARGETS))
        for n in sorted(table):
            if "reference" in n:
                continue
            print("| %s | %s |" % (n, " | ".join(
                "%d" % c[0] if c[0] == c[1] else "%d of %d" % c
                for c in (table[n].get(t, (0, 0)) for t in TARGETS))))

    print("\n## Sizes\n\n| file | bytes | stripped |\n|---|---|---|")
    for name in ("libkiln.so", "libkiln.a", "kiln"):
        path, bare = o.build + "/" + name, work + "/" + name
        if os.path.exists(path) and subprocess.run(["strip", "-S" if name[-1] == "a" else "-s", "-o", bare,
                                                    path]).returncode == 0:
            print("| %s | %d | %d |" % (name, os.path.getsize(path), os.path.getsize(bare)))
    subprocess.run(["rm", "-rf", work])
    return 1 if failed else 0


sys.exit(main())
