#!/usr/bin/env python3
"""ncu.py - `kiln explain` beside the counters of Nsight Compute.

    ncu.py explain OUT     what the model says of each case: OUT/explain.json
    ncu.py count OUT       the counters, and which launches they belong to: OUT/ncu.csv
    ncu.py time OUT        cold times of the slow kernels and their remedies: OUT/times.jsonl
    ncu.py report OUT      a page for bench/results, from these files, on standard output
    ncu.py table OUT       every number of every launch as CSV, on standard output

ncu.sh calls them in turn.  Environment: O (build folder), CASES, KILN, LAUNCHES, NCU, SECONDS_NCU (for
`count`), SECONDS_EXPLAIN, ONLY (cases whose name holds this text), DEVICE, COMMIT (for the page)."""
import csv
import fnmatch
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
O = os.environ.get("O", "build")
CASES = os.environ.get("CASES", os.path.join(HERE, "ncu_cases.txt"))
NCU = shlex.split(os.environ.get("NCU", "")) or \
    [shutil.which("ncu") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/ncu") +
                                             glob.glob("/opt/nvidia/nsight-compute/*/ncu"))), "ncu")]
ONLY = os.environ.get("ONLY", "")
DEVICE = os.environ.get("DEVICE", "cuda")
PARTS = 6
LIMIT = 0.02
SASS = os.path.join(HERE, "sass.jsonl")  # of sass.py: what ptxas made of accesses of shared memory

# In groups: where one name of a group is not known to ncu and it does not say which, the group goes.
METRICS = [
    ["launch__registers_per_thread", "launch__waves_per_multiprocessor",
     "launch__grid_size", "launch__block_size"],
    ["sm__maximum_warps_per_active_cycle_pct", "launch__occupancy_limit_warps",
     "launch__occupancy_limit_registers", "launch__occupancy_limit_shared_mem",
     "launch__occupancy_limit_blocks"],
    ["gpu__time_duration.sum", "smsp__inst_executed.sum"],
    ["launch__shared_mem_config_size", "smsp__thread_inst_executed.sum"],
    ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
     "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
     "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
     "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    ["l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
     "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"],
    ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
     "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"],
    ["smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_st.sum"],
    ["memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"],
    ["memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"],
    ["dram__bytes_read.sum", "dram__bytes_write.sum"],
    ["l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
     "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"],
    ["lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum"],
]

# The first of these that ncu accepts.
OPTIONS = [
    ["--clock-control", "none", "--cache-control", "all", "--replay-mode", "kernel", "--csv", "--page", "raw",
     "--print-units", "base"],
    ["--clock-control", "none", "--csv", "--page", "raw"],
    ["--csv", "--page", "raw"],
]

# Reasons found by looking, for differences above 2 %: (case, quantity, text); both are patterns.  They
# come before what reason_of finds by itself.  What follows a bar is said of that launch alone.
REASONS = [
    ("argreduce/axis", "shared store wavefronts", "rounds lost to arbitration"),
    ("moe_count", "shared store wavefronts", "rounds lost to arbitration"),
    ("rmsnorm_looped", "shared store wavefronts", "rounds lost to arbitration"),
    ("moe_count", "shared *", "ptxas moves a load behind the exit of the threads that do not store what it gives|"
     "one warp of eight runs the last LDS.64 of its code"),
    ("argreduce/axis", "shared *", "lanes that all read the same 16 bytes: the model takes a quarter of the warp at a time, "
     "the hardware half of it|ld.shared.v4 with one address a warp: 4 wavefronts a request in the model, 2 counted"),
]

# Of the slow kernels: the note whose advice the remedy follows, what its gain is a share of, and which
# remedy.
BAD = [
    ("strided", "K2101", "sectors loaded", "good"),
    ("rows", "K2103", "sectors", "good"),
    ("conflict", "K2203", "shared wavefronts", "good"),
    ("divergence", "K2701", "instructions", "good"),
    ("spills", "K2401", "bytes past the cache", "good"),
    ("small", "K2303", "time", "good"),
    ("tail", "K2302", "time", "even"),
    ("tail", "K2302", "time", "good"),
    ("chain", "", "bytes of memory", "good"),
]

start = time.monotonic()


def say(text):
    print(f"{time.monotonic() - start:7.1f} s  {text}", file=sys.stderr, flush=True)


def program(name, variable):
    if os.environ.get(variable):
        return os.environ[variable]
    for p in (f"{O}/{name}", f"{O}/tests/{name}"):
        if os.path.exists(p):
            return p
    return f"{O}/{name}"


