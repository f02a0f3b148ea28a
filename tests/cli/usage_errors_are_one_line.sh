#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A wrong command line is one line with cause and fix, and exit code 2; --help
# tells every command's options on stdout.

. "$(dirname "$0")/rdmabox.sh"

bench=(bench --pool 127.0.0.1:1 --volume 16M)
serve=(serve --listen 127.0.0.1:0 --memory 64M)

# Alone it lists the commands, a line each.
run
[ "$status" = 2 ] || { show; fault "without a command: exit code $status"; }
[ ! -s "$scratch/out" ] || { show; fault "without a command: wrote to stdout"; }
for command in serve bench doctor page pool registration sim stat top tune volume help; do
	grep -qE "^  $command +[a-z].{10}" "$scratch/err" || { show; fault "$command is not listed"; }
done
[ "$(wc -l <"$scratch/err")" -le 20 ] || { show; fault "the list is not short"; }
expect_refusal "unknown command 'lend'.*--help" lend
expect_refusal "unknown command 'bnech'; did you mean 'bench'" bnech
expect_refusal "unknown command 'atach'; did you mean 'attach'" page atach
expect_refusal "unknown command 'frob'; see" volume frob
expect_refusal "unknown command 'nope'; see" help nope
expect_refusal "unknown command 'statt'; did you mean 'stat'" help statt
expect_refusal 'unknown option --foo.*--help' bench --foo
expect_refusal 'unknown option --foo; see rdmabox --help' --foo
expect_refusal 'unknown option --deph; did you mean --depth' bench --deph 3
expect_refusal 'unknown option --colour=red; see' bench --colour=red
for command in bench 'page attach' 'pool status' 'volume list'; do
	# shellcheck disable=SC2086 # words
	expect_refusal 'unknown option --servers; did you mean --pool' $command --servers 127.0.0.1:1
done
expect_refusal "volume show: name '' is not accepted" volume show '' --pool 127.0.0.1:1
expect_refusal "volume show: --name '' is not accepted" volume show --name '' --pool 127.0.0.1:1
expect_refusal 'give one command' help page attach now
expect_refusal 'unknown option -x' serve -x
expect_refusal 'unknown option -listen; did you mean --listen' serve --memory 1G -listen 127.0.0.1:0
expect_refusal '--depth needs a value' bench --depth
expect_refusal '--verify takes no value' bench --verify=yes
expect_refusal "unexpected 'word'" bench word
# What a word holds does not reach the terminal as a command, nor makes two lines.
expect_refusal "unexpected 'a.b.c'" bench $'a\nb\ec'
! grep -q $'\e' "$scratch/err" || { show; fault 'an escape reaches the terminal'; }

expect_refusal 'add --pool' bench --volume 16M
expect_refusal 'add --volume SIZE, or --volume-name' bench --pool 127.0.0.1:1
expect_refusal '--volume and --volume-name exclude' "${bench[@]}" --volume-name db
expect_refusal '--take-over needs --volume-name' "${bench[@]}" --take-over
for option in '--replicas 2' --checksums; do
	# shellcheck disable=SC2086 # words
	expect_refusal 'goes with neither' bench --pool 127.0.0.1:1 --volume-name db $option
done
expect_refusal 'multiple of 4096' bench --pool 127.0.0.1:1 --volume 5000
for size in '' 5x K -1 0x10 1.5G 4KB '4 K' 99999999999999999999 99999999999T; do
	expect_refusal "--block '$size'" "${bench[@]}" --block "$size"
done
expect_refusal 'multiple of 64' "${bench[@]}" --block 100
expect_refusal 'no larger than the volume' "${bench[@]}" --block 32M
expect_refusal 'power of two' "${bench[@]}" --fragment 12K
expect_refusal "--fragment '512K'" "${bench[@]}" --fragment 512K
for number in '' 0 -1 3.5 1e3 5000 18446744073709551617; do
	expect_refusal "--depth '$number'" "${bench[@]}" --depth "$number"
done
for op in x mix mix: mix:101 mix:-1 mix:5x; do
	expect_refusal 'read, write, or mix:PCT' "${bench[@]}" --op "$op"
done
for pattern in x trace: traces; do
	expect_refusal 'seq, rand, zipf or trace:FILE' "${bench[@]}" --pattern "$pattern"
done
expect_refusal 'one of single' "${bench[@]}" --mode both
for window in of 0 4095 -1 1X 513G auto:2; do
	expect_refusal "--window '$window'.*off, aimd, delay, auto" "${bench[@]}" --window "$window"
