#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# 40 seeds of each scenario in which something fails: nothing is found, each fault
# has struck, and each promise has been put to the proof. A fault that never strikes
# and a check that never looks would prove nothing.
#
# With --to it is a long proof: all seeds below that number, in slices of 1,000, one of each
# scenario in turn. A slice that is done is a line of the record: scenario, first seed, seeds,
# seeds that failed, seconds. It is not done again, so the proof may be stopped at any time, and
# goes on where it was. What failed is printed. FILE.counts has what was counted, of which
# tests/sim/proof_tables makes the tables of sim/PROOF.md, as it does of all that this prints.
# The proof of this repository is sim/proof/record.
#
# Usage: tests/sim/seeds.sh [--seeds N] RDMABOX SCENARIO...
#        tests/sim/seeds.sh --to SEED --record FILE RDMABOX SCENARIO...

set -uo pipefail
slice=1000
seeds=40
to=0
record=
while [[ ${1-} == --* ]]; do
	case $1 in
	--seeds) seeds=$2 ;;
	--to) to=$2 ;;
	--record) record=$2 ;;
	*) sed -n 's/^# \(Usage\|       \)/\1/p' "$0" >&2; exit 2 ;;
	esac
	shift 2
done
rdmabox=$1
shift
failed=0

# One slice, if the record does not have it.
slice_prove()
{
	local scenario=$1 first=$2 began=$SECONDS said done_count bad_count

	grep -q "^$scenario $first " "$record" 2>/dev/null && return
	said=$("$rdmabox" sim --scenario "$scenario" --seed "$first" --hunt 86400 \
		--seeds "$slice") || failed=1
	read -r done_count bad_count < <(sed -n \
		's/^\([0-9]*\) seeds from [0-9]*, \([0-9]*\) failed$/\1 \2/p' <<<"$said")
	if [ "${done_count:-0}" -ne "$slice" ]; then
		echo "$scenario from $first: not done"
		failed=1
		return
	fi
	grep -A 1 '^rdmabox sim --seed' <<<"$said"
	printf '%s\n%s\n' "$scenario" "$said" >>"$record.counts"
	echo "$scenario $first $done_count $bad_count $((SECONDS - began))" | tee -a "$record"
}

if [ -n "$record" ]; then
	for ((first = 0; first < to; first += slice)); do
		for scenario in "$@"; do
			slice_prove "$scenario" "$first"
		done
	done
	exit "$failed"
fi

totals=$(mktemp "${TMPDIR:-/tmp}/rdmabox-seeds.XXXXXX") || exit 1
trap 'rm -f "$totals"' EXIT

for scenario in "$@"; do
	echo "$scenario"
	"$rdmabox" sim --scenario "$scenario" --hunt 1500 --seeds "$seeds" | tee -a "$totals" || failed=1
done
awk '/^(fault|proof) / { sum[$1 " " $2] += $3 }
	END { for (name in sum) if (!sum[name]) { print name ": never, in all of them"; bad = 1 }
		exit bad }' "$totals" || failed=1
exit "$failed"
