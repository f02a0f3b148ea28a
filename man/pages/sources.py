# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""sources.py - the errors that the code of a public function names, against its comment.

It looks into the function itself and not into what that calls: less than the truth, but
enough to notice a function that gained an error which its comment does not know. The
checks of lib/guard.h count as what they return.
"""

import re

CODE = re.compile(r"(?<!== )(?<!!= )-(E[A-Z]{2,})\b")
GUARDS = {
    "rbx_guard_use(": ["-EINVAL"],
    "rbx_guard_thread(": ["-EDEADLK"],
    "rbx_guard_wait(": ["-EINVAL", "-EDEADLK"],
}
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def bodies(text, names):
    """(name, line, body) of the functions among these that a source defines."""
    for match in re.finditer(r"^(?!static|#)[^\n(]*?\b(rbx_\w+)\([^;{]*?\)\n\{\n(.*?)^\}",
                             text, re.S | re.M):
        if match.group(1) in names:
            yield match.group(1), text.count("\n", 0, match.start()) + 1, match.group(2)


def codes_of(body):
    """The errors that a function names, once each."""
    body = COMMENT.sub("", body)
    codes = ["-" + code for code in CODE.findall(body)]
    for guard, of_guard in GUARDS.items():
        codes += of_guard if guard in body else []
    return list(dict.fromkeys(codes))


def source_faults(api, paths):
    """Errors in the code that stand in no comment."""
    checked = {f.name: f for f in api.functions.values() if f.comment and f.returns == "int"}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, line, body in bodies(text, checked):
            listed = [code for code, _ in api.errors(name)]
            for code in codes_of(body):
                if code not in listed:
                    yield f"{path}:{line}: {name} may return {code}, and its comment does not say so"
