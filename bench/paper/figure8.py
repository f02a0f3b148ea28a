# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 8: the load of figure 1 with a window, on a device that collapses."""

from paper import NATIVE, SIM, Verdict, canvas
from paper.source import by_unit, first_peak

TITLE = "Figure 8: with and without admission control"
CLAIM = ("With four queue pairs the peak is at 7 threads; a window on the bytes in flight keeps "
         "them stable and raises the peak of requests per second by 29.9 %.")
FABRICS = (NATIVE, SIM)
# Work requests without cost, and ns for each further one: the soft device itself has no
# knee, so one is modelled, and the page says so.
OVERLOAD = "4:3000"
PANELS = {"requests/s": "requests/s", "in flight": "in flight"}
# The sweep of the simulator for each line.
SWEEPS = {"off": "Four queue pairs, no window", "window": "A window of",
          "window, hybrid": "A window, merging", "hybrid": "Merging and chaining"}


def simulate(source):
    sweeps = {line: source.simulated("fig8", title) for line, title in SWEEPS.items()}
    return {unit: {int(threads): {line: rows[threads][column] for line, rows in sweeps.items()}
                   for threads in sweeps["off"]}
            for unit, column in (("requests/s", "requests/s"), ("in flight", "KiB posted"))}


def measure(source, on):
    if on == SIM:
        return simulate(source)
    source.require("auto", "--window auto")
    source.require("overload", "--overload")
    cases = source.question("threads", on, "--window", "off", "--window", "auto",
                            "--overload", OVERLOAD)
    return {unit: by_unit(cases, unit, "threads") for unit in PANELS}


def draw(figure, data):
    for axes, (unit, text) in zip(canvas.panels(figure, len(PANELS)), PANELS.items()):
        canvas.lines(axes, data[unit], text, "threads", unit)


def judge(data):
    rates, in_flight = data["requests/s"], data["in flight"]
    threads = list(rates)
    window = "auto" if "auto" in rates[threads[0]] else "window"
    peak = {line: first_peak({n: rates[n][line] for n in threads})
            for line in rates[threads[0]]}
    gain = {line: 100 * (rates[peak[line]][line] / rates[peak["off"]]["off"] - 1)
            for line in peak if line != "off"}
    last = threads[-1]
    most = max(in_flight[n][window] for n in threads)
    on_what = "" if window == "window" else (
        f" A soft device that was told to collapse (--overload {OVERLOAD}, a model of a NIC's "
        "knee).")
    return [
        Verdict("a window raises the peak", gain[window] > 3,
                f"{gain[window]:+.0f} % at the peak, {rates[last][window] / rates[last]['off']:.2f} "
                f"times the requests per second with {last} threads.{on_what}"),
        Verdict("merging and chaining add to it", gain.get("window, hybrid", 0) > gain[window] + 3,
                "; ".join(f"{line}: {percent:+.0f} %" for line, percent in gain.items()) + "."),
        Verdict("what is in flight becomes stable", in_flight[last][window] <= 1.05 * most
                and in_flight[last][window] < in_flight[last]["off"],
                f"With {last} threads {in_flight[last][window]:,.0f}, without a window "
                f"{in_flight[last]['off']:,.0f}."),
        Verdict("without a window the peak is at 7 threads", peak["off"] == 7,
                f"At {peak['off']}."),
    ]
