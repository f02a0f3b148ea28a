# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The papers' figures: one module each, by the number that the paper gives it.

A module has TITLE, CLAIM (what the paper says, in a sentence), and

    FABRICS             where it is taken: NATIVE, LAB, SIM
    measure(source, on) what was measured there, as JSON
    draw(figure, data)  draws that into an empty matplotlib figure
    judge(data)         a Verdict for each part of the claim

`source` (source.py) runs the programs of this folder. If a build cannot measure a
figure, it raises NotAvailable with the reason, which the page then shows instead.
"""

from typing import NamedTuple

NATIVE = "native"
LAB = "lab"
SIM = "sim"

FABRIC_TEXT = {
    NATIVE: "the soft fabric over TCP, natively, client and server on a CPU each",
    LAB: "Soft-RoCE in the lab, virtual clock (length of the instruction path, one CPU)",
    SIM: "a modelled NIC and modelled cores, the core itself (rdmabox sim; sim/scenarios)",
}

NAMES = ("figure1", "figure2", "figure5b", "figure6", "table1", "figure7", "figure8",
         "figure9", "patterns5", "patterns6")


class NotAvailable(Exception):
    """Why a figure cannot be taken here."""


class Verdict(NamedTuple):
    claim: str  # a part of the paper's, in words that fit before "held"
    held: bool
    found: str  # a sentence
