#!/bin/sh
# check.sh BUILD - tests of the Python package with python3 and the library of BUILD, the CUDA
# path with the stand-in driver.  PYTHON: another interpreter (one with PyTorch).  Without python3
# all is skipped, without NumPy or PyTorch their tests.
# Last lines: N passed, N failed, N skipped.
build=${1:?usage: check.sh BUILD}
case $build in /*) ;; *) build=$PWD/$build ;; esac
PYTHON=${PYTHON:-python3}
if ! "$PYTHON" -c 'import ctypes, unittest' 2>/dev/null; then
    echo "SKIP python3 is missing"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
export KILN_LIBRARY="$build/libkiln.so" PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
rc=0
t=python/tests
"$PYTHON" $t/run.py $t/test_core.py $t/test_numpy.py $t/test_torch.py || rc=1
# where there is a device, KILN_TEST_DEVICE=1 takes it
[ -n "${KILN_TEST_DEVICE:-}" ] ||
    export LD_LIBRARY_PATH="$build/tests/fakecuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"$PYTHON" $t/run.py $t/test_cuda.py || rc=1
exit $rc
