# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""page.py - a manual page, made of its template and the headers.

A template is mdoc with prose by hand. Lines that begin with "@" are replaced:

    @calls NAME...         the functions of the page, in order; may be said again
    @names                 .Nm of each, for NAME
    @synopsis              their headers and declarations
    @descriptions          what their comments say, a subsection each
    @fields struct NAME    the fields of a struct, or the values of an enum
    @table NAME            the rows of a table such as RBX_STATS
    @returns               what they return, for RETURN VALUES
    @errors                their errors by code, for ERRORS
"""

from . import form, mdoc


def calls_of(template):
    """The names that a template lists."""
    return [name for line in template.split("\n") if line.startswith("@calls ")
            for name in line.split()[1:]]


def joined(macros):
    """".Fn a", ".Fn b", ".Fn c" as they stand in a sentence."""
    if len(macros) < 2:
        return list(macros)
    return [f"{one} ," for one in macros[:-2]] + [macros[-2], "and", macros[-1]]


class Api:
    """All headers, and what is found in them by name."""

    def __init__(self, headers):
        self.headers = headers
        self.functions = {f.name: f for header in headers for f in header.functions}
        self.structs = {name: fields for header in headers
                        for name, fields in header.structs.items()}
        self.tables = {name: rows for header in headers
                       for name, rows in header.tables.items()}
        self.strings = {name: text for header in headers
                        for name, text in header.strings.items()}

    def errors(self, name, seen=()):
        """(code, words) of a function, those of others that it names included; a code
        stands once."""
        comment = self.functions[name].comment
        texts = {}
        for code, words in comment.errors:
            texts.setdefault(code, []).append(words)
        for other in comment.errors_as:
            if other in seen or other not in self.functions:
                raise form.Fault(comment.line, f"{name}: errors as {other}()?")
            for code, words in self.errors(other, (*seen, name)):
                if words not in texts.setdefault(code, []):
                    texts[code].append(words)
        return [(code, "; or ".join(words)) for code, words in texts.items()]


class Page:
    """One page while it is made."""

    def __init__(self, api, template):
        self.api = api
        self.template = template
        self.names = calls_of(template)
        missing = [name for name in self.names if name not in api.functions]
        if missing:
            raise form.Fault(1, f"@calls names {', '.join(missing)}, in no header")
        self.functions = [api.functions[name] for name in self.names]

    def text(self):
        """The page in mdoc."""
        lines = []
        for at, line in enumerate(self.template.split("\n"), 1):
            if not line.startswith("@"):
                lines.append(line)
                continue
            word, *rest = line[1:].split(" ", 1)
            maker = getattr(self, f"_{word}", None)
            if maker is None:
                raise form.Fault(at, f"@{word} is no line of a template")
            try:
                lines += maker(*rest)
            except KeyError as error:
                raise form.Fault(at, f"{error} is in no header") from error
        return "\n".join(lines)

    def _calls(self, _names):
        return []

    def _names(self):
        return [f".Nm {name} ," for name in self.names[:-1]] + [f".Nm {self.names[-1]}"]

    def _synopsis(self):
        lines, header = [], None
        for function in self.functions:
            if function.header != header:
                header = function.header
                lines.append(f".In {header}")
            lines += mdoc.synopsis(function)
        return lines

    def _descriptions(self):
        lines, done = [], set()
        for function in self.functions:
            comment = function.comment
            if id(comment) not in done:
                done.add(id(comment))
                lines += self._description(comment)
        return lines

    def _description(self, comment):
        names = [f"{name}()" for name in comment.names]
        lines = [f".Ss {', '.join(names)}"]
        lines += joined([f".Fn {name}" for name in comment.names])
        lines += mdoc.text_lines(comment.brief, self.names)
        if comment.params:
            lines.append(".Bl -tag -width Ds")
            for name, words in comment.params:
                lines.append(f".It Fa {name}")
                lines += mdoc.text_lines(words, self.names)
            lines.append(".El")
        prose = mdoc.block_lines(comment.blocks, self.names)
        lines += ([".Pp"] if prose else []) + prose
        for title in ("Context", "Lifetime", "Paper"):
            words = getattr(comment, title.lower())
            if words:
                lines += [".Pp", f".Em {title} :"]
                lines += mdoc.text_lines(words, self.names)
        return lines

    def _fields(self, name):
        lines = [".Bl -tag -width Ds"]
        for each in self.api.structs[name]:
            lines.append(f".It {self._term(name, each)}")
            lines += mdoc.block_lines(each.blocks, self.names)
            if each.default:
                lines += mdoc.text_lines(f"Default: {each.default}.", self.names)
        return lines + [".El"]

    @staticmethod
    def _term(name, each):
        if name.startswith("enum"):
            return f"Dv {each.name}"
        if "(*" in each.declaration:
            return f"Vt {mdoc.quote(each.declaration)}"
        return f"Va {each.name}"

    def _table(self, name):
        lines = [".Bl -tag -width Ds -compact"]
        for row, words in self.api.tables[name]:
            lines.append(f".It Va {row}")
            lines += mdoc.text_lines(words, self.names)
        return lines + [".El"]

    def _returns(self):
        groups = {}
        for function in self.functions:
            comment = function.comment
            if comment.returns:
                words = comment.returns
                if comment.errors or comment.errors_as:
                    words += ", or a negative error number"
                groups.setdefault(words, []).append(function.name)
        lines = []
        for words, names in groups.items():
            lines += [".Pp"] if lines else []
            lines += joined([f".Fn {name}" for name in names])
            lines.append("returns" if len(names) == 1 else "return")
            lines += mdoc.text_lines(words + ".", self.names)
        return lines

    def _errors(self):
        codes = {}
        for function in self.functions:
            for code, words in self.api.errors(function.name):
                texts = codes.setdefault(code, {})
                texts.setdefault(words, []).append(function.name)
        lines = [".Bl -tag -width Er"]
        for code, texts in codes.items():
            lines.append(f".It Bq Fl Ns Er {code[1:]}")
            for at, (words, names) in enumerate(texts.items()):
                lines += [".Pp"] if at else []
                names = joined([f".Fn {name}" for name in names])
                lines += names[:-1] + [names[-1] + " :"]
                lines += mdoc.text_lines(words + ".", self.names)
        return lines + [".El"]
