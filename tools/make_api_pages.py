#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_api_pages.py FOLDER: writes the reference of the API as static HTML, from the headers in include/convoy/ and the
sources of the bindings for C++, Fortran and Python.

index.html, a page for each header, cpp.html, fortran.html, python.html, and symbols.html, the index of all names. What has
no description, and a name in a description that nothing declares, is a warning on standard error.
"""
import html
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import api_sources
from c_headers import ROOT, headers, parse_all

CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; max-width: 62rem; margin: 0 auto; padding: 0 1.5rem 4rem }
nav { border-bottom: 1px solid #ccc; padding: .8rem 0; margin-bottom: 1rem }
nav a { margin-right: 1.2rem }
a { color: #0b5394; text-decoration: none }
a:hover { text-decoration: underline }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ddd }
section { margin-top: 2.2rem; border-top: 1px solid #e5e5e5 }
section h3 { margin: .8rem 0 .4rem; font-size: 1.05rem }
section.member { margin-left: 1.5rem }
.kind { color: #777; font-weight: normal; font-size: .85rem; margin-left: .6rem }
pre { background: #f5f6f8; padding: .6rem .8rem; overflow-x: auto; font-size: .8rem; line-height: 1.45 }
pre .comment { color: #68727d }
code { font-size: .9em; background: #f5f6f8 }
dl { margin: .5rem 0 }
dt { font-family: monospace; font-size: .92em }
dd { margin: 0 0 .3rem 1.6rem }
table { border-collapse: collapse }
td { padding: .12rem 1.2rem .12rem 0; vertical-align: top }
td:first-child { white-space: nowrap }
ul.names { columns: 3 18rem; list-style: none; padding: 0; font-size: .9rem }
.others { font-size: .92rem; background: #fbfaf3; border-left: 3px solid #d9d2a8; padding: .2rem .8rem }
"""
KINDS = {"function": "function", "struct": "structure", "opaque": "opaque type", "enum": "constants", "callback": "type of a function", "macro": "macro"}


