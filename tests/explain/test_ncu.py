#!/usr/bin/env python3
"""test_ncu.py BUILD - bench/gpu/ncu.py without a GPU: what it reads of ncu's tables, which launch a row
belongs to, and the whole of ncu.sh with a stand-in for ncu and for the driver.  Run in the root."""
import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build"
spec = importlib.util.spec_from_file_location("ncu", "bench/gpu/ncu.py")
ncu = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ncu)

RAW = '''==PROF== Connected to process 812 (/w/launches)
==PROF== Profiling "kiln_add" - 0: 0%....50%....100% - 9 passes
==PROF== Disconnected from process 812
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","launch__registers_per_thread","memory_l1_wavefronts_shared","sm__maximum_warps_per_active_cycle_pct"
"","","","","","","","","","","","Mbyte","register/thread","","%"
"0","812","launches","127.0.0.1","kiln_add","1","7","(128, 1, 1)","(2, 1, 1)","0","9.0","1.50","32","1,234,567 (1,234,560; 7)","93.75"
"1","812","launches","127.0.0.1","kiln_3_take","1","7","(128, 1, 1)","(8, 1, 1)","0","9.0","0","40","n/a","50"
'''
DETAILS = '''"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","8","launches","127.0.0.1","kiln_add","1","7","(1, 1, 1)","(2, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_read.sum","Kbyte","2.5"
"0","8","launches","127.0.0.1","kiln_add","1","7","(1, 1, 1)","(2, 1, 1)","0","9.0","Command line profiler metrics","launch__grid_size","","2"
'''


