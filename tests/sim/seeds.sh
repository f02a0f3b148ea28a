#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# 200 seeds of each scenario in which something fails: nothing is found, each fault
# has struck, and each promise has been put to the proof. A fault that never strikes
# and a check that never looks would prove nothing.
#
# Usage: tests/sim/seeds.sh RDMABOX SCENARIO...

set -uo pipefail
rdmabox=$1
shift
totals=$(mktemp "${TMPDIR:-/tmp}/rdmabox-seeds.XXXXXX") || exit 1
trap 'rm -f "$totals"' EXIT
failed=0

for scenario in "$@"; do
	echo "$scenario"
	"$rdmabox" sim --scenario "$scenario" --hunt 1500 --seeds 200 | tee -a "$totals" || failed=1
done
awk '/^(fault|proof) / { sum[$1 " " $2] += $3 }
	END { for (name in sum) if (!sum[name]) { print name ": never, in all of them"; bad = 1 }
		exit bad }' "$totals" || failed=1
exit "$failed"