def read_cases(path):
    """[(name, [words of each launch])]"""
    cases = []
    for line in open(path):
        words = line.split()
        if not words or words[0].startswith("#") or ONLY not in words[0]:
            continue
        stages, at = [], []
        for w in words[1:] + ["then"]:
            if w == "then":
                stages.append(at)
                at = []
            else:
                at.append(w)
        cases.append((words[0], stages))
    return cases


def end_children(session, name):
    """End the programs of that name in a session, so that ncu reports what they did."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{pid}/stat").read()
            comm, rest = stat[stat.index("(") + 1:stat.rindex(")")], stat[stat.rindex(")") + 2:].split()
            if int(rest[3]) == session and comm == name[:15]:
                os.kill(int(pid), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass  # it has ended


running = []  # what must end if this program is ended


def ended(signum, frame):
    for p in running:
        os.killpg(p.pid, signal.SIGKILL)
    sys.exit(124)


def run_limited(command, seconds, child=None, **more):
    """The exit status, None if it ran out of time: then it and all that it started are ended."""
    p = subprocess.Popen(command, start_new_session=True, **more)
    running[:] = [p]
    try:
        return p.wait(timeout=max(1, seconds))
    except subprocess.TimeoutExpired:
        pass
    finally:
        running.clear()
    running[:] = [p]
    if child:
        end_children(p.pid, child)
        try:
            p.wait(timeout=15)
        except subprocess.TimeoutExpired:
            pass
    if p.poll() is None:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    running.clear()
    return None


# ---- the model ----

def explain_one(words, registers=os.environ.get("REGISTERS", "driver")):
    command = [program("kiln", "KILN"), "explain", *words, "--format", "json", "--gpu", "H200", "--no-tune",
               "--registers", registers]
    left = float(os.environ.get("SECONDS_EXPLAIN", "90")) - (time.monotonic() - start)
    if left < 1:
        return {"error": "no time was left to explain it"}
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=min(left, 25))
    except subprocess.TimeoutExpired:
        return {"error": "explain ran out of time"}
    if p.returncode:
        return {"error": p.stderr.strip().splitlines()[0] if p.stderr.strip() else "explain failed"}
    k = json.loads(p.stdout)["kernels"][0]
    k.pop("ladder", None)  # much text that nobody compares
    k["model"]["loads_apart"] = sum(a["apart"] for a in k["model"]["accesses"] if a["kind"] == "load")
    for name in ("lines", "accesses", "shared"):
        k["model"].pop(name, None)
    return k


def explain(out):
    cases = read_cases(CASES)
    flat = [(name, words) for name, stages in cases for words in stages]
    with ThreadPoolExecutor(int(os.environ.get("JOBS", min(12, os.cpu_count() or 1)))) as pool:
        said = list(pool.map(lambda c: explain_one(c[1]), flat))
        # what spills costs is known to ptxas alone: the slow kernels' notes come from where it is asked
        slow = [i for i, c in enumerate(flat) if c[0].startswith("bad/")]
        for i, k in zip(slow, pool.map(lambda i: explain_one(flat[i][1], "auto"), slow)):
            if "error" not in said[i] and "error" not in k:
                said[i]["notes"] = k["notes"]
    result = {}
    for (name, _), k in zip(flat, said):
        result.setdefault(name, []).append(k)
        if "error" in k:
            say(f"{name}: {k['error']}")
    with open(f"{out}/explain.json", "w") as f:
        json.dump(result, f, separators=(",", ":"))
    say(f"explain: {len(flat)} launches")


# ---- the counters ----

def ncu_command(options, metrics, log, launches):
    return [*NCU, *options, "--metrics", ",".join(metrics), "--log-file", log, program("launches", "LAUNCHES"), CASES,
            "--device", DEVICE, *launches]


def run_ncu(options, metrics, out, launches, seconds):
    """(exit status or None, text of ncu, lines of launches)"""
    log, said = f"{out}/ncu.part", f"{out}/launches.part"
    for path in (log, said):
        if os.path.exists(path):
            os.remove(path)
    with open(said, "w") as f:
        try:
            rc = run_limited(ncu_command(options, metrics, log, [*launches, "--seconds", str(max(5, int(seconds) - 10))]),
                             seconds, os.path.basename(program("launches", "LAUNCHES")), stdout=f,
                             stderr=sys.stderr)
        except OSError as e:
            say(f"{NCU[0]}: {e.strerror}")
            return 127, "", []
    text = open(log, errors="replace").read() if os.path.exists(log) else ""
    printed = open(said, errors="replace").read().splitlines() if os.path.exists(said) else []
    lines = [x for x in printed if x.startswith("{")]
    text += "".join("\n" + x for x in printed if x.startswith("=="))
    os.remove(said)
    if os.path.exists(log):
        os.remove(log)
    return rc, text, lines


def last_words(text):
    """What ncu said of a run that came to nothing."""
    return " / ".join(x for x in text.splitlines() if x.startswith("=="))[-400:]


def usable(out):
    """The options and metrics that ncu has here, found on a small case."""
    probe = ["--exact", os.environ.get("PROBE", "prefix_before")]
    groups, options = [list(g) for g in METRICS], list(OPTIONS)
    for _ in range(8):
        metrics = [m for g in groups for m in g]
        rc, text, _ = run_ncu(options[0], metrics, out, probe, 60)
        if read_csv(text):
            return options[0], metrics
        lost = [m for m in metrics
                if re.search(rf"[^\n]*metric[^\n]*(?<![\w.]){re.escape(m)}(?![\w.])", text, re.I)]
        if len(lost) in (0, len(metrics)):
            say("ncu: " + last_words(text))
            if len(options) == 1:
                break
            options.pop(0)
        else:
            say("ncu has no " + ", ".join(lost))
            groups = [[m for m in g if m not in lost] for g in groups]
    good = []
    for g in filter(None, groups):
        rc, text, _ = run_ncu(options[0], g, out, probe, 30)
        if read_csv(text):
            good += g
        else:
            say("ncu cannot count " + ", ".join(g) + ": " + last_words(text))
            if g is groups[0]:  # facts of the launch; then it counts nothing
                break
    return options[0], good


def count(out):
    deadline = time.monotonic() + float(os.environ.get("SECONDS_NCU", "200"))
    options, metrics = usable(out)
    if not metrics:
        say("ncu counts nothing here")
        return 1
    say(f"{len(metrics)} metrics")
    names = [name for name, _ in read_cases(CASES)]
    done, part = set(), 0
    with open(f"{out}/ncu.csv", "w") as table:
        def take(launches, seconds, what):
            nonlocal part
            rc, text, lines = run_ncu(options, metrics, out, launches, seconds)
            rows = read_csv(text)
            how = "out of time" if rc is None else f"status {rc}" if rc else "ok"
            say(f"{what}: {how}, {len(rows)} kernels")
            if rc or not rows:
                say("    " + last_words(text))
            if not rows:
                return
            table.write(f"# part {part}\n" + "".join(f"# launch {x}\n" for x in lines) + text + "\n")
            table.flush()
            done.update(json.loads(x)["case"] for x in lines)
            part += 1

        for k in range(PARTS):
            left = deadline - time.monotonic()
            if left > 5:
                only = ["--only", ONLY] if ONLY else []
                take([*only, "--part", f"{k}/{PARTS}"], min(left, float(os.environ.get("SECONDS_PART", "75"))), f"part {k + 1} of {PARTS}")
        # what was lost with a part that hung, one at a time
        for name in names:
            left = deadline - time.monotonic()
            if name not in done and left > 5:
                take(["--exact", name], min(left, 20, float(os.environ.get("SECONDS_PART", "75"))), name)
    lost = [n for n in names if n not in done]
    if lost:
        say("not counted: " + " ".join(lost))
    return 0


def number(text):
    """A value as ncu prints it: thousands are parted, and instances may follow."""
    m = re.match(r"-?[\d,]*\.?\d+(?:[eE][-+]?\d+)?", (text or "").strip())
    try:
        return float(m.group(0).replace(",", "")) if m else None
    except ValueError:
        return None


def read_csv(text):
    """Rows of the raw page, or of the details page (a line for each metric): {name: value}."""
    lines = text.splitlines()
    at = next((i for i, x in enumerate(lines) if x.startswith('"ID",')), None)
    if at is None:
        return []
    rows, known, units = [], {}, {}
    for r in csv.DictReader(x for x in lines[at:] if x.startswith('"')):
        if not r["ID"]:
            units = r
            continue
        if "Metric Name" in r:
            if r["ID"] not in known:
                known[r["ID"]] = {"kernel": r["Kernel Name"]}
                rows.append(known[r["ID"]])
            known[r["ID"]][r["Metric Name"]] = scaled(r["Metric Value"], r.get("Metric Unit"))
            continue
        row = {m: scaled(v, units.get(m)) for m, v in r.items() if m and ("__" in m or m.startswith("memory_"))}
        rows.append({"kernel": r["Kernel Name"], **row})
    return rows


UNITS = {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9,
         "second": 1e9}


def scaled(text, unit):
    """In bytes and nanoseconds, also where ncu chose the unit by itself."""
    v = number(text)
    return v and v * UNITS.get(unit or "", 1)


def counters(out):
    """{case: [row of each launch]}; a row is None where ncu has none of that name."""
    parts = []
    for line in open(f"{out}/ncu.csv", errors="replace"):
        if re.match(r"# part \d+$", line):
            parts.append(([], []))
        elif parts and line.startswith("# launch "):
            parts[-1][0].append(json.loads(line[9:]))
        elif parts:
            parts[-1][1].append(line)
    result = {}
    for launches, text in parts:
        match(launches, read_csv("".join(text)), result)
    return result


def match(launches, left, result):
    """Give each launch the row that follows in order and has its name."""
    for j in launches:
        if not j["ok"]:
            # what ran of it before it failed must not be taken for the next one
            while left and any(same_kernel(left[0]["kernel"], n) for n in j["kernels"]):
                left.pop(0)
            continue
        got = []
        for name in j["kernels"]:
            found = next((i for i, r in enumerate(left) if same_kernel(r["kernel"], name)), None)
            got.append(left[found] if found is not None else None)
            if found is not None:
                del left[:found + 1]
        result[j["case"]] = got


def same_kernel(counted, name):
    """Kernels lie in the PTX under their name, some with a number before it."""
    counted = counted.split("(")[0].strip()
    return counted == name or re.fullmatch(rf"kiln_(?:\d+_)?{re.escape(name)}", counted) is not None


# ---- both together ----

def total(k, *names):
    return sum(k["model"][n]["units"] for n in names)


def quantities(k, r):
    """[(quantity, model, ncu)] of a launch; None: not known."""
    def ncu(*names):
        v = [r.get(n) for n in names]
        return None if None in v else sum(v)

    arrays = k["model"]["arrays"]
    t = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
    occ, regs, waves = k.get("occupancy"), k["registers"], k.get("waves")
    limits = occ["limits"] if occ else {}
    # ncu counts blocks by the part of the memory that the driver made shared memory for this launch;
    # launch__occupancy_limit_shared_mem is no fact of the kernel
    made, unit = ncu("launch__shared_mem_config_size"), 128
    block = -(-sum(k["shared"].values()) // unit) * unit if k.get("shared") else 0
    return [
        ("blocks", k["blocks"], ncu("launch__grid_size")),
        ("threads", k["threads"], ncu("launch__block_size")),
        ("load requests", k["model"]["global_load"]["requests"], ncu(t.format("requests", "ld"))),
        ("load sectors", total(k, "global_load"), ncu(t.format("sectors", "ld"))),
        ("store requests", k["model"]["global_store"]["requests"], ncu(t.format("requests", "st"))),
        ("store sectors", total(k, "global_store"), ncu(t.format("sectors", "st"))),
        ("atomic sectors", total(k, "atomic"), ncu(t.format("sectors", "atom"), t.format("sectors", "red"))),
        ("sectors, theoretical", total(k, "global_load", "global_store", "atomic"),
         ncu("memory_l2_theoretical_sectors_global")),
        ("shared load requests", k["model"]["shared_load"]["requests"],
         ncu("smsp__inst_executed_op_shared_ld.sum")),
        ("shared store requests", k["model"]["shared_store"]["requests"],
         ncu("smsp__inst_executed_op_shared_st.sum")),
        ("shared wavefronts, theoretical", total(k, "shared_load", "shared_store"),
         ncu("memory_l1_wavefronts_shared")),
        ("shared wavefronts, ideal",
         k["model"]["shared_load"]["ideal"] + k["model"]["shared_store"]["ideal"],
         ncu("memory_l1_wavefronts_shared_ideal")),
        ("shared load wavefronts", total(k, "shared_load"),
         ncu("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum")),
        ("shared store wavefronts", total(k, "shared_store"),
         ncu("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum")),
        ("DRAM bytes read", sum(a["unique_read_bytes"] for a in arrays), ncu("dram__bytes_read.sum")),
        ("DRAM bytes written", sum(a["unique_written_bytes"] for a in arrays),
         ncu("dram__bytes_write.sum")),
        ("registers", regs["registers"], ncu("launch__registers_per_thread")),
        ("occupancy %", occ["share"] * 100 if occ else None, ncu("sm__maximum_warps_per_active_cycle_pct")),
        ("limit by warps", limits.get("warps"), ncu("launch__occupancy_limit_warps")),
        ("limit by registers", limits.get("registers"), ncu("launch__occupancy_limit_registers")),
        ("limit by shared memory", made // block if occ and made and block else limits.get("shared"),
         ncu("launch__occupancy_limit_shared_mem")),
        ("limit by blocks", limits.get("blocks"), ncu("launch__occupancy_limit_blocks")),
        ("waves", round(waves["waves"], 2) if waves else None, ncu("launch__waves_per_multiprocessor")),
    ]


def off(model, counted):
    """How far the model is from the counter, as a share of the counter; small counts may differ by 1."""
    if model is None or counted is None or model == counted:
        return 0.0
    return (model - counted) / counted if counted else float("inf")


def read_sass():
    if not os.path.exists(SASS):
        return {}
    with open(SASS) as f:
        return {j["case"]: j for j in map(json.loads, f)}


def joined_accesses(j, ways):
    """What ptxas joined: "ld 8 x 4 bytes -> 2 x 16 bytes", or ""."""
    said = []
    for way in ways:
        a, b = ({int(n.split()[1]): j[c][n] for n in j[c] if n.startswith(way + " ")} for c in ("ptx", "sass"))
        fewer = [f"{a[n]} x {n}" for n in sorted(a) if a[n] > b.get(n, 0)]
        made = [f"{b.get(n, 0)} x {n}" for n in sorted({*a, *b}) if a.get(n, 0) != b.get(n, 0)]
        if fewer:
            before = [f"{a[n]} x {n}" for n in sorted(a) if a[n] != b.get(n, 0)]
            said.append(f"{way}: {', '.join(before)} bytes became {', '.join(made)}")
    return "; ".join(said)


def reason_of(case, what, model, counted, k, r, sass):
    """Why they differ, where that can be read off the other numbers; "" where not."""
    for c, q, text in REASONS:
        if fnmatch.fnmatch(case, c) and fnmatch.fnmatch(what, q):
            return text
    m = k["model"]
    value = {q: (a, b) for q, a, b in quantities(k, r)}
    local = {w: 32 * (r.get(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{w}.sum") or 0) for w in ("ld", "st")}
    if what in ("registers", "limit by registers") and value["registers"][0] < value["registers"][1] == 16:
        return "a launch takes 16 registers at least; the driver says what the code needs"
    if k["cluster"] > 1 and what.startswith("shared") and counted < model:
        return "blocks of a cluster write into each other's shared memory (st.async), which the LSU counters of shared memory do not count"
    if what == "DRAM bytes written":
        if counted < model and model - counted <= 64 << 20:
            return "what is written last is still in the L2 cache (60 MiB) when the kernel ends"
        if counted > model and local["st"] * 2 > counted - model:
            return "registers that spill are written, too"
        if 0 < counted - model < 4.5e6 and 32 * (r.get("lts__t_sectors_op_write.sum") or 0) < counted:
            return "up to 4 MB that the kernel did not write: the L2 cache gets fewer bytes from it than memory from " \
                "the cache, so these lines were changed before it"
        if 0 < counted - model < 4.5e6:
            return "sectors that are written in parts leave the L2 cache more than once"
    if what == "DRAM bytes read":
        if not m["exact"]:
            return "which elements are read depends on data, or not all programs were counted"
        if 0 < counted - model < 4 << 20:
            return "up to 4 MB that the GPU reads in the same time (code, page tables)"
        if counted > model and counted <= 1.02 * 32 * value["load sectors"][1]:
            return "part of what is used again has left the caches; never more than the sectors that are loaded"
        if counted > model and local["ld"] >= counted - model:
            return "registers that spill are read, too"
    if what.startswith("shared") and case in sass:
        ways = ["ld"] if "load" in what else ["st"] if "store" in what else ["ld", "st"]
        text = joined_accesses(sass[case], ways)
        if text and counted < model:
            return "ptxas joins accesses of neighbours that the PTX has one by one|" + text
        if what == "shared store requests" and counted > model and not text:
            return "stores under a predicate count as executed where no lane is on, and the model leaves them out"
    if what in ("shared load wavefronts", "shared store wavefronts") and counted > model:
        a, b = value["shared wavefronts, theoretical"]
        if b is not None and (abs(off(a, b)) <= LIMIT or case in sass) and counted < 1.2 * model:
            return "rounds lost to arbitration"
    if m["unknown"]:
        return "depends on data that the model was not given|" + m["unknown"][0]["text"]
    if m["programs_counted"] < m["programs"] and not m["exact"]:
        return f"not all programs were counted, and the counts scaled|{m['programs_counted']} of {m['programs']}"
    return ""


def text_of(v):
    if v is None:
        return "-"
    return f"{v:.0f}" if v == int(v) else f"{v:.4g}"


NOT_KNOWN = "**not known**"

NOTES = """
Registers: ncu sees the launch. *Theoretical* and *ideal* wavefronts are counted by
ncu from the addresses, the others by the hardware. *Limit by shared memory*: ncu divides what the driver made
shared memory for this launch (`launch__shared_mem_config_size`, 8 to 228 KiB), while occupancy follows from
what it can make; the row puts the model's bytes of a block into ncu's figure. ncu prints waves with two
digits, and so they are compared. Accesses of shared memory are counted in the PTX: ptxas may join neighbours,
and what it did is counted in its code (`bench/gpu/sass.py`)."""


def joined(out):
    """[(label, model, row)] of each launch that was counted, and the names of those that were not."""
    said, counted = json.load(open(f"{out}/explain.json")), counters(out)
    rows, lost = [], []
    for case, stages in said.items():
        for i, k in enumerate(stages):
            label = case + (f" ({k.get('kernel', i)})" if len(stages) > 1 else "")
            r = counted.get(case, [None] * len(stages))[i] if case in counted else None
            if "error" in k:
                lost.append(f"{label}: {k['error']}")
            elif r is None:
                lost.append(f"{label}: not counted")
            else:
                rows.append((case, label, k, r))
    return rows, lost


def in_short(what, v):
    if what.startswith("DRAM"):
        return f"{v / 1e6:.2f} MB" if v >= 1e5 else f"{v:.0f} B"
    return text_of(v)


def page_counters(out):
    rows, lost = joined(out)
    sass = read_sass()
    sums, groups = {}, {}
    for case, label, k, r in rows:
        for what, a, b in quantities(k, r):
            if a is None or b is None:
                continue
            s = sums.setdefault(what, [0, 0, 0, 0])
            s[0] += 1
            s[1] += a == b
            if abs(off(a, b)) > LIMIT:
                why, _, more = reason_of(case, what, a, b, k, r, sass).partition("|")
                s[2] += 1
                s[3] += not why
                groups.setdefault(why or NOT_KNOWN, {}).setdefault(label, []).append((what, a, b, more))
    print(f"\n## The model and the counters\n\n{len(rows)} launches. *Equal*: to the last digit.\n")
    print("| quantity | launches | equal | within 2 % | above 2 % | of these without a reason |\n|---|---|---|---|---|---|")
    for what, (n, same, above, dark) in sums.items():
        print(f"| {what} | {n} | {same} | {n - above} | {above} | {dark} |")
    print(NOTES)
    print("\n## Differences above 2 %, by reason\n\n"
          "Reasons are chosen by rules from the other numbers of the launch, or found by looking (`reason_of` and\n"
          "`REASONS` in `bench/gpu/ncu.py`). Each number is *model / ncu*.")
    for why in sorted(groups, key=lambda g: (g != NOT_KNOWN, -sum(map(len, groups[g].values())))):
        of = groups[why]
        n = sum(map(len, of.values()))
        print(f"\n### {why[0].upper() + why[1:] if why != NOT_KNOWN else why} ({n})\n")
        mores = any(d[3] for v in of.values() for d in v)
        kinds = sorted({d[0] for v in of.values() for d in v})
        alone = kinds[0] if len(kinds) == 1 else None
        print(f"| launch | {alone or 'numbers'} |{' what it is |' if mores else ''}\n|---|---|{'---|' if mores else ''}")
        for label, v in of.items():
            cells = "; ".join(("" if alone else w + " ") + f"{in_short(w, a)} / {in_short(w, b)}" for w, a, b, _ in v)
            more = max((d[3] for d in v), key=len)
            print(f"| {label} | {cells} |" + (f" {more} |" if mores else ""))
    page_l1(rows)
    if lost:
        print("\nNot compared:\n")
        for x in lost:
            print("- " + x)


def page_l1(rows):
    """Sectors that pass the L1 cache, where a block asks for some more than once."""
    seen = []
    for _, label, k, r in rows:
        asked, apart = total(k, "global_load"), k["model"].get("loads_apart")
        l2 = r.get("lts__t_sectors_op_read.sum")
        if apart and asked and l2:
            seen.append((label, asked, apart, l2))
    once = sorted(l2 / apart for _, asked, apart, l2 in seen if asked <= 1.01 * apart)
    often = sorted((s for s in seen if s[1] >= 1.2 * s[2]), key=lambda s: s[2] / s[1])
    if not once or not often:
        return
    each = once[len(once) // 2]
    near = sum(abs(x - each) <= 0.01 * each for x in once)
    print(f"\n## What the L1 cache keeps\n\nOf {len(once)} launches whose blocks ask for no sector twice in one execution of a load, the median reads\n"
          f"{each:.3f} sectors from the L2 cache for each; {near} are within 1 % of that. Fewer are read where loads share\n"
          f"sectors among each other. Below: launches whose blocks ask for some again; L2 reads are divided by {each:.3f}.\n\n"
          "| launch | sectors asked for | apart (model) | read (ncu) |\n|---|---|---|---|")
    for label, asked, apart, l2 in often:
        print(f"| {label} | {asked} | {apart} | {l2 / each:.0f} |")


def table(out):
    """One row a launch: every quantity of the model and of ncu."""
    rows, _ = joined(out)
    w = csv.writer(sys.stdout, lineterminator="\n")
    for i, (_, label, k, r) in enumerate(rows):
        q = quantities(k, r)
        if i == 0:
            w.writerow(["launch"] + [f"{name}: {by}" for name, _, _ in q for by in ("model", "ncu")])
        w.writerow([label] + ["" if v is None else text_of(v) for _, a, b in q for v in (a, b)])


# ---- the slow kernels ----

def advice(stages, code):
    """(gain in percent, of what, the help) of the first note of that code."""
    for k in stages:
        for n in k.get("notes", []):
            if n["code"] == code:
                texts = [x["text"] for x in n["notes"]]
                m = next((m for m in (re.search(r"expected gain: (?:up to|about) (\d+)% of (.*)", x) for x in texts) if m), None)
                h = next((x[6:] for x in texts if x.startswith("help: ")), "")
                return (int(m.group(1)) if m else None, m.group(2) if m else "", h)
    return None, "", ""


def time_predicted(stages, code, remedy):
    """What the model says of the kernel's time: (least, most) in percent over all notes of that code; None."""
    if not code:
        parts = [[k.get("busy") for k in x] for x in (stages, remedy)]
        if not all(parts) or None in parts[0] + parts[1]:
            return None
        us = [[f(b[p] for p in b if p.endswith("_us")) for b in x] for x in parts for f in (max, sum)]
        together, apart = 1 - sum(us[2]) / sum(us[0]), 1 - sum(us[3]) / sum(us[1])
        return sorted((round(100 * together), round(100 * apart)))
    least = most = 0
    found = False
    for k in stages:
        for n in k.get("notes", []):
            for x in n["notes"] if n["code"] == code else []:
                m = re.match(r"of the kernel's time: (?:about )?(\d+)%(?: to (\d+)%)?", x["text"]) or \
                    (code == "K2302" and re.match(r"expected gain: (?:up to|about) (\d+)%()", x["text"]))
                if m:
                    found = True
                    least, most = least + int(m.group(1)), most + int(m.group(2) or m.group(1))
    return (min(least, 100), min(most, 100)) if found else None