class Tables(unittest.TestCase):
    def test_raw_page(self):
        rows = ncu.read_csv(RAW)
        self.assertEqual([r["kernel"] for r in rows], ["kiln_add", "kiln_3_take"])
        self.assertEqual(rows[0]["dram__bytes_read.sum"], 1.5e6)
        self.assertEqual(rows[0]["memory_l1_wavefronts_shared"], 1234567)
        self.assertEqual(rows[0]["sm__maximum_warps_per_active_cycle_pct"], 93.75)
        self.assertIsNone(rows[1]["memory_l1_wavefronts_shared"])

    def test_details_page(self):
        self.assertEqual(ncu.read_csv(DETAILS),
                         [{"kernel": "kiln_add", "dram__bytes_read.sum": 2500, "launch__grid_size": 2}])

    def test_no_table(self):
        self.assertEqual(ncu.read_csv("==ERROR== No kernels were profiled.\n"), [])

    def test_rows_and_launches(self):
        def row(name):
            return {"kernel": name}
        a, b, c, d = row("kiln_a"), row("kiln_b"), row("kiln_1_a"), row("c")
        launches = [{"case": "one", "ok": True, "kernels": ["a"]},
                    {"case": "lost", "ok": False, "kernels": ["b", "x"]},
                    {"case": "two", "ok": True, "kernels": ["a", "c"]},
                    {"case": "three", "ok": True, "kernels": ["e"]}]
        got = {}
        ncu.match(launches, [a, b, c, d], got)
        self.assertIs(got["one"][0], a)
        self.assertNotIn("lost", got)
        self.assertIs(got["two"][0], c)
        self.assertIs(got["two"][1], d)
        self.assertEqual(got["three"], [None])

    def test_how_far(self):
        self.assertEqual(ncu.off(10, 10), 0)
        self.assertEqual(ncu.off(None, 10), 0)
        self.assertAlmostEqual(ncu.off(98, 100), -0.02)
        self.assertEqual(ncu.off(1, 0), float("inf"))

    def test_advice(self):
        notes = [{"code": "K2101", "notes": [{"text": "help: do"}, {"text": "expected gain: up to 88% of the sectors"}]}]
        self.assertEqual(ncu.advice([{"notes": notes}], "K2101"), (88, "the sectors", "do"))
        self.assertEqual(ncu.advice([{"notes": notes}], "K2103"), (None, "", ""))
        notes[0]["notes"][1]["text"] = "expected gain: about 29% of the time"
        self.assertEqual(ncu.advice([{"notes": notes}], "K2101"), (29, "the time", "do"))
        notes[0]["code"] = "K2302"
        self.assertEqual(ncu.time_predicted([{"notes": notes}], "K2302", []), (29, 29))

    def test_l1(self):
        """Reads of the L2 cache, by what they are where no sector is asked for twice."""
        rows = [("", name, {"model": {"global_load": {"units": asked}, "loads_apart": apart}},
                 {"lts__t_sectors_op_read.sum": read})
                for name, asked, apart, read in (("a", 100, 100, 150), ("b", 200, 200, 300), ("c", 100, 100, 170),
                                                 ("again", 400, 100, 151.5), ("lost", 400, 100, None))]
        with io.StringIO() as page, contextlib.redirect_stdout(page):
            ncu.page_l1(rows)
            said = page.getvalue()
        self.assertIn("Of 3 launches", said)
        self.assertIn("1.500 sectors from the L2 cache for each; 2 are within", said)
        self.assertIn("| again | 400 | 100 | 101 |", said)
        self.assertNotIn("lost", said)

    def test_joined_accesses(self):
        j = {"ptx": {"ld 4": 10, "ld 8": 8, "st 4": 3}, "sass": {"ld 4": 2, "ld 8": 8, "ld 16": 2, "st 4": 3}}
        self.assertEqual(ncu.joined_accesses(j, ["ld"]), "ld: 10 x 4 bytes became 2 x 4, 2 x 16")
        self.assertEqual(ncu.joined_accesses(j, ["st"]), "")

    def test_kept_sass(self):
        """What sass.py printed is of kernels of the list, and ptxas joined something in each or left it alone."""
        kept, cases = ncu.read_sass(), dict(ncu.read_cases("bench/gpu/ncu_cases.txt"))
        self.assertIn("gemm", kept)
        self.assertEqual([c for c in kept if c not in cases], [])
        for j in kept.values():
            moved = [sum(n * int(x.split()[1]) for x, n in j[c].items()) for c in ("ptx", "sass")]
            # joining keeps the bytes; a load whose value is known may go
            self.assertTrue(0.99 * moved[0] <= moved[1] <= moved[0], j["case"])

    def launch(self, **counted):
        side = {"requests": 8, "units": 32, "ideal": 32}
        k = {"model": {**{n: dict(side) for n in ("global_load", "global_store", "shared_load", "shared_store")},
                       "atomic": {"units": 0}, "exact": True, "unknown": [], "programs": 1, "programs_counted": 1,
                       "arrays": [{"unique_read_bytes": 1024, "unique_written_bytes": 1 << 30, "read_bytes": 1024}]},
             "blocks": 1, "threads": 32, "cluster": 1, "registers": {"registers": 20},
             "shared": {"static_bytes": 1000, "dynamic_bytes": 0, "reserved_bytes": 1024},
             "occupancy": {"share": 1, "limits": {"shared": 113}}, "waves": {"waves": 0.0026}}
        return k, counted

    def test_carve_out_and_digits(self):
        """ncu divides what the driver made shared memory, and prints two digits of waves."""
        k, r = self.launch(launch__shared_mem_config_size=16384, launch__occupancy_limit_shared_mem=8,
                           launch__waves_per_multiprocessor=0)
        q = {n: (a, b) for n, a, b in ncu.quantities(k, r)}
        self.assertEqual(q["limit by shared memory"], (8, 8))
        self.assertEqual(q["waves"], (0, 0))
        q = {n: (a, b) for n, a, b in ncu.quantities(k, {})}
        self.assertEqual(q["limit by shared memory"], (113, None))

    def test_reasons(self):
        written = "DRAM bytes written"
        k, r = self.launch()
        self.assertIn("still in the L2", ncu.reason_of("c", written, 1 << 30, (1 << 30) - (30 << 20), k, r, {}))
        self.assertEqual(ncu.reason_of("c", written, 1 << 30, (1 << 30) - (80 << 20), k, r, {}), "")
        self.assertIn("did not write", ncu.reason_of("c", written, 0, 2e6, k, {"lts__t_sectors_op_write.sum": 10}, {}))
        self.assertIn("in parts", ncu.reason_of("c", written, 0, 2e6, k, {"lts__t_sectors_op_write.sum": 1e6}, {}))
        sass = {"c": {"ptx": {"ld 4": 8}, "sass": {"ld 16": 2}}}
        self.assertIn("|ld: 8 x 4 bytes became 0 x 4, 2 x 16",
                      ncu.reason_of("c", "shared load requests", 8, 2, k, r, sass))
        self.assertEqual(ncu.reason_of("d", "shared load requests", 8, 2, k, r, sass), "")


