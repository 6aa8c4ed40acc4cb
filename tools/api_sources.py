# SPDX-License-Identifier: BSD-3-Clause
"""Reads what convoy offers in Fortran, C++ and Python from its sources, for make_api_pages.py: entries with their comment
and with the functions of the C API that they call, by which entries of several languages belong together.

The sources are read as they are laid out here (one declaration a line in the types of Fortran, clang-format in C++);
nothing is imported or compiled. What an entry calls through private helpers counts as its own call.
"""
import ast
import re
import subprocess
import textwrap

from c_headers import ROOT

# Called everywhere, and nobody's counterpart.
UTILITIES = {"cvy_error_text", "cvy_text_release", "cvy_dtype_parse", "cvy_dtype_text"}
# What the C API calls what has another name in a language.
WORDS = {"__init__": "create open", "__call__": "apply", "__getitem__": "get", "__setitem__": "set", "__len__": "held", "close": "destroy"}


class Entry:
    """A name with its signatures. owner: the type or class that it belongs to, or ""."""

    def __init__(self, owner, name, kind, signatures, doc, calls=()):
        self.owner, self.name, self.kind, self.signatures, self.doc = owner, name, kind, signatures, doc
        self.calls = self.counterparts(set(calls) - UTILITIES)

    @property
    def full(self):
        return f"{self.owner}.{self.name}" if self.owner else self.name

    def counterparts(self, calls):
        """Of several calls, those whose names have most words of this entry's name."""
        words = set(WORDS.get(self.name, self.name.replace("_", " ")).split())
        common = {call: len(words & set(call.split("_"))) for call in calls}
        return sorted(call for call in calls if common[call] == max(common.values()))


def calls_of(text):
    return set(re.findall(r"\b(cvy_[a-z0-9_]+)\s*\(", text)) - {"cvy_shape"}


# ---- Fortran ----

def joined(text):
    """Continued lines as one."""
    return re.sub(r"&[ \t]*\n[ \t]*&?", "", text)


def fortran_procedures(text):
    """{name: (head, names of its arguments, their declarations, comment, body)} of the procedures of a module."""
    out, comment, name, body = {}, [], "", []
    for line in joined(text[text.index("\ncontains\n"):]).splitlines():
        begin = re.match(r"  (?:[\w(), ]+ )?(?:subroutine|function) (\w+)\((.*?)\)", line)
        if name and re.match(rf"  end (subroutine|function) {name}$", line):
            declared = [other.strip() for other in body if re.match(r"    \w[^!':]*::", other)]
            of_dummies = [other for other in declared if set(declared_names(other)) & set(dummies)]
            out[name] = (head, dummies, of_dummies, comment_text("\n".join(comment)), "\n".join(body))
            name, comment = "", []
        elif name:
            body.append(line)
        elif begin:
            name, head, body = begin.group(1), line, []
            dummies = begin.group(2).replace(" ", "").split(",")
        else:
            comment = [*comment, line] if re.match(r"  !", line) else []
    return out


def declared_names(line):
    return re.findall(r"\w+", re.sub(r"\([^)]*\)", "", line.split("::")[1]))


def comment_text(lines):
    lines = [re.sub(r"^\s*! ?", "", line) for line in lines.splitlines()]
    return "\n".join(line for line in lines if not line.startswith("---")).strip()


def fortran_call(owner, name, procedure):
    """["call program%step(task, [learning_rate], [stat], [errmsg])", then its arguments]."""
    head, dummies, declared, _, body = procedure
    optional = set()
    for line in declared:
        if "optional" in line.split("::")[0]:
            optional.update(declared_names(line))
    shown = [f"[{d}]" if d in optional else d for d in dummies if d and d != "self"]
    call = f"{owner.replace('convoy_', '')}%{name}" if owner else name
    is_function = re.search(r"\bfunction\b", head)
    result = ""
    if is_function:
        kind = head.split("function")[0].strip() or next(
            (line.split("::")[0].strip() for line in body.splitlines() if re.search(r":: out\b", line)), "")
        result = f"    ! {kind.replace(', allocatable', '')}" if kind else ""
        if re.search(r":: out\(:\)", body):
            result += " array"
    statement = ("" if is_function else "call ") + f"{call}({', '.join(shown)}){result}"
    lines = textwrap.wrap(statement, 100, subsequent_indent="        ", break_on_hyphens=False) if len(statement) > 100 else [statement]
    return lines + ["    " + line for line in declared if not re.search(r":: *(self|stat|errmsg)$", line)]


