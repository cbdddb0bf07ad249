#!/usr/bin/env bash
# Without a C++ compiler pip's output has one line that says what to do: no_compiler.sh FOLDER PYTHON
set -euo pipefail
folder=$1 python=$2
line="zerostride's native engine needs a C++20 compiler"
cure='ZEROSTRIDE_PURE=1 pip install .'
cd "$(dirname "$0")/.."
mkdir -p "$folder/tools"
# What pip and CMake run, but no compiler.
for tool in bash sh env cat uname git ld ar; do
    ln -sf "$(command -v "$tool")" "$folder/tools/" || true
done
if output=$(env -u CXX PATH="$folder/tools" "$python" -m pip wheel --no-deps -w "$folder" . 2>&1); then
    echo "no_compiler.sh: it was built all the same" >&2
    exit 1
fi
grep -F "$line" <<< "$output" | grep -F "$cure" || {
    printf 'no_compiler.sh: pip does not say what is missing:\n%s\n' "$output" >&2
    exit 1
}
# And the cure cures.
env -u CXX PATH="$folder/tools" ZEROSTRIDE_PURE=1 "$python" -m pip wheel -q --no-deps -w "$folder" .
ls "$folder"/zerostride-*-py3-none-any.whl
