# SPDX-License-Identifier: BSD-3-Clause
"""Reads the public C headers, include/convoy/*.h, for the programs that make something from them: the description of
the ABI (check_abi.py), the pages of the API (make_api_pages.py).

The headers are regular C: enums, structures of plain members, opaque types, pointers to functions, numbers, and
functions that begin with CVY_API. A declaration that is not understood ends the program with an error.

A comment that begins with "/**" belongs to the declaration after it, and to those that follow without an empty line.
"""
import bisect
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT_OUT = {"convoy.h"}
FUNCTION_POINTER = "function_pointer"


class Api:
    """What the headers declare, in their order."""

    def __init__(self):
        self.declarations = []  # [Declaration], all that is public
        self.constants = []     # (name, value)
        self.opaque = []        # names
        self.structs = {}       # name: [Variable]
        self.functions = []     # (name, result Variable, [Variable]), without those that take a type of MPI


class Declaration:
    """kind: "function", "struct", "opaque", "enum", "callback" or "macro". text: as in the header, with its comments."""

    def __init__(self, kind, name, header, text, doc):
        self.kind, self.name, self.header, self.text, self.doc = kind, name, header, text, doc
        self.constants = []  # of an enum: names

    def prototype(self):
        """Without comments and macros, on one line."""
        return re.sub(r"CVY_API |CVY_MUST_CHECK |\s*CVY_PRINTF\(.*\)|;$", "", re.sub(r"\s+", " ", blanked(self.text).strip()))


class Variable:
    """A member, a parameter or a result: its base type, the number of stars, and the lengths of an array."""

    def __init__(self, text, name=None):
        text = text.strip()
        if name is None:
            match = re.fullmatch(r"(.*?)(\w+)\s*((?:\[[^\]]*\])*)", text, re.S)
            if not match:
                raise SystemExit(f"c_headers: not understood: {text}")
            text, name, lengths = match.group(1), match.group(2), re.findall(r"\[([^\]]*)\]", match.group(3))
        else:
            lengths = []
        self.name, self.lengths = name, lengths
        self.stars = text.count("*")
        self.is_const = "const" in text.split()
        self.base = " ".join(w for w in text.replace("*", " ").split() if w not in ("const", "volatile", "struct"))


