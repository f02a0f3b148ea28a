#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox registration reads traces of three formats, packed or not, keeps budgets, and
# refuses what makes no sense before it prints a result.

. "$(dirname "$0")/rdmabox.sh"

# value EXPRESSION - of the JSON of the last run, as Python has it
value()
{
	python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); rows = j["rows"]; print(eval(sys.argv[2]))' \
		"$scratch/out" "$1"
}

# expect EXPRESSION WANTED
expect()
{
	local got

	got=$(value "$1") || { show; fault "no JSON with $1"; }
	[ "$got" = "$2" ] || { show; fault "$1 is $got and not $2"; }
}

# tried ARGUMENT... - a run that goes well, with its JSON in $scratch/out
tried()
{
	run registration --json - "$@"
	[ "$status" = 0 ] || { show; fault "registration $*: exit code $status"; }
}

# A region of 4 pages, a part of it, more than it, and another place: by hand, 7.42 + 0.77 a page.
printf '%s\n' '# four cases' '10 4 0 0' '11 2 0 1' '' '12 4 0 2' '30 1 0 3' '10 4 0 4' >"$scratch/pages.lis"
tried --trace "$scratch/pages.lis" --policy lru --bytes 100%
expect 'j["touched_bytes"]' $((7 * 4096))
expect 'len(rows)' 1
expect '[rows[0][k] for k in ("policy", "bytes", "regions", "requests", "hits", "partial_hits")]' \
	"['lru', 28672, 7, 5, 2, 1]"
expect '[rows[0][k] for k in ("registrations", "deregistrations", "pinned_bytes_max")]' '[3, 0, 28672]'
expect 'round(rows[0]["cost_us"], 2)' "$(python3 -c 'print(round(3 * 7.42 + 7 * 0.77, 2))')"
expect 'rows[0]["bound_us"] == rows[0]["cost_us"]' True
expect 'rows[0]["trace"]' "$scratch/pages.lis"

# Other costs, and what leaves: 2 pages and one region at a time.
printf '%s\n' '0 8192' '0x10000 4096' '0 8192' >"$scratch/bytes"
tried --trace "$scratch/bytes" --policy lru,sieve --bytes 8K --regions 1 --cost 1,10,0.5,2
expect '[r["registrations"] for r in rows]' '[3, 3]'
expect '[r["deregistrations"] for r in rows]' '[2, 2]'
expect '[r["cost_us"] for r in rows]' '[40.5, 40.5]'
expect 'max(r["pinned_bytes_max"] for r in rows)' 8192

# A log: /a has one buffer, as long as its longest response.
log='1.2.3.4 - - [17/May/2015:10:05:03 +0000]'
{
	echo "$log \"GET /a HTTP/1.1\" 200 5000 \"-\" \"say \\\"hi\\\"\""
	echo "$log \"GET /b HTTP/1.1\" 304 - \"-\" \"-\""
	echo "$log \"GET /b HTTP/1.1\" 200 1 \"-\" \"-\""
	echo "$log \"GET /a HTTP/1.1\" 206 100 \"-\" \"-\""
	echo "$log \"GET /a HTTP/1.1\" 200 9000 \"-\" \"-\""
} >"$scratch/log"
tried --trace "$scratch/log" --policy gdsf --bytes 1M
expect '[j["touched_bytes"], rows[0]["requests"], rows[0]["hits"], rows[0]["partial_hits"]]' '[16384, 4, 1, 1]'

# All policies, each budget kept, and the same packed; thousands of requests.
python3 - "$scratch/many" <<'PYTHON'
import random, sys
random.seed(5)
with open(sys.argv[1], "w") as file:
    for i in range(20000):
        print(int(random.paretovariate(0.7) * 7) % 5000 * 4, random.choice([1, 2, 4, 9]), 0, i, file=file)
PYTHON
tried --trace "$scratch/many" --bytes 1%,50%,64K --regions 5,1000
expect 'sorted({r["policy"] for r in rows})' "['auto', 'gdsf', 'lru', 'mre', 's3fifo', 'sieve']"
expect 'len(rows)' 36
expect 'all(0 < r["pinned_bytes_max"] <= r["bytes"] for r in rows)' True
expect 'all(r["registrations"] - r["deregistrations"] <= r["regions"] for r in rows)' True
expect 'all(0 < r["hits"] + r["partial_hits"] <= r["requests"] == 20000 for r in rows)' True
# The future is not known to a policy.
expect 'all(r["bound_us"] <= r["cost_us"] * 1.001 for r in rows)' True
cp "$scratch/out" "$scratch/plain"
for packer in zstd gzip; do
	command -v "$packer" >/dev/null || continue
	"$packer" -qc <"$scratch/many" >"$scratch/packed" 2>/dev/null || "$packer" -c <"$scratch/many" >"$scratch/packed"
	tried --trace "$scratch/packed" --bytes 1%,50%,64K --regions 5,1000
	sed "s|$scratch/packed|$scratch/many|" "$scratch/out" | cmp -s - "$scratch/plain" ||
		fault "unpacked by $packer it is another trace"
	head -c 3000 "$scratch/packed" >"$scratch/cut"
	expect_refusal "cut cannot be unpacked by $packer" registration --trace "$scratch/cut"
	[ ! -s "$scratch/out" ] || { show; fault 'a result of a damaged trace'; }
