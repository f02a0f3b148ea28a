#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes C of status.html: its bytes, and the policy that lets a browser run them alone.

The page has one <style> and one <script>. Their hashes stand in the policy, so nothing
else on the page is ever run or applied, whatever gets into it.

usage: embed.py status.html status_page.c
"""
import base64
import hashlib
import re
import sys


def hash_of(page, element):
    found = re.findall(rb"<%s>(.*?)</%s>" % (element, element), page, re.S)
    if len(found) != 1:
        sys.exit("embed.py: not one <%s>" % element.decode())
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(found[0]).digest()).decode()


def main():
    with open(sys.argv[1], "rb") as file:
        page = file.read()
    policy = "; ".join([
        "default-src 'none'",
        "script-src " + hash_of(page, b"script"),
        "style-src " + hash_of(page, b"style"),
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ])
    rows = [", ".join(map(str, page[at:at + 20])) for at in range(0, len(page), 20)]
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write("/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n"
                  "/* Made of status.html by embed.py. */\n"
                  '#include "cli/serve/status.h"\n\n'
                  "const size_t status_page_bytes = %d;\n"
                  'const char status_page_policy[] = "%s";\n'
                  "const char status_page[] = {\n\t%s\n};\n"
                  % (len(page), policy, ",\n\t".join(rows)))


main()
