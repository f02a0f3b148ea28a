#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The scenarios that measure give what sim/scenarios/FIGURES.md says, to the last
# digit, whatever compiled them and wherever memory lies. Those that take long are
# left to who changes the page.
#
# Usage: figures_are_as_written.sh RDMABOX-SIM-FIGURES FIGURES.md

figures=$1
page=$2
failed=0

for name in calibrate-3 calibrate-5 fig1 fig2 fig6; do
	diff <(awk -v head="## $name:" 'index($0, "## ") == 1 { on = index($0, head) == 1 } on' "$page") \
		<("$figures" "$name"; echo) ||
		{ echo "$name: not as in $page"; failed=1; }
done

"$figures" nosuch 2>/dev/null
[ $? = 2 ] || { echo "an unknown name: exit code 2 is wanted"; failed=1; }
"$figures" fig1 /nonexistent 2>/dev/null
[ $? = 2 ] || { echo "a NIC that is not there: exit code 2 is wanted"; failed=1; }
exit $failed
