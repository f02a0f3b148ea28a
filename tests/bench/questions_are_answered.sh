#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The programs of bench/ that nothing else runs answer with this build: each contestant
# has a figure. The runs are far too short to mean anything.

set -uo pipefail
top=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
build=$(readlink -f "${1:?usage: $0 BUILD-DIRECTORY}")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rdmabox-questions.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
export PYTHONDONTWRITEBYTECODE=1
cpu=$(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/')

fault()
{
	printf 'FAULT: %s\n' "$*" >&2
	cat "$scratch/out" "$scratch/err" >&2
	exit 1
}

# question NAME OPTION... - leaves the JSON in $scratch/out
question()
{
	timeout 200 "$top/bench/$1" --runtime 0.05 --repeats 1 --cpus "$cpu,$cpu" --json - \
		--build "$build" "${@:2}" >"$scratch/out" 2>"$scratch/err"
}

# has UNIT CONTESTANT... - a case of this unit has a figure for each
has()
{
	python3 - "$scratch/out" "$@" <<'END' || fault "no $1 of ${*:2}"
import json, sys
path, unit, *names = sys.argv[1:]
cases = [case["figures"] for case in json.load(open(path))["cases"] if case["unit"] == unit]
sys.exit(not any(all(name in figures and figures[name]["median"] >= 0 for name in names)
                 for figures in cases))
END
}

for name in urgent polling window rebuild; do
	question "$name" --build "$scratch"
	[ $? = 2 ] && [ "$(grep -c "ninja" "$scratch/err")" = 1 ] ||
		fault "$name: a missing build is not said"
done

question urgent || fault "urgent: exit code $?"
has "read p50 us" plain urgent
has "write p99 us" plain urgent

question named --only words --gib 1 --runtime 0.02 || fault "named: exit code $?"
has requests/s unnamed named

question polling --only intermittent || fault "polling: exit code $?"
has score busy event event-batch:16 hybrid adaptive:120 adaptive shared:1
has "CPU %" busy adaptive

question window --threads 1 --block 4096 --device overload || fault "window: exit code $?"
has MB/s 32K 64K
has MB/s off aimd delay auto

question window --threads 1 --block 4096 --device plain --runtime 0.3 --steady 2 ||
	fault "window in turns: exit code $?"
has "of off" 32K 64K
has "of off" off aimd delay auto

question rebuild --volume 64 || fault "rebuild: exit code $?"
has "p99 us" well rebuilding
has "copied MB/s" idle plain

# Who is ended by a signal stops its servers and removes its folders, without a traceback.
TMPDIR=$scratch "$top/bench/registration" --quick --build "$build" >"$scratch/out" 2>"$scratch/err" &
asked=$!
for ((i = 0; i < 600; i++)); do
	! compgen -G "$scratch/rdmabox-registration.*" >/dev/null || break
	sleep 0.1
done
kill -TERM "$asked"
wait "$asked"
[ $? = 143 ] && [ ! -s "$scratch/err" ] || fault "registration does not end by SIGTERM"
! compgen -G "$scratch/rdmabox-registration.*" >/dev/null || fault "registration leaves a folder"

"$build/bench/fairness" --bogus >"$scratch/out" 2>"$scratch/err"
[ $? = 2 ] && [ ! -s "$scratch/out" ] || fault "fairness measures what nobody has asked"

"$top/demo" --address >"$scratch/out" 2>"$scratch/err"
[ $? = 2 ] && [ "$(<"$scratch/err")" = "demo: --address wants an address" ] ||
	fault "demo does not say what is missing"

# One request in flight is worth far less than 32, and windows that take turns tell.
PYTHONPATH=$top/bench python3 - "$build" "$cpu" >"$scratch/out" 2>"$scratch/err" <<'END' ||
import argparse, sys
import runner
build, cpu = sys.argv[1:]
machine = runner.Machine(argparse.Namespace(
    build=build, cpus=(cpu, cpu), fabric="soft:tcp", address="127.0.0.1", in_lab=False))
rates = runner.rdmabox(
    machine, client=[machine.program("bench", "window_turns"), "--turns", "off,4K"],
    op="write", pattern="rand", fragment=4096, runtime=1)["mb_per_s"]
print(rates)
sys.exit(len(rates) < 2 or sum(rates[1::2]) > sum(rates[::2]) / 2)
END
	fault "windows that take turns do not tell 4K from off"

# What --lab takes into its machine runs there.
"$top/bench/copy_programs" "$build" "$scratch/copy" || fault "copy_programs: exit code $?"
env -u LD_LIBRARY_PATH "$scratch/copy/cli/rdmabox" --version >"$scratch/out" 2>"$scratch/err" ||
	fault "a copied program does not run"
