#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A long proof that was stopped goes on where it was, and its tables add up what all of its slices
# have counted; a seed that failed is told, and is in no table.
#
# Usage: proof_tables_add_up.sh

set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rdmabox-proof.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

fault()
{
	echo "$*"
	failed=1
}

# In place of rdmabox: it counts what nobody has done, and notes that it was called.
cat >"$scratch/rdmabox" <<-'EOF'
	#!/bin/bash
	while [ $# -gt 0 ]; do
		case $1 in
		--scenario) scenario=$2 ;;
		--seed) first=$2 ;;
		--seeds) seeds=$2 ;;
		esac
		shift
	done
	echo "$scenario $first" >>"$(dirname "$0")/calls"
	echo "fault qp-error 7 3"
	echo "fault never 0 0"
	[ "$scenario" != kept ] || echo "proof requests 1000 $seeds"
	[ ! -e "$(dirname "$0")/bad" ] || echo "rdmabox sim --seed $first --scenario $scenario"
	echo "$seeds seeds from $first, $([ -e "$(dirname "$0")/bad" ] && echo 1 || echo 0) failed"
	[ ! -e "$(dirname "$0")/bad" ]
EOF
chmod +x "$scratch/rdmabox"

for to in 1000 3000 3000; do
	"$here/seeds.sh" --to "$to" --record "$scratch/record" "$scratch/rdmabox" named kept \
		>"$scratch/out" || fault "a proof of which no seed failed is refused"
done
[ "$(wc -l <"$scratch/calls")" = 6 ] || fault "slices were done again: $(<"$scratch/calls")"
[ "$(cut -d' ' -f1-4 "$scratch/record" | sort)" = "kept 0 1000 0
kept 1000 1000 0
kept 2000 1000 0
named 0 1000 0
named 1000 1000 0
named 2000 1000 0" ] || fault "the record is $(<"$scratch/record")"

"$here/proof_tables" <"$scratch/record.counts" >"$scratch/tables" || fault "there are no tables"
diff "$scratch/tables" - <<-'EOF' || fault "the tables do not add up"

	| fault | named (3,000) | kept (3,000) |
	|---|---|---|
	| qp-error | 21 in 9 | 21 in 9 |

	| proof | named (3,000) | kept (3,000) |
	|---|---|---|
	| requests |  | 3000 in 3000 |
EOF
"$here/proof_tables" --sum <"$scratch/record.counts" >"$scratch/sum" || fault "there is no sum"
[ "$(grep -c '^kept$' "$scratch/sum")" = 1 ] || fault "it is not added up"
"$here/proof_tables" <"$scratch/sum" | diff "$scratch/tables" - || fault "the sum is another"

touch "$scratch/bad"
! "$here/seeds.sh" --to 4000 --record "$scratch/record" "$scratch/rdmabox" named >"$scratch/out" ||
	fault "a seed that failed is forgotten"
grep -q '^rdmabox sim --seed 3000 --scenario named' "$scratch/out" || fault "it is not told which"
! "$here/proof_tables" <"$scratch/record.counts" >/dev/null 2>&1 || fault "it is in the tables"
exit "$failed"