done
# Without the program that unpacks.
timeout "$limit_s" env PATH=/nonexistent "$rdmabox" registration --trace "$scratch/packed" \
	>"$scratch/out" 2>"$scratch/err" && fault 'unpacked without a program'
grep -q 'cannot be run; install it' "$scratch/err" || { show; fault 'nothing said of the program'; }

# The table names the best, and tells of auto.
run registration --trace "$scratch/many" --bytes 5%
[ "$status" = 0 ] || { show; fault "exit code $status"; }
grep -q '\*$' "$scratch/out" || { show; fault 'no policy is the best'; }
grep -qE ' auto .* [+-][0-9.]+ %$' "$scratch/out" || { show; fault 'nothing about auto'; }

# A line that is broken: its number, what was expected, and no result.
refused_trace()
{
	local why=$1

	cat >"$scratch/broken"
	expect_refusal "$why" registration --trace "$scratch/broken"
	[ ! -s "$scratch/out" ] || { show; fault "a result beside: $why"; }
}
refused_trace 'line 3 is not `START COUNT 0 NUMBER`' <<<$'1 1 0 0\n2 1 0 0\n3 1 0\n4 1 0 0'
refused_trace 'line 2 is not `ADDRESS LENGTH`' <<<$'0x1000 5\n7000 -5'
refused_trace 'line 2 is not `ADDRESS LENGTH`' <<<$'0x1000 5\n7000 0'
refused_trace 'line 2 is not a line of a web server' <<<"$log"$' "GET /a HTTP/1.1" 200 5\n'"$log"$' "GET /a HTTP/1.1" 200'
refused_trace 'line 1 is neither `START COUNT 0 NUMBER`, .*, nor `ADDRESS LENGTH`' <<<'hello there'
refused_trace 'line 1 is neither' <<<'99999999999999999999 1 0 0'
refused_trace 'has no request' <<<'# nothing'
refused_trace 'line 2' < <(printf '1 1 0 0\n2 1\0 0 0\n')

# All of the main queue of s3fifo is in use, as it is a part of the last request.
{
	for _ in 1 2 3 4; do echo 0 90 0 0; done
	echo 1000 10 0 0
	for _ in 1 2 3 4; do echo 2000 5 0 0; done
	echo 0 100 0 0
} >"$scratch/passed_on"
for policy in s3fifo auto; do
	tried --trace "$scratch/passed_on" --policy "$policy" --bytes 400K
done

# A 0 in front does not make a number octal.
printf '%s\n' '00004095 1' '0x10 5' '09 1' >"$scratch/decimal"
tried --trace "$scratch/decimal" --policy lru --bytes 4096
expect 'j["touched_bytes"]' 4096
refused_trace 'line 1 is neither' <<<'0x 1'

# JSON is UTF-8. What is not is no empty result.
name=$scratch/$'caf\xe9'
cp "$scratch/decimal" "$name"
expect_refusal 'not UTF-8' registration --trace "$name" --json -

expect_refusal 'add --trace' registration
expect_refusal 'No such file' registration --trace /nonexistent
expect_refusal 'Is a directory' registration --trace /
expect_refusal 'cannot be read behind line 0: Input/output error' registration --trace /proc/self/mem
for policy in lfu '' 'lru,' lru,lru all,lru LRU; do
	expect_refusal '(give all, or some of lru, mre, gdsf, s3fifo, sieve, auto|needs)' \
		registration --trace "$scratch/many" --policy "$policy"
done
for bytes in 0 4095 0% 101% -1% % '10%,,' nan% 1e3; do
	expect_refusal 'give at most 16 sizes' registration --trace "$scratch/many" --bytes "$bytes"
done
for regions in 0 -1 x 16777217 '1,'; do
	expect_refusal 'whole numbers from 1 to 16777216' registration --trace "$scratch/many" --regions "$regions"
done
for cost in 1,2,3 1,2,3,4,5 0,0,0,0 -1,2,3,4 a,b,c,d 1,2,3,inf 1,2,3,2000000; do
	expect_refusal 'four numbers of microseconds' registration --trace "$scratch/many" --cost "$cost"
done
expect_refusal 'cannot write --json' registration --trace "$scratch/many" --json /nonexistent/file
exit 0