class Pages:
    def __init__(self, api):
        self.api = api
        self.places = {}   # what a name of C is linked to
        self.index = []    # (name, language, place)
        self.others = {}   # name of a C function: [(language, text, place)]
        self.warnings = []
        self.functions = {d.name for d in api.declarations if d.kind == "function"}
        for d in api.declarations:
            place = f"{page_of(d.header)}#{d.name}"
            self.places[d.name] = place
            self.places.update(dict.fromkeys(d.constants, place))
            self.index += [(name, "C", place) for name in dict.fromkeys([d.name, *d.constants])]
        self.places.update({f"{name}_default": self.places[name] for name in api.structs})
        self.places.update({f"convoy/{path.name}": page_of(path.name) for path in headers(ROOT / "include")})
        self.summaries = {d.name: summary(d) for d in api.declarations}

    def warn(self, text):
        self.warnings.append(text)

    # ---- text ----

    def linked(self, text, here=""):
        """Escaped text in which names of the API are links. here: the name that is described, which is none."""
        def link(match):
            word = match.group()
            place = self.places.get(word)
            if word == here or not place:
                if not place and re.match(r"cvy_\w*[a-z0-9]$", word) and not match.string[match.end():].startswith("*"):
                    self.warn(f"the description of {here or '?'} names {word}, which is not declared")
                return word
            return f'<a href="{place}">{word}</a>'
        return re.sub(r"\bconvoy/\w+\.h\b|\b(?:cvy|CVY)_\w+", link, html.escape(text, quote=False))

    def marked(self, text, here):
        """With `code` and @arguments."""
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", self.linked(text, here))
        text = re.sub(r"@(\w+)", r"<var>\1</var>", text)
        return re.sub(r"(?<!\")\b(Collective(?: and errors)?|Errors):", r"<b>\1:</b>", text)

    def prose(self, lines, here):
        """Paragraphs, "- lists", "@name: descriptions", and examples, which are indented by four columns."""
        out, block, kind = [], [], None

        def flush():
            nonlocal block, kind
            text = " ".join(line.strip() for line in block)
            if kind == "example":
                out.append("<pre>" + self.linked("\n".join(line[4:] for line in block).rstrip(), here) + "</pre>")
            elif kind == "item":
                out.append(f"<ul><li>{self.marked(text[2:], here)}</li></ul>")
            elif kind == "argument":
                names, _, about = text.partition(":")
                out.append(f"<dl><dt>{names.replace('@', '')}</dt><dd>{self.marked(about.strip(), here)}</dd></dl>")
            elif block:
                for part in re.split(r" (?=(?:Collective(?: and errors)?|Errors):)", text):
                    out.append(f"<p>{self.marked(part, here)}</p>")
            block, kind = [], None

        for line in [*lines, ""]:
            if kind == "example" and (line.startswith("    ") or not line.strip()):
                block.append(line)
            elif not line.strip():
                flush()
            elif kind is None and line.startswith("    "):
                block, kind = [line], "example"
            elif re.match(r"@[\w, @]+:", line) or line.startswith("- "):
                flush()
                block, kind = [line], "argument" if line[0] == "@" else "item"
            else:
                if kind == "example":
                    flush()
                block.append(line)
                kind = kind or "text"
        flush()
        return "\n".join(out).replace("</ul>\n<ul>", "\n").replace("</dl>\n<dl>", "\n")

    def source(self, text, here):
        """C, with comments in another colour."""
        parts = re.split(r"(/\*.*?\*/)", text, flags=re.S)
        return "<pre>" + "".join(f'<span class="comment">{self.linked(p, here)}</span>' if p.startswith("/*") else self.linked(p, here) for p in parts) + "</pre>"

    # ---- pages ----

    def declaration(self, d):
        """The section of a declaration of C."""
        doc = d.doc
        if doc and re.match(r"[\w, ()]+ - ", doc[0]):
            doc = [summary(d) + ".", *doc[1:]]
        if not doc:
            self.warn(f"{d.header}: {d.name} has no comment")
        out = [f'<section id="{d.name}"><h3>{d.name}{"()" if d.kind == "function" else ""}<span class="kind">{KINDS[d.kind]}</span></h3>']
        out.append(self.source(wrapped(d.prototype()) + ";" if d.kind == "function" else d.text, d.name))
        out.append(self.prose(doc, d.name))
        if self.others.get(d.name):
            seen = dict.fromkeys(f'{language}: <a href="{place}"><code>{html.escape(text)}</code></a>' for language, text, place in self.others[d.name])
            out.append(f'<p class="others">{" &nbsp; ".join(seen)}</p>')
        return "\n".join([*out, "</section>"])

    def header(self, path):
        declared = [d for d in self.api.declarations if d.header == path.name]
        about = head_of(path)
        out = [f"<h1>convoy/{path.name}</h1>", self.prose(about, f"convoy/{path.name}")]
        out.append("<table>" + "\n".join(
            f'<tr><td><a href="#{d.name}">{d.name}</a></td><td>{self.marked(self.summaries[d.name], d.name)}</td></tr>' for d in declared) + "</table>")
        return "\n".join(out + [self.declaration(d) for d in declared])

    def entries(self, entries, language, page, prefix):
        """The sections of another language; it also notes which functions of C they stand for."""
        out = []
        for e in entries:
            name = f"{prefix}{e.full}"
            place = f"{page}#{name}"
            calls = [call for call in e.calls if call in self.functions]
            shown = name.replace(".", "%") if language == "Fortran" else name.replace(".", "::") if language == "C++" else name
            self.index.append((shown, language, place))
            for call in calls:
                self.others.setdefault(call, []).append((language, shown, place))
            doc = e.doc.split("\n") if e.doc else []
            if not doc and calls:
                doc = ["; ".join(self.summaries[call] for call in calls) + "."]
            if not doc and e.kind not in ("field",) and not (language == "C++" and e.name == e.owner):
                self.warn(f"{language}: {name} has no description")
            body = [f'<section id="{name}"{" class=member" if e.owner else ""}><h3>{shown}<span class="kind">{e.kind}</span></h3>']
            if e.signatures:
                body.append("<pre>" + "\n".join(self.linked(s, name) for s in e.signatures) + "</pre>")
            body.append(self.prose(doc, name))
            if calls:
                body.append(f'<p class="others">C: {", ".join(self.linked(call) + "()" for call in calls)}</p>')
            out.append("\n".join([*body, "</section>"]))
        return "\n".join(out)

    def page(self, title, body):
        nav = " ".join(f'<a href="{place}">{text}</a>' for place, text in (
            ("index.html", "Headers"), ("symbols.html", "All names"), ("cpp.html", "C++"), ("fortran.html", "Fortran"), ("python.html", "Python")))
        return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                f'<title>{html.escape(title)}</title><link rel="stylesheet" href="style.css"></head>\n<body><nav>{nav}</nav>\n{body}\n</body></html>\n')

    def symbols(self):
        def key(name):  # without "cvy_", "convoy::" and the like
            return re.sub(r"^(cvy|convoy)\W*_*", "", name.lower()) or name

        out, letter = ["<h1>All names</h1>"], None
        for name, language, place in sorted(self.index, key=lambda row: (key(row[0]), row[1])):
            if key(name)[0].upper() != letter:
                out.append("</ul>" if letter else "")
                letter = key(name)[0].upper()
                out.append(f'<h2 id="{letter}">{letter}</h2><ul class="names">')
            out.append(f'<li><a href="{place}">{name}</a><span class="kind">{language}</span></li>')
        return "\n".join([*out, "</ul>"])

    def start(self, version):
        out = [f"<h1>The API of convoy {version}</h1>",
               "<p>Made from the comments of the sources. <code>convoy/convoy.h</code> includes all headers except <code>convoy/mpi.h</code>. Each function of C has its counterparts in C++, Fortran and Python below its "
               "description. In Fortran, the module <code>convoy_c</code> has all functions and structures of C under their own names, and so has "
               "<code>convoy._library.library</code> in Python.</p>",
               '<h2>C</h2><table>']
        for path in headers(ROOT / "include"):
            about = head_of(path)
            first = re.split(r"(?<=[^.])\.(?: |$)", " ".join(about[:next((i for i, line in enumerate(about) if not line), len(about))]))[0]
            out.append(f'<tr><td><a href="{page_of(path.name)}">convoy/{path.name}</a></td><td>{self.marked(first, "")}</td></tr>')
        out.append('</table><h2>Other languages</h2><table>'
                   '<tr><td><a href="cpp.html">convoy/convoy.hpp</a></td><td>C++17: objects and exceptions</td></tr>'
                   '<tr><td><a href="fortran.html">module convoy</a></td><td>Fortran 2018: types with procedures, arrays of any rank and kind</td></tr>'
                   '<tr><td><a href="python.html">package convoy</a></td><td>Python: numpy arrays, and PyTorch and Keras models on MPI ranks</td></tr></table>')
        return "\n".join(out)


