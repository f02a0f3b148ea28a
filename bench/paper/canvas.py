# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How the figures look: lines over a number, and groups of bars."""

# Each colour is visible on both backgrounds, the light and the dark.
COLORS = ("#2f81c4", "#d1495b", "#3c8d40", "#e08e26", "#8a63c4", "#4a9aa5", "#a07f60",
          "#8a8a8a")


# Light and dark: all that is not a series takes its colour from here. The suffix of a
# file says which one it is.
def _theme(paper, ink, grid):
    return {"figure.facecolor": paper, "axes.facecolor": paper, "text.color": ink,
            "axes.labelcolor": ink, "axes.edgecolor": ink, "xtick.color": ink,
            "ytick.color": ink, "grid.color": grid, "svg.fonttype": "none",
            "svg.hashsalt": "rdmabox", "font.family": "sans-serif"}


THEMES = {"": _theme("#ffffff", "#222222", "#dddddd"),
          "-dark": _theme("#14161a", "#d8dade", "#3a3f47")}
# Sizes of a panel in inches; several stand side by side.
PANEL_WIDTH, PANEL_HEIGHT = 3.6, 3.0


def panels(figure, count):
    """`count` panels side by side."""
    figure.set_size_inches(PANEL_WIDTH * count, PANEL_HEIGHT)
    return [figure.add_subplot(1, count, i + 1) for i in range(count)]


def finish(axes, title, xlabel, ylabel, headroom=0.05):
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.set_ylim(0, axes.get_ylim()[1] * (1 + headroom))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def lines(axes, table, title, xlabel, ylabel):
    """table: {x: {series: y}}; x is a number, drawn at equal steps."""
    places = range(len(table))
    series = list(dict.fromkeys(name for row in table.values() for name in row))
    for color, name in zip(COLORS, series):
        axes.plot(places, [row.get(name) for row in table.values()], marker="o",
                  markersize=4, color=color, label=name)
    axes.set_xticks(list(places), [str(x) for x in table])
    if len(series) > 1:
        axes.legend(fontsize=7, frameon=False, ncol=2, loc="upper left")
    finish(axes, title, xlabel, ylabel, headroom=0.05 + 0.05 * len(series))


def bars(axes, table, title, ylabel):
    """table: {group: {series: height}}."""
    series = list(dict.fromkeys(name for row in table.values() for name in row))
    width = 0.85 / len(series)
    for i, (color, name) in enumerate(zip(COLORS, series)):
        axes.bar([place - 0.425 + (i + 0.5) * width for place in range(len(table))],
                 [row.get(name) or 0 for row in table.values()], width, color=color,
                 label=name)
    axes.set_xticks(range(len(table)), list(table))
    axes.legend(fontsize=7, frameon=False, ncol=2, loc="upper left")
    finish(axes, title, "", ylabel, headroom=0.3)
