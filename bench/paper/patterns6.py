# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 6 of the paper on communication patterns: a dispatcher on each machine."""

from paper import SIM, Verdict, canvas, patterns5

TITLE = "Communication patterns, figure 6: dispatchers"
CLAIM = ("A dispatcher for the requesters of a machine, with one connection, behaves as private "
         "connections do, but needs 40 requesters, not 16, to fill the link with responses of "
         "4 KiB. Requesters that use SEND stay as slow, so connections are not the reason.")
FABRICS = (SIM,)
SCENARIO = patterns5.SCENARIO
BY = {"private": "", "dispatchers": ", by dispatchers"}


def measure(source, on):
    return {who: patterns5.rates(source, by) for who, by in BY.items()}


def draw(figure, data):
    of_who = data["dispatchers"]
    for axes, (size, rates) in zip(canvas.panels(figure, len(of_who)), of_who.items()):
        canvas.lines(axes, rates, f"responses of {size} bytes", "requesters", "MB/s")


def judge(data):
    private, dispatched = (data[who][4096] for who in BY)
    most = list(private)[-1]
    furthest = max(abs(dispatched[most][name] / rate - 1)
                   for name, rate in private[most].items())
    full = patterns5.FULL * patterns5.LINK_MB
    needed = next(count for count, row in dispatched.items()
                  if min(patterns5.by_request(row, "Write")) > full)
    sends = patterns5.by_request(dispatched[most], "Send")
    return [
        Verdict("the same characteristics as private connections", furthest < 0.05,
                f"With {most} requesters they differ by {100 * furthest:.0f} % at most."),
        Verdict("40 requesters are needed to fill the link", needed == 40,
                f"{needed} are enough."),
        Verdict("by SEND it is as slow with few connections",
                max(sends) < full and furthest < 0.05,
                f"They have {min(sends):,} to {max(sends):,} MB/s."),
    ]