def fortran():
    """(comment of the module, [Entry]); an entry of kind "type" comes before those of its procedures."""
    text = subprocess.run(["awk", "-f", ROOT / "tools/make_fortran.awk", ROOT / "fortran/convoy.f90.in"], check=True, stdout=subprocess.PIPE,
                          encoding="utf-8").stdout
    procedures, out = fortran_procedures(text), []

    def calls(name, seen):
        body = procedures[name][4]
        found = calls_of(body)
        for other in set(re.findall(r"\w+", body)) & set(procedures) - seen:
            seen.add(other)
            found |= calls(other, seen)
        return found

    def entry(owner, name, specific, doc):
        own = next((procedures[s][3] for s in specific if procedures[s][3]), "")
        doc = re.sub(rf"^{name}\(.*?\): ", "", doc)
        doc = doc + "." if re.search(r"[\w)']$", doc) else doc
        repeated = doc and own and (f"{name}(" in doc or f"{doc.split()[0]}:" in own)
        doc = own if repeated else f"{doc}\n\n{own}".strip()
        doc = doc if re.match(r"\w+:", doc) else doc[:1].upper() + doc[1:]  # not the name of an argument
        lines = []
        for s in specific:  # the first one as a whole, and what others have else
            shown = fortran_call(owner, name, procedures[s])
            lines += [line.replace("    ", "    ! or ", 1) for line in shown if line not in lines] if lines else shown
        found = set().union(*(calls(s, {s, "finish", "is_made", "is_free"}) for s in specific))
        out.append(Entry(owner, name, "procedure", lines, doc, found))

    for match in re.finditer(r"((?:^  ![^\n]*\n)*)^  type, public :: (\w+)\n(.*?)^  end type", joined(text), re.M | re.S):
        comment, owner, body = match.groups()
        out.append(Entry("", owner, "type", [], comment_text(comment)))
        pending = []
        for line in body[body.index("  contains\n"):].splitlines():
            binding = re.match(r"    (?:procedure|generic) :: (\w+) => ([\w, ]+?) *(?:!(.*))?$", line)
            if re.match(r"    !", line):
                pending.append(line)
            elif binding:
                doc = comment_text("\n".join(pending)) or (binding.group(3) or "").strip()
                entry(owner, binding.group(1), re.split(r", *", binding.group(2).strip()), doc)
                pending = []
            else:
                pending = []
    for line in re.findall(r"^  public :: (.*)$", joined(text), re.M):
        for name in re.split(r", *", line.strip()):
            if name in procedures:
                entry("", name, [name], "")
    return re.sub(r"^convoy.f90: ", "", comment_text(text[:text.index("! SPDX")])), out


# ---- C++ ----

def cpp():
    """(comment of the header, [Entry]) of convoy.hpp: classes with their public functions, and free functions."""
    lines = (ROOT / "include/convoy/convoy.hpp").read_text().splitlines()
    head = "\n".join(line[3:] for line in lines[1:lines.index(" * SPDX-License-Identifier: BSD-3-Clause")])
    out, owner, is_public, comment, declared = [], "", True, [], []
    i = lines.index("namespace convoy") + 2
    while i < len(lines) and not lines[i].startswith("} // namespace"):
        line = lines[i]
        indent = "    " if owner else ""
        i += 1
        if re.match(r"\s*/\*\*", line):
            comment = [line]
            while "*/" not in line:
                line = lines[i]
                comment.append(line)
                i += 1
        elif re.match(r"(template <[^;]*> )?class \w+", line):
            owner = re.search(r"class (\w+)(?: :|$)", line).group(1)
            out.append(Entry("", owner, "class", [line], cpp_comment(comment), re.findall(r"cvy_\w+_destroy", line)))
            comment, is_public = [], False
        elif re.match(r"  (public|private|protected):", line):
            is_public, comment = line.strip() == "public:", []
        elif line == "};":
            owner, is_public, comment = "", True, []
        elif line == "" or line.startswith("#"):
            comment = comment if line.startswith("#") else []
        elif line == indent + "{":
            body = []
            while lines[i] != indent + "}":
                body.append(lines[i])
                i += 1
            i += 1
            add_cpp(out, owner, is_public, comment, declared, "\n".join(declared + body))
            comment, declared = [], []
        elif line.startswith(indent) and line != indent + "{":
            declared.append(line.strip())
            if line.endswith(";"):
                if is_public and not declared[0].endswith("= delete;") and "= default" not in line and "(" in line and owner:
                    add_cpp(out, owner, is_public, comment, declared, "")
                comment, declared = [], []
    return re.sub(r"^convoy/convoy.hpp: ", "", head), out


def cpp_comment(lines):
    return re.sub(r"^\s*/\*\*\s*|\s*\*/$", "", "\n".join(re.sub(r"^\s*\* ?", "", line) if k else line for k, line in enumerate(lines))).strip()


