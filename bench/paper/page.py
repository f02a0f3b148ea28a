# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The page: each figure beside what the paper claims, one static HTML file."""

import html

from paper import FABRIC_TEXT

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em;
       color: #222; }
h2 { border-top: 1px solid #ccc; padding-top: 1em; }
img { max-width: 100%; }
blockquote { margin: .5em 0; padding-left: 1em; border-left: 4px solid #1b6ca8; }
.held { color: #2a7a2e; } .not-held { color: #b3261e; } .missing { color: #777; }
code { background: #f2f2f2; padding: .1em .3em; }
@media (prefers-color-scheme: dark) {
  body { background: #14161a; color: #d8dade; } h2 { border-color: #3a3f47; }
  code { background: #23262c; } a { color: #7db4e6; }
  .held { color: #74c279; } .not-held { color: #f08a80; } .missing { color: #999; }
}
"""

HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>RDMAbox: the papers' figures</title>
<style>{style}</style></head><body>
<h1>The papers' figures, measured here</h1>
<p>RDMAbox {version}, {date}, {runs}. No RDMA NIC was used: each figure says on which
fabric it was measured, and a claim that held there is not thereby shown to hold on a NIC. The
modelled NIC has its parameters, with those that are assumed, in sim/nic/generations. Numbers
of different fabrics cannot be compared. To make all of it, with the numbers as JSON:
<code>{command}</code>
</p>
"""


def verdict_text(verdict):
    css, word = ("held", "held") if verdict.held else ("not-held", "did not hold")
    return (f'<li>{html.escape(verdict.claim)}: <strong class="{css}">{word}.</strong> '
            f'{html.escape(verdict.found)}</li>\n')


def taken(shot):
    """One fabric of a figure."""
    text = FABRIC_TEXT[shot["fabric"]]
    if "reason" in shot:
        return f'<p class="missing">On {text}: not taken. {html.escape(shot["reason"])}</p>\n'
    return (f'<p>On {text}:</p>\n'
            f'<ul>\n{"".join(map(verdict_text, shot["verdicts"]))}</ul>\n'
            f'<picture><source media="(prefers-color-scheme: dark)" '
            f'srcset="{shot["image"]}-dark.svg"><img src="{shot["image"]}.svg" '
            f'alt="the figure on {html.escape(text, quote=True)}"></picture>\n'
            f'<p><a href="{shot["data"]}">the numbers</a></p>\n')


def write(path, about, figures):
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD.format(style=STYLE, **{key: html.escape(value)
                                               for key, value in about.items()}))
        for figure in figures:
            file.write(f'<h2 id="{figure["name"]}">{html.escape(figure["title"])}</h2>\n'
                       f'<blockquote>The paper: {html.escape(figure["claim"])}</blockquote>\n')
            file.writelines(taken(shot) for shot in figure["shots"])
        file.write("</body></html>\n")