def resource(rows, of):
    """What a gain is a share of, summed over the launches of a case; None: not counted."""
    names = {
        "sectors loaded": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
        "sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
        "shared wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                              "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"],
        "instructions": ["smsp__inst_executed.sum"],
        "bytes past the cache": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                 "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                 "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
                                 "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"],
        "bytes of memory": ["dram__bytes_read.sum", "dram__bytes_write.sum"],
    }.get(of)
    if not names or not rows or any(r is None or r.get(n) is None for r in rows for n in names):
        return None
    return sum(r[n] for r in rows for n in names)


def idle_lanes(rows):
    """How many of a hundred lanes do nothing in an instruction of a warp; None: not counted."""
    if not rows or any(r is None or not r.get("smsp__inst_executed.sum") or
                       r.get("smsp__thread_inst_executed.sum") is None for r in rows):
        return None
    warps, lanes = (sum(r[n] for r in rows) for n in ("smsp__inst_executed.sum", "smsp__thread_inst_executed.sum"))
    return 100 * (1 - lanes / (32 * warps))


def page_bad(out):
    said = json.load(open(f"{out}/explain.json"))
    times = {}
    if os.path.exists(f"{out}/times.jsonl"):
        times = {j["case"]: j for j in map(json.loads, open(f"{out}/times.jsonl")) if j.get("ms")}
    counted = counters(out) if os.path.exists(f"{out}/ncu.csv") else {}
    print("\n## Eight slow kernels and what the advice is worth\n\n"
          "Cold times by events, medians; each remedy does what the note says and nothing else. *Predicted*: the\n"
          "note's gain, of one resource an upper bound. *Measured*: how much less of that resource the remedy\n"
          "takes (ncu; for time, events), of the whole kernel where the note speaks of an access or of some\n"
          "instructions; of `divergence` also of those that its loop takes, by the same kernel without it. How many\n"
          "lanes wait there is data, which the model does not have: 97 % is the worst case. *Time, model*: what\n"
          "the note says of the kernel's time, from full overlap of memory, caches and instructions to none; the\n"
          "notes of several places are added. It is left to compare with *time saved*. The first remedy of `tail` is\n"
          "the one that its note names, the other one is smaller programs alone, which end together.\n" +
          ("" if counted else "Counters were not taken in this run, so of resources nothing was measured.\n"))
    print("| kernel | note | advice | predicted | measured | slow ms | remedy ms | time, model | time saved |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for name, code, of, remedy in BAD:
        bad, good = "bad/" + name, remedy + "/" + name
        gain, what, help_ = advice(said.get(bad, []), code)
        if not code and said.get(good):
            p = said[good][0].get("model", {}).get("passes") or {}
            gain = 100 * (1 - 1 / p["ratio"]) if p.get("ratio") else None
            what, help_ = of, f"`traffic` of the fused kernel: {p.get('ratio', 0):.3f} times less as one pass"
        a, b = times.get(bad), times.get(good)
        if of == "time":
            x, y = a and a["ms"], b and b["ms"]
        else:
            x, y = (resource(counted.get(c), of) for c in (bad, good))
        measured = f"{100 * (1 - y / x):.0f} % of {of}" if x and y is not None else "-"
        rest = resource(counted.get("rest/" + name), of)
        if rest and x and y is not None and rest < x:
            measured = f"{100 * (x - y) / (x - rest):.0f} % of the {of} that the part takes, {measured}"
            idle = [idle_lanes(counted.get(c)) for c in (bad, good)]
            measured += "" if None in idle else f"; lanes idle: {idle[0]:.0f} %, then {idle[1]:.0f} %"
        predicted = f"{gain:.0f} % of {what}" if gain is not None else "-"
        took = [f"{t['ms']:.4f}" if t else "-" for t in (a, b)]
        t = time_predicted(said.get(bad, []), code, said.get(good, []))
        says = "-" if t is None else f"{t[0]} %" if t[0] == t[1] else f"{t[0]} to {t[1]} %"
        ratio = f"{100 * (1 - b['ms'] / a['ms']):.0f} % ({a['ms'] / b['ms']:.2f} times as fast)" if a and b else "-"
        print(f"| {name if remedy == 'good' else name + ', ' + remedy} | {code or '-'} | {help_.replace('|', ' ')} | {predicted} | {measured} | "
              f"{took[0]} | {took[1]} | {says} | {ratio} |")


def registers_from(out):
    """Where the model had the registers from: "the driver", "ptxas"."""
    said = json.load(open(f"{out}/explain.json"))
    names = {k["registers"]["from"] for stages in said.values() for k in stages if k.get("registers")}
    return " and ".join(sorted({"driver": "the driver"}.get(n, n) for n in names if n)) or "nowhere"


def report(out):
    machine = open(f"{out}/machine.txt").read().strip() if os.path.exists(f"{out}/machine.txt") else "?"
    commit = os.environ.get("COMMIT", "")
    print("# `kiln explain` beside Nsight Compute: " + (machine.splitlines() or ["?"])[0] +
          (f", commit {commit}" if commit else ""))
    counted = os.path.exists(f"{out}/ncu.csv")
    print(f"\nMade by `bench/gpu/ncu.sh`: `kiln explain --gpu H200` with registers from {registers_from(out)}, " +
          ("and\nthe counters of `ncu --clock-control none --cache-control all` around the same launches\n"
           if counted else "and\ntimes of the same launches, without the counters of ncu\n") +
          "(`bench/gpu/ncu_cases.txt`).  Sectors and wavefronts of the model are what warps ask for; DRAM bytes are\n"
          "set beside the different bytes that a launch reads and writes. `ncu.py table` prints all the numbers.")
    page_bad(out)
    if counted:
        page_counters(out)


def take_times(out):
    with open(f"{out}/times.jsonl", "w") as f:
        for only in ("bad/", "good/", "even/"):
            rc = run_limited([program("launches", "LAUNCHES"), CASES, "--device", DEVICE, "--only", only, "--time", "--seconds", "25",
                              *shlex.split(os.environ.get("LAUNCHES_MORE", ""))],
                             float(os.environ.get("SECONDS_BAD", "38")), stdout=f)
            say(f"times of {only}*: " + ("out of time" if rc is None else f"status {rc}"))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("explain", "count", "time", "report", "table"):
        print(__doc__, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, ended)
    return {"explain": explain, "count": count, "time": take_times, "report": report, "table": table}[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())
