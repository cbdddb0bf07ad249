#!/usr/bin/env bash
# A new user's path, timed: new_user.sh FOLDER
# Clones this checkout, runs README.md's first command up to its audit, and then README.md's first
# Python block that fuses; nothing else is run. Prints the seconds from the clone to either.
set -euo pipefail
folder=$1
cd "$(dirname "$0")/.."
fused=$(awk '
    /^```python$/ {inside = 1; block = ""; next}
    /^```$/ {if (inside && block ~ /zs\.fuse/) {printf "%s", block; exit} inside = 0}
    inside {block = block $0 "\n"}
' README.md)
[ -n "$fused" ] || { echo "README.md has no python block with zs.fuse" >&2; exit 2; }

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN {printf "%.1f", b - a}'; }
begin=$(now)
# The audit finds something, and the command says so: "exit status 1".
said=$(bash tests/readme_command.sh 1 "$folder")
printf '%s\n' "$said"
grep -qx 'exit status 1' <<< "$said"
audited=$(since "$begin")
cd "$folder"
printf '%s\n' "$fused" | .venv/bin/python -
computed=$(since "$begin")
backend=$(.venv/bin/python -c 'import zerostride as zs; print(zs.backend())')
echo "from clone to the first audit: $audited s; to the first fused result: $computed s ($backend)"
