# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The paper's figures: one module each, by the number that the paper gives it.

A module has TITLE, CLAIM (what the paper says, in a sentence), and

    FABRICS             where it is taken: NATIVE, LAB or both
    measure(source, on) what was measured there, as JSON
    draw(figure, data)  draws that into an empty matplotlib figure
    judge(data)         (whether the claim held, what was found), in a sentence

`source` (source.py) runs the programs of this folder. What a build cannot do
raises NotAvailable with the reason, which then stands in the figure's place.
"""

NATIVE = "native"
LAB = "lab"

FABRIC_TEXT = {
    NATIVE: "the soft fabric over TCP, natively, client and server on a CPU each",
    LAB: "Soft-RoCE in the lab, virtual clock (length of the instruction path, one CPU)",
}

NAMES = ("figure1", "figure2", "figure5b", "figure6", "table1", "figure7", "figure8",
         "figure9")


class NotAvailable(Exception):
    """Why a figure cannot be taken here."""