class Whole(unittest.TestCase):
    def run_all(self, out, **more):
        fake = os.path.abspath("tests/explain/fake_ncu.py")
        env = {**os.environ, "O": BUILD, "KILN": BUILD + "/kiln", "LAUNCHES": BUILD + "/tests/launches",
               "CASES": "tests/explain/ncu_cases.txt", "NCU": f"{sys.executable} {fake}", "REGISTERS": "none",
               "LD_LIBRARY_PATH": BUILD + "/tests/fakecuda", "WORK": out + "/work",
               "LAUNCHES_MORE": "--plug 1000000", **more}
        p = subprocess.run(["sh", "bench/gpu/ncu.sh", out], env=env, capture_output=True, text=True, timeout=100)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        with open(out + "/explain-h200.md") as f:
            return p.stdout, f.read()

    def test_counters(self):
        with tempfile.TemporaryDirectory() as out:
            said, page = self.run_all(out, FAKE_NCU_LACKS="lts__t_sectors_op_read.sum memory_l1_wavefronts_shared_ideal",
                                      FAKE_NCU_MORE="l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum:1.5")
            self.assertIn("ncu has no lts__t_sectors_op_read.sum", said)
            self.assertIn("10 launches", page)
            self.assertIn("| load sectors | 10 | 10 | 10 | 0 | 0 |", page)     # the executor agrees
            self.assertIn("| store sectors | 10 | 0 | 0 | 10 | 10 |", page)    # and this is not explained
            self.assertIn("| shared wavefronts, theoretical | 10 | 10 | 10 | 0 | 0 |", page)
            self.assertIn("- wrong: kernels/add.kiln", page)
            self.assertRegex(page, r"### \*\*not known\*\* \(\d+\)\n")
            self.assertRegex(page, r"(?m)^\| add \| 250 / 375 \|$")
            t = subprocess.run([sys.executable, "bench/gpu/ncu.py", "table", out + "/work"], capture_output=True,
                               text=True).stdout.splitlines()
            self.assertEqual(len(t), 11)
            self.assertTrue(t[0].startswith("launch,blocks: model,blocks: ncu,"))
            self.assertRegex(page, r"\| strided \| K2101 \| let lanes .* \| 88 % of the sectors of this access \| "
                                   r"88 % of sectors loaded \| \d+\.\d+ \| \d+\.\d+ \| \d+ to \d+ % \| -?\d+ % \(")
            self.assertRegex(page, r"\| chain \| .* \| \d+(?: to \d+)? % \| \d+ % \(")
            self.assertRegex(page, r"\| conflict \| K2203 \| swizzle .* \| 88 % of shared wavefronts \|")
            kept = sorted(os.listdir(out))
            self.assertEqual(kept, ["explain-h200.md", "ncu-raw.tgz", "ncu.csv", "work"])

    def test_hang(self):
        """A launch that never ends costs its part of the list, and is tried alone; nothing else is lost."""
        with tempfile.TemporaryDirectory() as out:
            hang = os.path.join(out, "hang")
            os.mkfifo(out + "/never")
            with open(hang, "w") as f:
                f.write("#!/bin/sh\ncase \"$*\" in *0/6*|*'exact bad/strided'*)\n"
                        f"    exec 3<>{out}/never; read x <&3 ;;\nesac\nexec {BUILD}/tests/launches \"$@\"\n")
            os.chmod(hang, 0o755)
            said, page = self.run_all(out, LAUNCHES=hang, SECONDS_NCU="50", SECONDS_PART="6", STEPS="explain count")
            self.assertIn("part 1 of 6: out of time", said)
            self.assertIn("not counted: bad/strided", said)
            self.assertIn("9 launches", page)

    def test_latency(self):
        """Rows are followed, and sums agree, in the executor; each figure is there."""
        p = subprocess.run([BUILD + "/bench/gpu/latency", "--device", "sim"], capture_output=True, text=True, timeout=60)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(len(re.findall(r"^memory +\d+ +(?:512|2048) +[\d.]+ +\d+ +[\d.]+$", p.stdout, re.M)), 13)
        self.assertEqual(len(re.findall(r"^L2 cache +\d+ ", p.stdout, re.M)), 2)
        self.assertRegex(p.stdout, r"gpu\.def: latency \d+, unloaded \d+, l2_read \d+\n$")

    def test_no_ncu(self):
        with tempfile.TemporaryDirectory() as out:
            env = {**os.environ, "NCU": out + "/none", "CASES": "tests/explain/ncu_cases.txt", "O": BUILD}
            p = subprocess.run([sys.executable, "bench/gpu/ncu.py", "count", out], env=env, capture_output=True,
                               text=True, timeout=60)
            self.assertEqual(p.returncode, 1)
            self.assertIn("ncu counts nothing here", p.stderr)


if __name__ == "__main__":
    r = unittest.main(exit=False).result
    lost = len(r.failures) + len(r.errors)
    print(f"{r.testsRun - lost} passed, {lost} failed, 0 skipped")
    sys.exit(lost != 0)
