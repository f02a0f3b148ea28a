# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The manual pages of section 3 and what else is made of the headers, see ../README.md."""