done
expect_refusal 'window=64K: below one request.*131072' "${bench[@]}" --window 64K
expect_refusal 'overload=64: must be off, or' "${bench[@]}" --overload 64
expect_refusal 'window=8K: below one request.*16384' "${bench[@]}" --window 8K --fragment 16K
for seconds in x -1 nan inf 1s; do
	expect_refusal "--runtime '$seconds'" "${bench[@]}" --runtime "$seconds"
done
expect_refusal 'above 0' "${bench[@]}" --runtime 0
expect_refusal '--checksums' "${bench[@]}" --block 512 --checksums
expect_refusal 'exclude each other' "${bench[@]}" --secret-file x --insecure
expect_refusal 'polling' "${bench[@]}" --polling sometimes
expect_refusal 'shared:2' "${bench[@]}" --polling shared:2 --pollers 4
for pollers in 0 17 x; do
	expect_refusal '1 to 16, peer or queue_pair' "${bench[@]}" --pollers "$pollers"
done
for load in x open open: open:0 open:1x burst:1 burst:0:0 burst:4097:0 burst:1:5 burst:1:1h; do
	expect_refusal 'closed, open:RATE' "${bench[@]}" --load "$load"
done
expect_refusal "--fabric 'ether'" "${bench[@]}" --fabric ether

expect_refusal 'no command; give attach, detach, .* or status, see' page
expect_refusal 'no command; give status, see' pool
expect_refusal 'no command; give create, .*, scrub, .* or remove, see' volume
expect_refusal 'help: give one command' volume help create now
expect_refusal "unknown command 'frob'" volume help frob
expect_refusal "unknown command 'lend'" page lend
expect_refusal 'add --pool' page attach --size 1G
expect_refusal 'add --size' page attach --pool 10.0.0.1:7471
expect_refusal 'no multiple of 4096' page attach --pool 10.0.0.1:7471 --size 5000
expect_refusal 'exclude each other' page attach --pool 10.0.0.1:7471 --size 1G --insecure --secret-file x
expect_refusal 'as it was made' page attach --pool 10.0.0.1:7471 --size 1G --volume x
expect_refusal 'is kept' page attach --pool 10.0.0.1:7471 --volume x --swap
expect_refusal 'needs --volume' page attach --pool 10.0.0.1:7471 --size 1G --take-over
expect_refusal 'add --server' page add-server
expect_refusal 'no name for a volume' page add-server 10.0.0.1:7471 --name ../x
expect_refusal 'nothing to change' page set
expect_refusal 'no name for a volume' page set --peer-timeout 1000 --name ../x
expect_refusal 'no name for a volume' page attach --pool 10.0.0.1:7471 --size 1G --name ../x
for name in ../x . .. x/y /x; do
	for command in status detach; do
		expect_refusal "--name '$name' is no name for a volume" page "$command" --name "$name"
	done
done
expect_refusal "--replicas '4'" page attach --replicas 4
expect_refusal "unexpected 'x'" page list x
expect_refusal 'add --listen' serve --memory 64M
expect_refusal 'add --memory' serve --listen 127.0.0.1:0
expect_refusal 'power of two' "${serve[@]}" --slab 3M
expect_refusal 'in all' serve --listen 127.0.0.1:0 --memory 10T --slab 64K
expect_refusal 'does not fit' "${serve[@]}" --slab 128M
expect_refusal 'exclude each other' "${serve[@]}" --secret-file x --insecure
expect_refusal '--drain-timeout' "${serve[@]}" --drain-timeout soon
expect_refusal 'add --server' stat
expect_refusal "unexpected '127.0.0.1:2'" stat 127.0.0.1:1 127.0.0.1:2
expect_refusal 'exclude each other' stat --server 127.0.0.1:1 --secret-file x --insecure
for number in '' 0 17 -1 two; do
	expect_refusal "--qps '$number'.*1 to 16" "${bench[@]}" --qps "$number"
done
expect_refusal 'unknown option --queue-pairs' "${bench[@]}" --queue-pairs 2
expect_refusal 'no devices to choose from' "${bench[@]}" --fabric soft --device mlx5_0
for number in 0 102 x; do
	expect_refusal '--rounds.*1 to 101' tune --rounds "$number"
done
expect_refusal 'above 0' tune --runtime 0
expect_refusal "--fabric 'ether'" tune --fabric ether
expect_refusal 'exclude each other' tune --secret-file x --insecure
expect_refusal 'unknown option --fix' doctor --fix
expect_refusal 'no directory' doctor --root "$scratch/none"
for number in '' -1 1K 18446744073709551616; do
	expect_refusal "--seed '$number'.*below 2.64" sim --seed "$number"
done