def page_of(header):
    return header.replace(".", "_") + ".html"


def head_of(path):
    """The comment at the head of a header, without its name and licence."""
    comment = re.match(r"/\*(.*?)\*/", path.read_text(), re.S).group(1)
    lines = [re.sub(r"^ ?\* ?", "", line) for line in comment.split("\n")]
    text = "\n".join(line for line in lines if "SPDX-License-Identifier" not in line).strip()
    return capital(re.sub(r"^convoy/\w+\.h: ", "", text)).split("\n")


def capital(text):
    return text if text.startswith("convoy") else text[:1].upper() + text[1:]


def summary(d):
    """The first sentence of a description, without its full stop."""
    if not d.doc:
        return ""
    text = " ".join(d.doc[:next((i for i, line in enumerate(d.doc) if not line or line.startswith("@")), len(d.doc))])
    text = re.sub(r"^[\w, ()]+ - ", "", text) if re.match(r"[\w, ()]+ - ", d.doc[0]) else text
    text = re.split(r"(?<=[^.])\.(?: |$)", text)[0]
    return capital(text)


def wrapped(prototype):
    """A prototype that is long has a line for each parameter."""
    if len(prototype) <= 100:
        return prototype
    head, arguments = prototype.split("(", 1)
    return head + "(\n    " + arguments.replace(", ", ",\n    ")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_api_pages.py FOLDER")
    out = pathlib.Path(sys.argv[1])
    pages = Pages(parse_all())
    known = dict(pages.api.constants)
    version = ".".join(str(known[f"CVY_VERSION_{part}"]) for part in ("MAJOR", "MINOR", "PATCH"))
    files = {}
    about, entries = api_sources.cpp()
    files["cpp.html"] = ("C++", "<h1>C++: convoy/convoy.hpp</h1>" + pages.prose(capital(about).split("\n"), "") + pages.entries(entries, "C++", "cpp.html", "convoy."))
    about, entries = api_sources.fortran()
    files["fortran.html"] = ("Fortran", "<h1>Fortran: module convoy</h1>" + pages.prose(capital(about).split("\n"), "") + pages.entries(entries, "Fortran", "fortran.html", ""))
    body = "<h1>Python: package convoy</h1>"
    for module, about, entries in api_sources.python():
        body += f"<h2>{module}</h2>" + pages.prose(capital(about).split("\n"), "") + pages.entries(entries, "Python", "python.html", module + ".")
    files["python.html"] = ("Python", body)
    for path in headers(ROOT / "include"):
        files[page_of(path.name)] = (f"convoy/{path.name}", pages.header(path))
    files["index.html"] = ("API", pages.start(version))
    files["symbols.html"] = ("All names", pages.symbols())
    out.mkdir(parents=True, exist_ok=True)
    for name, (title, body) in files.items():
        (out / name).write_text(pages.page(f"{title} - convoy {version}", body))
    (out / "style.css").write_text(CSS.lstrip())
    for text in sorted(set(pages.warnings)):
        print(f"make_api_pages: {text}", file=sys.stderr)
    sys.exit(1 if pages.warnings else 0)


main()