def add_cpp(out, owner, is_public, comment, declared, body):
    text = " ".join(declared).rstrip(";")
    if not is_public or "(" not in text or "~" in text or "&&other" in text:
        return
    text = re.sub(r" : [\w:]+\(.*$", "", text)  # initialisers
    name = re.search(r"(\w+)\(", re.sub(r"template <[^(]*?> ", "", text)).group(1)
    same = next((e for e in out if e.owner == owner and e.name == name), None)
    if same:  # an overload
        same.signatures.append(text)
        same.doc = f"{same.doc}\n\n{cpp_comment(comment)}".strip()
        same.calls = sorted(set(same.calls) | set(Entry(owner, name, "", [], "", calls_of(body)).calls))
        return
    out.append(Entry(owner, name, "function", [text], cpp_comment(comment), calls_of(body)))


# ---- Python ----

def docstring(node):
    """Without the indentation of its first line: ast.get_docstring() also takes that of an example."""
    text = ast.get_docstring(node, clean=False) or ""
    return re.sub(rf"^ {{0,{node.body[0].col_offset}}}", "", text, flags=re.M).strip()


def python():
    """[(name of a module, its docstring, [Entry])]: the package, convoy.torch and convoy.keras, by their __all__."""
    trees = {path.stem: ast.parse(path.read_text()) for path in sorted((ROOT / "python/convoy").glob("*.py"))}
    defined = {}
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                defined[module, node.name] = node
    out = []
    for module, shown in (("__init__", "convoy"), ("torch", "convoy.torch"), ("keras", "convoy.keras")):
        tree, entries = trees[module], []
        given = {n.targets[0].id: ast.literal_eval(n.value) for n in tree.body
                 if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") in ("__all__", "_NEED_NUMPY")}
        origin = {alias.name: n.module for n in tree.body if isinstance(n, ast.ImportFrom) and n.level for alias in n.names}
        origin.update(given.get("_NEED_NUMPY", {}))
        for name in given["__all__"]:
            at = module if (module, name) in defined else origin.get(name)
            if at:
                python_entries(entries, at, name, defined)
            else:
                entries.append(Entry("", name, "value", [name], "The version of the library, as text." if name == "__version__" else ""))
        out.append((shown, re.sub(r"^convoy: ", "", docstring(tree)), entries))
    return out


def python_calls(node, near, seen):
    """The C functions that a function calls, also through private functions and methods."""
    found = set()
    for part in ast.walk(node):
        name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
        if name.startswith("cvy_") and isinstance(part, ast.Attribute):
            found.add(name)
        elif name.startswith("_") and name in near and name not in seen:
            seen.add(name)
            found |= python_calls(near[name], near, seen)
    return found


def python_entries(out, module, name, defined):
    """Appends the entry of a function, or of a class and its public members."""
    node = defined[module, name]
    doc = docstring(node)
    private = {other: n for (at, other), n in defined.items() if at == module and other.startswith("_") and isinstance(n, ast.FunctionDef)}
    if isinstance(node, ast.FunctionDef):
        out.append(Entry("", node.name, "function", [signature(node, False)], doc, python_calls(node, private, set())))
        return
    methods = {}
    for base in node.bases:  # what it inherits
        inherited = defined.get(("_library", getattr(base, "id", "")))
        if inherited:
            methods.update({n.name: n for n in inherited.body if isinstance(n, ast.FunctionDef)})
    methods.update({n.name: n for n in node.body if isinstance(n, ast.FunctionDef)})
    near = {**private, **{name: m for name, m in methods.items() if name.startswith("_")}}
    init = methods.get("__init__")
    fields = [ast.unparse(n) for n in node.body if isinstance(n, ast.AnnAssign)]
    head = node.name + signature(init, True)[len("__init__"):] if init and not fields else node.name
    out.append(Entry("", node.name, "class", [head], doc, ()))
    if init:
        out[-1].calls = Entry("", "__init__", "", [], "", python_calls(init, near, set())).calls
    for field in fields:
        out.append(Entry(node.name, field.split(":")[0], "field", [field], ""))
    for name, method in methods.items():
        if name.startswith("_") and name not in ("__call__", "__getitem__", "__setitem__", "__len__"):
            continue
        decorators = {ast.unparse(d) for d in method.decorator_list}
        kind = "property" if "property" in decorators else "class method" if "classmethod" in decorators else "method"
        shown = signature(method, True)
        shown = shown.replace("() -> ", ": ") if kind == "property" else shown
        out.append(Entry(node.name, name, kind, [shown], docstring(method), python_calls(method, near, set())))


def signature(node, is_method):
    arguments = ast.unparse(node.args)
    if is_method:
        arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    result = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"{node.name}({arguments}){result}"
