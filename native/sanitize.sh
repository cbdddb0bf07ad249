#!/usr/bin/env bash
# The native engine under a sanitizer:
#
#   bash native/sanitize.sh address [PYTEST ARGUMENTS]     AddressSanitizer and UBSan; tests/native
#   bash native/sanitize.sh undefined [PYTEST ARGUMENTS]   UndefinedBehaviorSanitizer alone
#   bash native/sanitize.sh thread [SCALE]                 ThreadSanitizer; the C++ programs of pool and nest
#
# $PYTHON (python3) needs numpy, ml_dtypes, click, rich, pytest and hypothesis, and no zerostride that
# was installed with -e: it would be imported instead of this build, and that is refused.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
kind=${1:?address, undefined or thread}
shift

# The sets are one source: two of them, with the instructions written by hand, show what there is.
sets=()
[ "$(uname -m)" != x86_64 ] || sets=(--isa baseline,avx2)
"$python" native/develop.py --sanitize "$kind" "${sets[@]}"
build=$PWD/build/$kind

if [ "$kind" = thread ]; then
    # No address randomisation: this ThreadSanitizer knows fixed maps of memory alone.
    export TSAN_OPTIONS=halt_on_error=1
    setarch --addr-no-randomize "$build/test_harness" "$@"
    setarch --addr-no-randomize "$build/test_launch_main"
    setarch --addr-no-randomize "$build/test_nest_main" 3 400
    setarch --addr-no-randomize "$build/test_reduce_main" 3 100
    setarch --addr-no-randomize "$build/test_fused_main" 3 400
    exit
fi

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
if [ "$kind" = address ]; then
    # The interpreter keeps memory to its end, which is no leak; its own allocator would hide overruns.
    export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc
    # With the C++ library, or it would not find what throws.
    library() { ${CXX:-c++} -print-file-name="$1"; }
    export ZEROSTRIDE_PRELOAD="$(library libasan.so) $(library libstdc++.so)"
fi
"$build/test_kernels" > /dev/null
"$build/test_launch_main"
"$build/test_nest_main" 5 1000
"$build/test_reduce_main" 5 300
"$build/test_fused_main" 5 1000
export PYTHONPATH=$build/package
sanitized() { LD_PRELOAD=${ZEROSTRIDE_PRELOAD:-} "$python" "$@"; }

sanitized - "$build" <<'CHECK'
import sys
import zerostride.compute._native as module
if not module.__file__.startswith(sys.argv[1]):
    sys.exit(f"sanitize.sh: {sys.executable} imports {module.__file__}, not the build of {sys.argv[1]}")
CHECK
# Two minutes' worth: what runs the engine itself. Left out: what compiles, what tests the campaign and
# not the engine, and a signal every 50 ms whose handler takes longer than that here.
[ $# -gt 0 ] || set -- tests/native/test_campaign.py::test_sample_has_no_differences \
    tests/native/test_memory.py tests/native/test_processes.py tests/native/test_shrinking.py \
    tests/fuse/test_random.py tests/fuse/test_engine.py \
    --deselect=tests/native/test_processes.py::test_a_signal_handler_may_compute
sanitized -m pytest -p no:cacheprovider -x "$@"