def blanked(text):
    """The text with blanks in the place of comments, so that positions stay."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def headers(folder):
    """In the order in which they include each other."""
    done = []

    def visit(name):
        path = folder / "convoy" / name
        for other in re.findall(r"#include <convoy/(\w+\.h)>", path.read_text()):
            visit(other)
        if path not in done and name not in LEFT_OUT:
            done.append(path)

    for path in sorted((folder / "convoy").glob("*.h")):
        visit(path.name)
    return done


def split_members(body):
    """ "double a, b; const char *x, *y" -> Variables. """
    out = []
    for line in body.split(";"):
        if not line.strip():
            continue
        pointer = re.search(r"\(\*(\w+)\)", line)
        if pointer:
            out.append(Variable(FUNCTION_POINTER, pointer.group(1)))
            out[-1].prototype = without_names(line)
            continue
        first, *others = line.split(",")
        out.append(Variable(first))
        base = ("const " if out[-1].is_const else "") + out[-1].base + " "
        out.extend(Variable(base + other.strip()) for other in others)
    return out


def without_names(prototype):
    """ "int (*shape)(const cvy_shape *s)" -> "int (*)(const cvy_shape *)": what of a function belongs to the ABI. """
    head, arguments = re.fullmatch(r"\s*(.*?)\s*\(([^()]*)\)\s*", prototype, re.S).groups()
    if head.endswith(")"):  # of a pointer
        head = re.sub(r"\(\*\w+\)$", "(*)", head)
    else:
        head = re.sub(r"\s*\w+$", "", head)
    # Each parameter has a name, or ends with a star.
    kinds = [re.sub(r"([\w*]\s*)\b\w+\s*((?:\[[^\]]*\])?)$", r"\1\2", argument.strip()).strip() for argument in arguments.split(",")]
    return re.sub(r"\s+", " ", f"{head} ({', '.join(kinds)})").replace("(*) (", "(*)(").replace("* (", "*(")


def parse_enum(api, body, known):
    names, value = [], -1
    for item in filter(None, (i.strip() for i in body.split(","))):
        name, _, given = (p.strip() for p in item.partition("="))
        value = eval(given, {}, known) if given else value + 1  # numbers, shifts and earlier constants of our own headers
        known[name] = value
        api.constants.append((name, value))
        names.append(name)
    return names


def parse_function(api, function):
    head, arguments = re.fullmatch(r"(.*?)\((.*)\)\s*(?:CVY_PRINTF\(.*\))?", function.replace("CVY_MUST_CHECK", ""), re.S).groups()
    words = re.fullmatch(r"(.*?)(\w+)\s*", head, re.S)
    name = words.group(2)
    # Left out: what a library of operators exports, not what convoy has; and a type of the MPI library in C, because the
    # function for Fortran's handles does the same.
    if name.startswith("cvy_") and "MPI_Comm" not in arguments:
        params = [] if arguments.strip() == "void" else [Variable(a) for a in arguments.split(",")]
        api.functions.append((name, Variable(words.group(1), "result"), params))
    return name


PUBLIC = re.compile(r"typedef enum \w+ \{(?P<enum>.*?)\}\s*(?P<enum_name>\w+);|enum \{(?P<plain>.*?)\};|"
                    r"typedef struct (?P<struct>\w+) \{(?P<members>.*?)\}\s*\w+;|typedef struct (?P<opaque>\w+) \w+;|"
                    r"typedef [^;(]*\(\*(?P<callback>\w+)\)\([^;]*\);|CVY_API (?P<function>[^;]*);", re.S)


def parse(api, path, known):
    """Adds what one header declares."""
    original = path.read_text()
    text = blanked(original)
    comments = [(m.end(), m.group()) for m in re.finditer(r"/\*\*(?!/).*?\*/", original, re.S)]
    found = []  # (position, Declaration)

    def declare(kind, name, match):
        at = bisect.bisect(comments, (match.start(), "")) - 1
        doc = ""
        if at >= 0 and not re.search(r"\n[ \t]*\n", original[comments[at][0]:match.start()]):
            doc = comments[at][1]
        found.append((match.start(), Declaration(kind, name, path.name, original[match.start():match.end()], lines_of(doc))))
        return found[-1][1]

    for match in re.finditer(r"^#define (CVY_\w+)(?:.*\\\n)*.*$", text, re.M):
        number = re.fullmatch(r"#define CVY_\w+ \(?(-?\d+)\)?\s*", match.group())
        if number:
            known[match.group(1)] = int(number.group(1))
            api.constants.append((match.group(1), int(number.group(1))))
        declare("macro", match.group(1), match)
    found = [f for f in found if f[1].doc]  # CVY_API and the like
    text = re.sub(r"^\s*#(.*\\\n)*.*$|^CVY_\w+_STRUCT\(\w+\)$|^CVY_(BEGIN|END)_DECLS$", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.M)
    for match in PUBLIC.finditer(text):
        part = match.groupdict()
        if part["enum"] is not None or part["plain"] is not None:
            names = parse_enum(api, part["enum"] or part["plain"], known)
            declare("enum", part["enum_name"] or names[0], match).constants = names
        elif part["struct"]:
            api.structs[part["struct"]] = split_members(part["members"])
            declare("struct", part["struct"], match)
        elif part["opaque"]:
            api.opaque.append(part["opaque"])
            declare("opaque", part["opaque"], match)
        elif part["callback"]:
            declare("callback", part["callback"], match)
        else:
            declare("function", parse_function(api, part["function"]), match)
    left = re.sub(r"static inline [^{]*\{.*?\n\}|[{}\s]", "", PUBLIC.sub("", text), flags=re.S)
    if left:
        raise SystemExit(f"c_headers: {path.name}: not understood: {left[:200]}")
    api.declarations.extend(d for _, d in sorted(found, key=lambda f: f[0]))


def lines_of(comment):
    """The lines of a comment without its stars, and without empty ones at its ends."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in re.sub(r"^/\*\*? ?|\s*\*/$", "", comment).split("\n")]
    return "\n".join(lines).strip("\n").split("\n") if comment else []


def parse_all(folder=ROOT / "include"):
    api, known = Api(), {}
    for path in headers(folder):
        parse(api, path, known)
    return api
