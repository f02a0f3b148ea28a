# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the programs of this folder share: machine, runs, repeats, report.

A program of this folder asks one question, prints a table and writes JSON:

    parser = runner.make_parser(__doc__)         # --quick --json --build --cpus
    parser.add_argument(...)                     # what only this question has
    sys.exit(runner.main(parser, ask))

    def ask(machine, options):                   # yields its results, one by one
        flags = {"op": "write", "pattern": "seq", "depth": 32}
        table = runner.measure({
            mode: lambda mode=mode: runner.rdmabox(machine, mode=mode, **flags)
            for mode in ("hybrid", "single")}, runner.iops, options.repeats)
        yield {"name": "modes", "unit": "requests/s", "figures": table}

main() prints each with show(), and writes all of them as {"cases": [...]} with
the parameters of the run. With --json - the table goes to stderr.

All contestants are measured in turn (A B C A B C ...), so that other load of the
machine affects all of them alike. A figure is the median of the repeats, and its
spread is (largest - smallest) / median. A server is started for each run and stopped
after it, since the peers' servers spin even without a client.
A run that fails raises Failed, and the program ends with exit code 2.

With --lab the program runs itself once more in a lab machine (lab/vm), on
Soft-RoCE under the virtual clock, and passes its output on. A question that can only
be measured there sets lab in its parser's defaults.
"""

import argparse
import contextlib
import json
import math
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import time

BLOCK_BYTES = 4096
VOLUME_BYTES = 64 << 20
SHOWN_ON_A_LINE = 3
RUN_LIMIT_S = 120  # a program that takes longer hangs
UCX_START_S = 0.7  # until it listens, which it does not report
UCX_MESSAGES_PER_S = 100000

# The machine of the lab is emulated: runs are short in its time and long in ours.
LAB_ADDRESS = "10.9.0.1"
LAB_RUNTIME_S = 0.5
LAB_REPEATS = 3
LAB_VOLUME_BYTES = 8 << 20
LAB_LIMIT_S = 3600

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Failed(Exception):
    """One line about a run that could not be made."""


class Machine:
    """Where the programs are and where they run."""

    def __init__(self, options):
        self.build = options.build
        self.client_cpu, self.server_cpu = options.cpus
        self.fabric = options.fabric
        self.address = options.address
        self.is_lab = options.in_lab
        self.volume_bytes = LAB_VOLUME_BYTES if self.is_lab else VOLUME_BYTES

    def program(self, *path):
        """A program of the build, which must be there."""
        program = os.path.join(self.build, *path)
        if not os.access(program, os.X_OK):
            raise Failed(f"{program} is missing; build it with ninja -C {self.build}")
        return program

    def peer(self, name, kind="peer"):
        """A peer program; None where its library was missing at the build."""
        program = os.path.join(self.build, "bench", "peers", f"{kind}-{name}")
        return program if os.access(program, os.X_OK) else None

    def client(self, command):
        """Runs a client to its end and returns the JSON that it printed."""
        return json.loads(self.run(command))

    def run(self, command):
        """Runs a command to its end and returns what it printed."""
        done = subprocess.run(
            ["taskset", "-c", str(self.client_cpu)] + command,
            capture_output=True, text=True, check=False,
            timeout=None if self.is_lab else RUN_LIMIT_S)  # lab/vm has a limit of its own
        if done.returncode:
            why = done.stderr.strip().splitlines() or ["no reason given"]
            raise Failed(f"{' '.join(command)}: exit code {done.returncode}: {why[-1]}")
        return done.stdout

    @contextlib.contextmanager
    def server(self, command):
        """A server for as long as the block lasts; gives its address."""
        server = subprocess.Popen(
            ["taskset", "-c", str(self.server_cpu)] + command,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            words = server.stdout.readline().split()
            if len(words) < 2 or words[0] != "ready":
                raise Failed(f"{' '.join(command)}: did not get ready: "
                             f"{server.stderr.read().strip()}")
            yield words[1]
        finally:
            stop(server)


def stop(server):
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    server.stdout.close()
    server.stderr.close()


def flags_of(options):
    """{"qps": 2} as ["--qps", "2"]; True is a flag alone."""
    words = []
    for name, value in options.items():
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(str(value))
    return words


def rdmabox(machine, fabric=None, servers=1, serve=None, client=None, **flags):
    """One `rdmabox bench` against servers of its own; its JSON.

    `flags` are options of rdmabox-bench(1) by name, `serve` those of
    rdmabox-serve(1) that differ from what is set here; `client` is a command that
    takes the place of `rdmabox bench`.
    """
    program = machine.program("cli", "rdmabox")
    fabric = fabric or machine.fabric
    # In the lab there is one CPU, and a poller that spins keeps all others from it.
    polling = {"polling": "hybrid"} if machine.is_lab else {}
    load = {"volume": machine.volume_bytes, "block": BLOCK_BYTES, "depth": 32, "threads": 1,
            "warmup": 0.3, "runtime": 2, "insecure": True, **polling, **flags}
    lent = {"listen": f"{machine.address}:0", "memory": 2 * machine.volume_bytes,
            "slab": machine.volume_bytes // 4, "fabric": fabric, "drain_timeout": 0, "insecure": True,
            **(serve or {})}
    with contextlib.ExitStack() as running:
        addresses = [running.enter_context(machine.server([program, "serve"] + flags_of(lent)))
                     for _ in range(servers)]
        return machine.client((client or [program, "bench"]) +
                              ["--pool", ",".join(addresses), "--fabric", fabric,
                               "--json", "-"] + flags_of(load))


def bench_has(machine, option):
    """Whether `rdmabox bench` of this build knows an option or a word of its help."""
    done = subprocess.run([machine.program("cli", "rdmabox"), "bench", "--help"],
                          capture_output=True, text=True, check=False)
    return option in done.stdout + done.stderr


def peer(machine, name, serve=None, **flags):
    """One run of a peer program against its own server; its JSON."""
    program = machine.peer(name)
    fabric = "verbs" if machine.fabric == "verbs" else "tcp"
    load = {"volume": machine.volume_bytes, "block": BLOCK_BYTES, "depth": 32, "runtime": 2,
            "fabric": fabric, **flags}
    lent = {"listen": f"{machine.address}:0", "memory": machine.volume_bytes, "fabric": fabric,
            **(serve or {})}
    with machine.server([program, "--serve"] + flags_of(lent)) as address:
        return machine.client([program, "--connect", address, "--json", "-"] + flags_of(load))


def ucx_perftest(machine, test, message_bytes, runtime_s, outstanding=1):
    """One run of UCX's own benchmark over TCP: {"p50_us", "messages_per_s"}.

    It takes a number of messages and not a time; this number takes about runtime_s.
    """
    environment = {**os.environ, "UCX_TLS": "tcp", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    with socket.socket() as probe:
        probe.bind((machine.address, 0))
        port = str(probe.getsockname()[1])
    server = subprocess.Popen(["taskset", "-c", str(machine.server_cpu), "ucx_perftest",
                               "-p", port], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(UCX_START_S)
        done = subprocess.run(
            ["taskset", "-c", str(machine.client_cpu), "ucx_perftest", machine.address,
             "-p", port, "-t", test, "-s", str(message_bytes), "-O", str(outstanding),
             "-n", str(max(1000, int(runtime_s * UCX_MESSAGES_PER_S)))],
            env=environment, capture_output=True, text=True, check=False, timeout=RUN_LIMIT_S)
    finally:
        stop(server)
    final = [line.split() for line in done.stdout.splitlines() if line.startswith("Final:")]
    if done.returncode or not final:
        raise Failed(f"ucx_perftest -t {test}: exit code {done.returncode}")
    return {"p50_us": float(final[0][2]), "messages_per_s": float(final[0][-1])}


def measure(runs, figure, repeats):
    """Runs all in turn; {name: {median, spread_percent, values}}."""
    return figures_of(collect(runs, repeats), figure)


def collect(runs, repeats):
    """Runs all in turn; {name: [result, ...]}, for more than one figure of a run."""
    results = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            results[name].append(run())
    return results


def figures_of(results, figure):
    """One figure of collected runs: {name: {median, spread_percent, values}}."""
    table = {}
    for name, of_name in results.items():
        values = [figure(result) for result in of_name]
        table[name] = figure_of(values)
    return table


def figure_of(values):
    median = statistics.median(values)
    spread = 100 * (max(values) - min(values)) / median if median else 0
    return {"median": median, "spread_percent": round(spread, 1), "values": values}


def iops(result):
    return result["iops"]


def p50_us(result):
    return result["lat_us"]["p50"]


def p99_us(result):
    return result["lat_us"]["p99"]


def number(value):
    """With three digits at least."""
    return f"{value:,.{0 if value > 1000 else 1 if value >= 10 else 2}f}"


def show(found):
    """Prints one case: its figures, and its ratio to a goal where it has one."""
    cells = [f"{name:<9} {number(figure['median']):>11}"
             f" (+-{figure['spread_percent'] / 2:.0f} %)"
             for name, figure in found["figures"].items()]
    head = f"{found['name']:<25} {found['unit']:<13}"
    for first in range(0, len(cells), SHOWN_ON_A_LINE):
        print(head, "  ".join(cells[first:first + SHOWN_ON_A_LINE]), flush=True)
        head = " " * len(head)
    if "goal" in found:
        sign = "<=" if found["goal_is"] == "at most" else ">="
        verdict = "met" if found["met"] else "NOT met"
        if not found["decided"]:
            verdict += " by the median, but noise decides: measure again or longer"
        low, high = found["ratio_range"]
        print(f"{'':36}  {found['ratio']:.2f} x {found['against']} ({low:.2f} to {high:.2f}),"
              f" goal {sign} {found['goal']}: {verdict}", flush=True)


def median_range(values):
    """The range of the true median, with 90 % confidence, by order statistics.

    With 5 values it is from the smallest to the largest; with fewer, confidence is lower.
    """
    def outside(skipped):
        return 2 * sum(math.comb(len(values), i) for i in range(skipped + 1)) / 2 ** len(values)

    skipped = 0
    while outside(skipped + 1) <= 0.1:
        skipped += 1
    ordered = sorted(values)
    return ordered[skipped], ordered[-1 - skipped]


def judged(found, ours, theirs, against, goal, at_most=False, resolution=1.0):
    """A case with the ratio of two figures and whether that meets the goal.

    The runs of a repeat follow each other, so slow changes of the machine do not affect
    their ratios. If the goal is within the range of these ratios, noise decides.
    """
    def is_met(ratio):
        return ratio <= goal * resolution if at_most else ratio >= goal

    ratio = ours["median"] / theirs["median"]
    low, high = median_range([a / b for a, b in zip(ours["values"], theirs["values"])])
    return {**found, "ratio": round(ratio, 3), "ratio_range": [round(low, 3), round(high, 3)],
            "against": against, "goal": goal, "goal_is": "at most" if at_most else "at least",
            "met": is_met(ratio), "decided": is_met(low) == is_met(high) == is_met(ratio)}


def parse_cpus(text):
    cpus = [int(word) for word in text.split(",")]
    if len(cpus) != 2 or not set(cpus) <= os.sched_getaffinity(0):
        raise argparse.ArgumentTypeError("give two CPUs of this machine, such as 0,1")
    return cpus


def make_parser(description):
    """The options that every program of this folder has."""
    # A program may give one of these options another meaning.
    parser = argparse.ArgumentParser(description=description.splitlines()[0],
                                     conflict_handler="resolve")
    parser.add_argument("--quick", action="store_true",
                        help="short runs, three repeats: shows the order, not the figures")
    parser.add_argument("--runtime", type=float, metavar="S", help="of a run (2, quick 0.4)")
    parser.add_argument("--repeats", type=int, metavar="N", help="of each run (5, quick or in the lab 3)")
    parser.add_argument("--json", metavar="FILE|-", help="write all figures as JSON")
    parser.add_argument("--build", default=os.path.join(REPOSITORY, "build", "release"),
                        metavar="DIR", help="build directory (build/release)")
    parser.add_argument("--cpus", type=parse_cpus, default=[0, 1], metavar="C,S",
                        help="CPU of the client and of the server (0,1)")
    parser.add_argument("--fabric", choices=("soft:tcp", "verbs"), default="soft:tcp",
                        help="how the servers are reached (soft:tcp)")
    parser.add_argument("--address", default="127.0.0.1",
                        help="where the servers listen (127.0.0.1)")
    parser.add_argument("--lab", nargs="?", const="verbs", choices=("verbs", "soft:tcp"),
                        help="in a virtual machine under its virtual clock, on Soft-RoCE"
                        " (--lab) or over its loopback (--lab=soft:tcp)")
    parser.add_argument("--kernel", choices=("6.1", "6.12"), default="6.1",
                        help="of the lab's machine (6.1)")
    parser.add_argument("--in-lab", action="store_true", help=argparse.SUPPRESS)
    return parser


def write_json(target, report):
    if target == "-":
        json.dump(report, sys.stdout, indent=2)
        print()
        return
    with open(target, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=2)


def describe(options):
    print(f"{options.fabric}: medians of {options.repeats} runs of {options.runtime_s} s,"
          f" client on CPU {options.cpus[0]}, server on CPU {options.cpus[1]}")
    if options.in_lab:
        print("virtual clock: times are instructions executed, and only ratios count")
        return
    load = os.getloadavg()[0]
    if load > 1:
        print(f"the machine is busy (load {load:.1f}): expect low figures and wide spreads")


def without(words, alone, with_value):
    """A command line without some options, given as --name VALUE or --name=VALUE."""
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if name in with_value:
            if not equals:
                next(rest)
        elif name not in alone:
            yield word


def run_in_lab(options):
    """Runs this program again in a lab machine; the exit code.

    The virtual clock jumps while the machine reads our files, even beyond the time limits
    of handshakes. So programs are copied and libraries are read first.
    """
    again = without(sys.argv[1:], {"--lab"}, {"--build", "--cpus", "--json"})
    program = os.path.relpath(os.path.abspath(sys.argv[0]), REPOSITORY)
    fabric, address = ("soft:tcp", "127.0.0.1") if options.lab == "soft:tcp" else (
        "verbs", LAB_ADDRESS)
    inside = (
        "set -e; cd /host && bench/copy_programs /build /tmp/b &&"
        " { ldd /tmp/b/cli/rdmabox $(find /tmp/b/bench -type f -name 'peer-*') | sed -n 's/.*=> \\([^ ]*\\) .*/\\1/p';"
        " find /usr/lib -path '*ucx*' -o -path '*libibverbs/*.so'; } | sort -u |"
        " xargs cat > /dev/null 2>&1 || true;"
        f" python3 -B {shlex.quote(program)} {shlex.join(again)} --in-lab"
        f" --build /tmp/b --cpus 0,0 --fabric {fabric} --address {address}")
    inside += " --json -" if options.json else ""
    vm = [os.path.join(REPOSITORY, "lab", "vm"), "--measure", "--build", options.build,
          "--kernel", options.kernel, "--timeout", str(LAB_LIMIT_S), "--", inside]
    done = subprocess.run(vm, stdout=subprocess.PIPE if options.json else None,
                          text=True, check=False)
    if options.json and done.returncode == 0:
        write_json(options.json, json.loads(done.stdout))
    return done.returncode


def end_by_signals():
    """A program that a signal ends stops its servers and removes its folders first, silently."""
    def end(number, _frame):
        sys.exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def main(parser, ask, lab_repeats=LAB_REPEATS):
    """Asks the question, shows and writes the answer; the exit code."""
    options = parser.parse_args()
    end_by_signals()
    if options.lab and not options.in_lab:
        return run_in_lab(options)
    repeats = 3 if options.quick else 5
    options.runtime_s = options.runtime or (0.4 if options.quick else 2.0)
    if options.in_lab:
        options.runtime_s = LAB_RUNTIME_S
        repeats = min(repeats, lab_repeats)
    options.repeats = options.repeats or repeats
    table_to = sys.stderr if options.json == "-" else sys.stdout
    found = []
    try:
        machine = Machine(options)
        with contextlib.redirect_stdout(table_to):
            describe(options)
            for case in ask(machine, options):
                show(case)
                found.append(case)
        if options.json:
            write_json(options.json, {
                "fabric": options.fabric, "is_lab": options.in_lab,
                "runtime_s": options.runtime_s, "repeats": options.repeats,
                "block_bytes": BLOCK_BYTES, "volume_bytes": machine.volume_bytes,
                "cpus": options.cpus, "cases": found})
    except (Failed, OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as reason:
        print(f"{parser.prog}: {reason}", file=sys.stderr)
        return 2
    return 0
