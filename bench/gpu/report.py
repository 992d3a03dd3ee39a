#!/usr/bin/env python3
"""report.py OUT COMMIT - the results of bench/gpu/run.sh in folder OUT as a page for bench/results."""
import json
import os
import sys

PEERS = ["torch", "torch.compile", "triton"]


def figure(row):
    return f"{row['gbs']:.0f}" if row and row.get("gbs") else "-"


def main():
    out, commit = sys.argv[1], sys.argv[2]
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
    launch = [json.loads(x) for x in open(os.path.join(out, "launch.jsonl")) if x.strip()]
    print("\nHost time of a launch:\n\n| arguments | who | median ns | against cuLaunchKernel |\n|---|---|---|---|")
    for r in launch:
        if r.get("bench") == "launch":
            print(f"| {r['arguments']} | {r['peer']} | {r['median_ns']:.0f} | {r.get('ratio', 1):.3f} |")
    log = os.path.join(out, "test.log")
    if os.path.exists(log):
        fails = [x.strip() for x in open(log) if x.startswith("FAIL")]
        sums = [x.split() for x in open(log) if " passed, " in x]
        print(f"\n`kiln test kernels --device cuda` on that device: {sum(int(s[0]) for s in sums)} passed, "
              f"{sum(int(s[2]) for s in sums)} failed.")
        for f in fails:
            print("- " + f)


main()
