#!/usr/bin/env python3
"""fake_ncu.py - stands in for ncu: runs the program that it is given and prints a table of ncu's form,
with the counts of the PTX executor, or with FAKE_NCU_FROM=model, for large launches, those of the model.

What is in FAKE_NCU_LACKS (names) it refuses, as ncu refuses a metric that it does not know; one in
FAKE_NCU_MORE=NAME:FACTOR is multiplied."""
import csv
import json
import os
import subprocess
import sys

SOURCE = os.environ.get("FAKE_NCU_FROM", "executor")


def explained(words):
    p = subprocess.run([os.environ["KILN"], "explain", *words, "--format", "json", "--gpu", "H200",
                        "--registers", "none", *(["--measure", "sim"] if SOURCE == "executor" else [])],
                       capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stderr)
    return json.loads(p.stdout)["kernels"][0]


def values(k):
    x, t = k[SOURCE], "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
    v = {"launch__grid_size": k["blocks"], "launch__block_size": k["threads"],
         "launch__registers_per_thread": 32, "smsp__inst_executed.sum": sum(x.get("instructions", {"": 1}).values()),
         "memory_l1_wavefronts_shared": x["shared_load"]["units"] + x["shared_store"]["units"],
         "memory_l1_wavefronts_shared_ideal": x["shared_load"]["ideal"] + x["shared_store"]["ideal"],
         "memory_l2_theoretical_sectors_global": x["global_load"]["units"] + x["global_store"]["units"],
         "dram__bytes_read.sum": 32 * x["global_load"]["ideal"], "dram__bytes_write.sum": 0}
    for op, way in (("ld", "load"), ("st", "store")):
        v[t.format("requests", op)] = x["global_" + way]["requests"]
        v[t.format("sectors", op)] = x["global_" + way]["units"]
        v[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"] = x["shared_" + way]["units"]
        v[f"smsp__inst_executed_op_shared_{op}.sum"] = x["shared_" + way]["requests"]
    return v


def main():
    a = sys.argv[1:]
    metrics = a[a.index("--metrics") + 1].split(",")
    at = a.index("--log-file")
    log, command = open(a[at + 1], "w"), a[at + 2:]
    for m in os.environ.get("FAKE_NCU_LACKS", "").split():
        if m in metrics:
            log.write(f"==ERROR== Failed to find metric {m}\n")
            return 1
    p = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    sys.stdout.write(p.stdout)
    stages = {}
    for line in open(command[1]):
        w = line.split()
        if w and w[0] != "#":
            stages[w[0]] = " ".join(w[1:]).split(" then ")
    more = dict(x.split(":") for x in os.environ.get("FAKE_NCU_MORE", "").split())
    log.write("==PROF== Connected to process 1 (launches)\n==PROF== Disconnected from process 1\n")
    w = csv.writer(log, quoting=csv.QUOTE_ALL)
    w.writerow(["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
                "Grid Size", "Device", "CC", *metrics])
    w.writerow([""] * 11 + ["sector"] * len(metrics))
    n = 0
    for line in p.stdout.splitlines():
        j = json.loads(line)
        if not j["ok"]:
            continue
        for words, name in zip(stages[j["case"]], j["kernels"]):
            v = values(explained(words.split()))
            got = [v.get(m, "n/a") for m in metrics]
            got = [f"{int(x * float(more.get(m, 1))):,}" if x != "n/a" else x for m, x in zip(metrics, got)]
            w.writerow([n, 1, "launches", "127.0.0.1", "kiln_" + name, 1, 7, "(128, 1, 1)", "(1, 1, 1)", 0, "9.0", *got])
            n += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
