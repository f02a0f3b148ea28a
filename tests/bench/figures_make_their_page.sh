#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bench/figures takes, draws and judges a figure of each kind with this build, and
# its page shows what was taken. The runs are far too short to mean anything. Skips
# where matplotlib is missing, after the checks that do without.

set -uo pipefail
top=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
build=$(readlink -f "${1:?usage: $0 BUILD-DIRECTORY}")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rdmabox-figures.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
export PYTHONDONTWRITEBYTECODE=1

fault()
{
	printf 'FAULT: %s\n' "$*" >&2
	cat "$scratch/out" "$scratch/err" >&2
	exit 1
}

figures()
{
	timeout 200 "$top/bench/figures" "$@" >"$scratch/out" 2>"$scratch/err"
}

figures --list || fault "--list failed"
for name in figure1 figure2 figure5b figure6 table1 figure7 figure8 figure9 patterns5; do
	grep -q "^$name " "$scratch/out" || fault "--list has no $name"
done
/usr/bin/python3 -c 'import matplotlib' 2>/dev/null || exit 77

figures --build "$scratch" --out "$scratch/page"
[ $? = 2 ] && [ "$(wc -l <"$scratch/err")" = 1 ] || fault "a missing build is not said in a line"

cpu=$(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/')
figures --quick --runtime 0.05 --repeats 1 --on native --on sim --cpus "$cpu,$cpu" \
	--build "$build" --out "$scratch/page" \
	--only figure1 --only figure6 --only table1 --only figure7 || fault "exit code $?"
for name in figure1 figure6 table1 figure7; do
	grep -q "id=\"$name\"" "$scratch/page/index.html" || fault "the page has no $name"
	for fabric in native sim; do
		for picture in "$name-$fabric.svg" "$name-$fabric-dark.svg"; do
			grep -qs '</svg>' "$scratch/page/$picture" || fault "no picture $picture"
		done
		grep -q '[0-9]' "$scratch/page/$name-$fabric.json" ||
			fault "no numbers of $name on $fabric"
		grep -qE "^$name $fabric: .*: (held|did not hold): " "$scratch/out" ||
			fault "no verdict on $name on $fabric"
	done
done
# On a model this is so on every machine, and the manual says what came out.
while read -r verdict; do
	grep -qF -- "$verdict" "$top/docs/figures.md" || fault "docs/figures.md does not have: $verdict"
done < <(sed -nE 's/^[a-z0-9]+ sim: (.*): (held|did not hold): (.*)$/- \1: **\2.** \3/p' "$scratch/out")
grep -q '^figure1 sim: a peak, then a fall: held' "$scratch/out" || fault "figure 1 has no peak"
grep -q '<li>a peak, then a fall: <strong class="held">' "$scratch/page/index.html" ||
	fault "the page has not the verdict on figure 1"
