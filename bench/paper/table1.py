# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Table I: how many work requests the ways of batching make."""

from functools import partial

from paper import Verdict, batching, canvas

TITLE = "Table I: work requests to the device"
CLAIM = ("Merging and hybrid make fewer work requests of the same load than single; doorbell "
         "batching makes as many as single.")
FABRICS = batching.FABRICS
UNIT = "work requests"
EQUAL_PERCENT = 0.1

measure = partial(batching.measure, unit=UNIT)


def draw(figure, data):
    (axes,) = canvas.panels(figure, 1)
    names = list(next(iter(data.values())))
    figure.set_size_inches(1.1 * (len(names) + 1), 0.35 * (len(data) + 3))
    axes.axis("off")
    axes.set_title("work requests in a million requests", fontsize=10)
    table = axes.table(
        cellText=[[f"{row[name]:,.0f}" for name in names] for row in data.values()],
        rowLabels=list(data), colLabels=[name.replace(" ", "\n") for name in names],
        loc="center")
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    table.scale(1, 1.6)


def judge(data):
    fewer = {(workload, mode): 100 * (1 - row[mode + " dynMR"] / row["single dynMR"])
             for workload, row in data.items() for mode in ("merge", "hybrid", "doorbell")}

    def verdict(claim, modes, is_so):
        percents = {key: percent for key, percent in fewer.items() if key[1] in modes}
        return Verdict(claim, all(map(is_so, percents.values())), ", ".join(
            f"{workload}: {mode} {percent:.2g} % fewer than single"
            for (workload, mode), percent in percents.items()) + ".")

    return [verdict("merging and hybrid make fewer", ("merge", "hybrid"),
                    lambda percent: percent >= EQUAL_PERCENT),
            verdict("doorbell makes as many", ("doorbell",),
                    lambda percent: abs(percent) < EQUAL_PERCENT)]
