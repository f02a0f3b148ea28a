#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The parts of bench/paging, without the lab's machine: the programs that it runs
# there find their data, its readers read what fio and Redis print, and its verdicts
# are right for figures that are given.

set -uo pipefail
top=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
build=$(readlink -f "${1:?usage: $0 BUILD-DIRECTORY}")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rdmabox-paging.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
export PYTHONDONTWRITEBYTECODE=1

fault()
{
	printf 'FAULT: %s\n' "$*" >&2
	cat "$scratch/out" "$scratch/err" >&2
	exit 1
}

run()
{
	"$@" >"$scratch/out" 2>"$scratch/err"
}

run "$build/bench/swap_pages" $((1 << 20)) || fault "swap_pages: exit code $?"
grep -q '"pages": 256,' "$scratch/out" || fault "swap_pages has not filled 256 pages"
run "$build/bench/swap_pages"
[ $? = 2 ] || fault "swap_pages without a size"

for name in logistic boosting k-means text-rank; do
	run "$build/bench/learn" $name $((1 << 18)) || fault "learn $name: exit code $?"
	grep -o '"result".*' "$scratch/out" >"$scratch/first"
	run "$build/bench/learn" $name $((1 << 18))
	grep -o '"result".*' "$scratch/out" | cmp -s - "$scratch/first" ||
		fault "$name learns something else the second time"
	! grep -qE 'nan|inf' "$scratch/first" || fault "$name learns nothing"
done
run "$build/bench/learn" nothing $((1 << 18))
[ $? = 2 ] || fault "learn takes any name"

# Before anything is prepared for it.
run "$top/bench/paging" --build "$scratch/nowhere"
[ $? = 2 ] || fault "a missing build is not refused"

run python3 - "$top/bench" "$build" "$scratch" <<'END' || fault "see above"
import contextlib, importlib.machinery, importlib.util, json, pathlib, sys, types
bench, build, scratch = sys.argv[1:]
sys.path.insert(0, bench)
import runner
from swapping import devices, loads

loader = importlib.machinery.SourceFileLoader("paging", f"{bench}/paging")
paging = importlib.util.module_from_spec(importlib.util.spec_from_loader("paging", loader))
loader.exec_module(paging)

NAMES = ("hybrid", "single", "nvme-rdma", "nvme-tcp", "nbd", "zram", "brd")
machine = types.SimpleNamespace(program=lambda *path: "/".join((build,) + path),
                                peer=lambda name: name)
options = types.SimpleNamespace(repeats=3, runtime_s=1, only=None)
bed = {name: name for name in NAMES}


def judged(section):
    """The verdicts of a section, by what is compared."""
    found = list(paging.SECTIONS[section](machine, bed, options))
    return {(case["name"], case["unit"], case["against"]): case["met"]
            for case in found if "goal" in case}


# What fio and redis-benchmark print is read.
printed = {"jobs": [{"error": 0, "read": {"iops": 40.0}, "write": {"iops": 2.0}}]}
loads.run = lambda *command: json.dumps(printed)
assert loads.fio("/dev/x", "randread", "4k", 1, 1, 1) == {"iops": 42.0}
printed["jobs"][0]["error"] = 5
try:
    loads.fio("/dev/x", "randread", "4k", 1, 1, 1)
    sys.exit("an error of fio is no failure")
except runner.Failed:
    pass
loads.run = lambda *command: ('"test","rps","p50_latency_ms","p99_latency_ms"\n'
                              '"SET","100.0","1.0","9.0"\n"GET","300.0","1.0","4.0"\n')
assert loads.redis_benchmark(10, 10) == {"ops": 150.0, "p99_ms": 9.0}

# Who has shrunk in time gets its limit; who has not is not left to be killed.
group = pathlib.Path(scratch)
(group / "memory.current").write_text("100\n")
loads.shrink(group, 200)
assert (group / "memory.max").read_text() == "200"
(group / "memory.max").unlink()
try:
    loads.shrink(group, 50)
    sys.exit("a limit below what is used is no failure")
except runner.Failed:
    assert not (group / "memory.max").exists()
(group / "memory.events").write_text("max 7\noom 5\noom_kill 3\noom_group_kill 0\n")
assert loads.kills_of(group) == 3

# The bars: 2.0 and 2.5 times nvme-rdma for reads of 4 KiB.
rates = dict.fromkeys(NAMES, 100.0) | {"hybrid": 240.0, "single": 240.0}
loads.fio = lambda device, *load: {"iops": rates[device]}
runner.peer = lambda machine, name, **load: {"iops": 200.0}
verdicts = judged("blocks")
assert verdicts["randread 4k, depth 1", "requests/s", "nvme-rdma"]
assert not verdicts["randread 4k, depth 16", "requests/s", "nvme-rdma"]
assert verdicts["randread 4k, depth 16", "requests/s", "single"]

# Pages/s, and less is worse; a latency and a time, and less is better.
seconds = dict.fromkeys(NAMES, 4.0) | {"hybrid": 2.0, "single": 2.9}
loads.limited = lambda device, command, limit_bytes: {
    "pages": 100, "fill_s": 1e-9, "in_order_s": 1e-9, "random_s": seconds[device],
    "seconds": seconds[device], "result": 7}
verdicts = judged("swap")
assert verdicts["swap, all of it", "pages/s", "nvme-rdma"]
assert not verdicts["swap, all of it", "pages/s", "single"]
assert all(judged("learn").values())
seconds["single"] = 1.0
assert not judged("learn")["k-means", "seconds", "single"]
loads.redis = lambda device, percent, keys, requests: {
    "ops": 1 / seconds[device], "p99_ms": seconds[device]}
verdicts = judged("redis")
assert verdicts["redis, 25 %", "requests/s", "nvme-rdma"]
assert verdicts["redis, 25 %", "p99 ms", "nvme-rdma"]
assert not verdicts["redis, 25 %", "p99 ms", "single"]

# Who learns something else has read something else.
loads.limited = lambda device, command, limit_bytes: {"seconds": 1, "result": device}
try:
    judged("learn")
    sys.exit("different results are no failure")
except runner.Failed:
    pass
END
