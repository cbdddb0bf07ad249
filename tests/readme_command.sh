#!/usr/bin/env bash
# Runs the N-th ```sh block of README.md in a fresh clone of this checkout: readme_command.sh N FOLDER
set -euo pipefail
number=$1 folder=$2
cd "$(dirname "$0")/.."
rm -rf "$folder"
git clone -q . "$folder"
command=$(awk -v n="$number" '/^```sh$/ {block++; inside = 1; next} /^```$/ {inside = 0} inside && block == n' README.md)
[ -n "$command" ] || { echo "README.md has no sh block $number" >&2; exit 2; }
echo "\$ $command"
cd "$folder"
# As a person would: in a shell that goes on after a status of 1.
exec bash -c "$command"
