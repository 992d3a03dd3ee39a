"""Is a file of Trace.save a time line as it should be?  The checks are those of `kiln trace`: a program
of the C tests makes them, where it is built."""
import os
import subprocess


def right_time_line(case, path):
    check = os.path.join(os.path.dirname(os.environ.get("KILN_LIBRARY", "")), "tests", "unit",
                         "test_tracefile")
    if os.access(check, os.X_OK):
        said = subprocess.run([check, path], capture_output=True, text=True)
        case.assertEqual(said.returncode, 0, said.stdout + said.stderr)
