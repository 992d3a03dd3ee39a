#!/usr/bin/env python3
"""report.py OUT COMMIT - the results of bench/gpu/run.sh in folder OUT as a page for bench/results.

Without summary.json there (STEPS=host): the tables of the host's times alone."""
import json
import os
import sys

PEERS = ["torch", "torch.compile", "triton"]


def figure(row):
    return f"{row['gbs']:.0f}" if row and row.get("gbs") else "-"


def lines(path):
    if not os.path.exists(path):
        return []
    return [json.loads(x) for x in open(path) if x.strip()]


def ms(v):
    return "-" if v is None else f"{v:.2f}" if v < 10 else f"{v:.0f}"


def host(out):
    """Launches and code: host.jsonl, or the launches of an older run."""
    rows = lines(os.path.join(out, "host.jsonl")) or lines(os.path.join(out, "launch.jsonl"))
    launch = [r for r in rows if r["bench"] == "launch"]
    if launch:
        print("\nHost time of a launch:\n")
        print("| arguments | who | median ns | least ns | against cuLaunchKernel |\n"
              "|---|---|---|---|---|")
    for r in launch:
        print(f"| {r['arguments']} | {r['peer']} | {r['median_ns']:.0f} | {r['least_ns']:.0f} | "
              f"{r.get('ratio') or 1:.3f} |")
    code = [r for r in rows if r["bench"] == "compile" and "error" not in r]
    triton = {(r["kernel"], r["label"]): r.get("median_ms") for r in rows
              if r["bench"] == "triton compile"}
    if code:
        ptxas = next((r for r in rows if r["bench"] == "ptxas"), None)
        print("\nMilliseconds to make code, medians. *ptxas*: as a process of its own on the same "
              "text" + (f", {ms(ptxas['start_ms'])} of it to start" if ptxas else "") +
              ". *triton*: its form of the kernel,\nfrom an empty cache to the cubin.\n")
        print("| kernel | types, columns | parse | source to PTX | of it CPU | PTX KB | driver | load | ptxas | "
              "Kiln in all | triton | registers | spilled bytes |\n"
              "|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for r in code:
        whole = sum(r.get(k) or 0 for k in ("source_ms", "driver_ms", "load_ms"))
        print(f"| {r['kernel']} | {r['label']} | {ms(r['parse_ms'])} | {ms(r['source_ms'])} | "
              f"{ms(r['source_cpu_ms'])} | "
              f"{r['ptx_bytes'] / 1024:.0f} | {ms(r.get('driver_ms'))} | {ms(r.get('load_ms'))} | "
              f"{ms(r.get('ptxas_ms'))} | {ms(whole if 'driver_ms' in r else None)} | "
              f"{ms(triton.get((r['kernel'], r['label'])))} | {r.get('registers', '-')} | "
              f"{r.get('spill_bytes', '-')} |")
    for r in rows:
        if "error" in r:
            print(f"- {r['bench']} {r.get('kernel', '')} {r.get('label', '')}: {r['error']}")


def main():
    out, commit = sys.argv[1], sys.argv[2]
    if not os.path.exists(os.path.join(out, "summary.json")):
        host(out)
        return
    cases = json.load(open(os.path.join(out, "summary.json")))["cases"]
    about = json.loads(open(os.path.join(out, "results.jsonl")).readline())
    machine = open(os.path.join(out, "machine.txt")).read().strip().split("\n")
    print(f"# {about['device']}, commit {commit}\n")
    print("Made by `bench/gpu/run.sh`: all figures of one run, in turn; random inputs in several sets"
          "\nthat exceed the L2 cache, events, medians of at least 20. GB/s counts each input read once"
          "\nand each output written once. *Of copy*: against the larger of the driver's copy and"
          "\nPyTorch's `copy_` for the same bytes.\n")
    print("```\n" + "\n".join(machine[:2]) + f"\ntorch {about['torch']}, triton {about.get('triton', 'none')}\n```\n")
    print("| case | Kiln GB/s | torch | torch.compile | triton | copy | of copy | of best peer | registers | spilled bytes |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, row in cases.items():
        k = row.get("kiln")
        if not k:
            continue
        copy = max((row.get(c, {}).get("gbs", 0) for c in ("driver copy", "torch copy_")), default=0)
        best = max((row[p]["gbs"] for p in PEERS if p in row), default=0)
        print(f"| {name} | {figure(k)} | " + " | ".join(figure(row.get(p)) for p in PEERS) +
              f" | {copy:.0f} | {k['gbs'] / copy if copy else 0:.2f} | {k['gbs'] / best if best else 0:.2f} | "
              f"{k.get('registers', '-')} | {k.get('spill_bytes', '-')} |")
    host(out)
    log = os.path.join(out, "test.log")
    if os.path.exists(log):
        fails = [x.strip() for x in open(log) if x.startswith("FAIL")]
        sums = [x.split() for x in open(log) if " passed, " in x]
        print(f"\n`kiln test kernels --device cuda` on that device: {sum(int(s[0]) for s in sums)} passed, "
              f"{sum(int(s[2]) for s in sums)} failed.")
        for f in fails:
            print("- " + f)


main()
