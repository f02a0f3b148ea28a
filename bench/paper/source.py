# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The sources of the figures' numbers: the programs of bench/, the simulator, single runs."""

import json
import os
import subprocess
import sys

import runner
from paper import LAB, NotAvailable

QUESTION_LIMIT_S = 900
LAB_REPEATS = 1  # its clock counts instructions: a second run tells nothing more


class Source:
    def __init__(self, options):
        self.options = options
        self.machine = runner.Machine(options)
        self.answers = {}
        self.simulations = {}

    def question(self, name, on, *words):
        """The cases of one program of bench/; it runs once, however often they are used."""
        key = (name, on, words)
        if key not in self.answers:
            self.answers[key] = self.ask(name, on, list(words))
        return self.answers[key]

    def ask(self, name, on, words):
        options = self.options
        repeats = LAB_REPEATS if on == LAB else options.repeats
        command = [os.path.join(runner.REPOSITORY, "bench", name), *words,
                   "--runtime", str(options.runtime_s), "--repeats", str(repeats)]
        command += ["--quick"] if options.quick else []
        command += ["--lab"] if on == LAB else []
        print(f"  bench/{' '.join([name] + command[1:])}", file=sys.stderr)
        done = subprocess.run(
            [sys.executable, "-B"] + command
            + ["--build", options.build, "--cpus", ",".join(map(str, options.cpus)),
               "--json", "-"],
            capture_output=True, text=True, timeout=QUESTION_LIMIT_S, check=False)
        if done.returncode:
            why = done.stderr.strip().splitlines() or ["no reason given"]
            raise NotAvailable(f"bench/{name}: {why[-1]}")
        return json.loads(done.stdout)["cases"]

    def simulated(self, scenario, title):
        """{row: {column: value}} of the one table whose title begins so; run once."""
        if scenario not in self.simulations:
            command = [self.machine.program("cli", "rdmabox"), "sim", "--scenario", scenario,
                       "--json", "-"]
            print(f"  {' '.join(command)}", file=sys.stderr)
            done = subprocess.run(command, capture_output=True, text=True,
                                  timeout=QUESTION_LIMIT_S, check=False)
            if done.returncode:
                why = done.stderr.strip().splitlines() or ["it failed"]
                raise NotAvailable(f"rdmabox sim --scenario {scenario}: {why[-1]}")
            self.simulations[scenario] = json.loads(done.stdout)["tables"]
        (table,) = [table for table in self.simulations[scenario]
                    if table["title"].startswith(title)]
        return table["rows"]

    def require(self, option, what):
        """Raises NotAvailable unless `rdmabox bench` of this build has an option."""
        if not runner.bench_has(self.machine, option):
            raise NotAvailable(f"{what} is not available in this build")

    def collect(self, runs):
        return runner.collect(runs, self.options.repeats)


def by_unit(cases, unit, key="name"):
    """{case: {contestant: median}} of one unit, in the order of the cases."""
    return {case[key]: {name: figure["median"] for name, figure in case["figures"].items()}
            for case in cases if case["unit"] == unit}


def median(results, figure):
    """{name: median} of collected runs."""
    return {name: found["median"] for name, found in runner.figures_of(results, figure).items()}


def first_peak(rates):
    """{x: rate}: the best x before the rate drops for the first time, by more than 3 %."""
    peak = next(iter(rates))
    for x, rate in rates.items():
        if rate < 0.97 * rates[peak]:
            break
        peak = x if rate > rates[peak] else peak
    return peak
