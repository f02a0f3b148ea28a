#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The small examples of a volume: each compares what it reads, and says so at its end.

. "$(dirname "$0")/rdmabox.sh"

# says NAME WORDS - the example ends well, with these words
says()
{
	timeout "$limit_s" "$build/examples/$1" "$address" >"$scratch/out" 2>"$scratch/err" ||
		{ show; fault "$1: exit code $?"; }
	grep -q "$2" "$scratch/out" || { show; fault "$1: does not say: $2"; }
}

# fails NAME - without a server it ends with an error that names the address
fails()
{
	! timeout "$limit_s" "$build/examples/$1" 127.0.0.1:1 >"$scratch/out" 2>"$scratch/err" ||
		fault "$1: no error without a server"
	grep -q '127.0.0.1:1' "$scratch/err" || { show; fault "$1: its error names no address"; }
}

start_server --memory 1G
says hello '^hello, remote memory$'
says scatter '^record 5, 19 bytes: what is in record 5$'
says journal '^committed 100; its last record: transaction 100, record 14$'
# Under a plug 15 neighbours are one work request: with the commit two for each of 100.
grep -qE '^1602 requests in 2[0-9]{2} work requests$' "$scratch/out" ||
	{ show; fault "journal: its records were not merged"; }
says event-loop '^200 pages written, read and compared, on one thread$'
says batches '^16384 pages written, read and compared: 32768 requests, '
[ ! -x "$build/examples/futures" ] || says futures '^16 futures kept; page 7 begins with hhh$'
says named '^run 1$'
says named '^run 2$'
fails hello
fails journal
fails named
if [ -x "$build/examples/futures" ]; then
	fails futures
	[ "$(grep -o 'onnection refused' "$scratch/err" | wc -l)" -le 1 ] ||
		{ show; fault "futures: says the error twice"; }
fi