# A trace that is none.
expect_refusal 'cannot open trace' "${bench[@]}" --pattern "trace:$scratch/none"
printf '1 2 0 3\nthree\n' >"$scratch/trace"
expect_refusal 'line 2' "${bench[@]}" --pattern "trace:$scratch/trace"
expect_refusal 'line 1 is not' "${bench[@]}" --pattern trace:/dev/zero
gzip -k "$scratch/trace"
expect_refusal 'compressed' "${bench[@]}" --pattern "trace:$scratch/trace.gz"
: >"$scratch/empty"
expect_refusal 'no request' "${bench[@]}" --pattern "trace:$scratch/empty"

expect_success --version
grep -qE '^rdmabox [0-9]+\.[0-9]+\.[0-9]+$' "$scratch/out" || fault "no version"
expect_success --help
for command in serve bench doctor page pool sim stat top tune volume help; do
	grep -qE "^ +$command " "$scratch/out" || fault "--help leaves out $command"
done
for command in serve bench doctor sim stat tune "page attach" "page detach" "page add-server" "page set" "page list" "page status" "pool status" \
	"volume create" "volume list" "volume show" "volume import" "volume export" "volume grow" "volume rename" "volume add-server" "volume remove-server" \
	"volume remove" "volume scrub" top; do
	# shellcheck disable=SC2086 # words
	expect_success $command --help
	[ ! -s "$scratch/err" ] || fault "$command --help writes to stderr"
	twice=$(grep '^[A-Z][a-z ]*:$' "$scratch/out" | sort | uniq -d)
	[ -z "$twice" ] || fault "$command --help says twice: $twice"
	# Each option of --help stands in the manual page too.
	page=rdmabox-${command%% *}.1
	while read -r option; do
		grep -qE -- "^\.It Fl -$option( |$)" "$build/man/$page" ||
			fault "man/$page leaves out --$option"
	done < <(sed -nE 's/^  --([a-z-]+).*/\1/p' "$scratch/out" | grep -v '^help$')
	[ -n "$(sed -nE 's/^  --([a-z-]+).*/\1/p' "$scratch/out")" ] || fault "$command: no options"
	cp "$scratch/out" "$scratch/by_option"
	# shellcheck disable=SC2086 # words
	expect_success help $command
	cmp -s "$scratch/out" "$scratch/by_option" || fault "help $command is not $command --help"
done

# Defaults are those that the program has.
expect_help()
{
	local pattern=$1

	shift
	expect_success "$@"
	tr -s ' \n' ' ' <"$scratch/out" | grep -E -- "$pattern" >/dev/null ||
		{ show; fault "rdmabox $*: does not say $pattern"; }
}
expect_help '--slab SIZE how much to lend at once, a power of two \(default: 64M\)' help serve
expect_help '--lease MS [a-z ]+ \(default: 60000 ms\)' help serve
expect_help '--drain-timeout S [A-Za-z ]+ \(default: 30 s\)' help serve
expect_help '--block SIZE [0-9a-z, ]+ \(default: 4K\)' help bench
expect_help '--mode single.doorbell.merge.hybrid .* hybrid: both \(default: hybrid\)' help bench
expect_help '--peer-timeout MS [a-z ]+ \(default: 5000 ms\)' help bench
expect_help '--backup-buffer SIZE [a-z ]+ \(default: 16M\)' help page attach
expect_help '--scenario NAME .*\(default: volume\)' help sim
grep -q 'From 64K to 1G; by default 64M' "$build/man/rdmabox-serve.1" ||
	fault "the manual page does not say the default of --slab"

for group in page pool volume; do
	expect_success help $group
	cp "$scratch/out" "$scratch/by_command"
	expect_success $group help
	cmp -s "$scratch/out" "$scratch/by_command" || fault "$group help is not help $group"
done
expect_success help volume create
cp "$scratch/out" "$scratch/by_command"
expect_success volume help create
cmp -s "$scratch/out" "$scratch/by_command" || fault "volume help create is not help volume create"

expect_success help
expect_success help --json
python3 - "$scratch/out" <<'END' || fault "help --json is not the tables"
import json, sys
commands = {command["name"]: command for command in json.load(open(sys.argv[1]))["commands"]}
assert list(commands) == ["serve", "bench", "doctor", "page", "pool", "registration", "sim", "stat", "top", "tune", "volume", "help"]
serve = {option["name"]: option for option in commands["serve"]["options"]}
assert serve["slab"]["default"] == "64M" and serve["slab"]["kind"] == "size"
assert serve["slab"]["range"] == "64K to 1G"
assert serve["listen"]["required"] and "default" not in serve["listen"]
assert serve["fabric"]["choices"] == ["auto", "verbs", "soft", "soft:tcp"]
attach = commands["page"]["commands"][0]
assert attach["name"] == "page attach" and len(attach["options"]) == 21
END
