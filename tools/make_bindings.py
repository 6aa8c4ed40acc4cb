#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_bindings.py [--check]: writes the declarations of the C API for other languages, from the headers.

fortran/convoy_c.f90        the module convoy_c: every constant, structure and function of include/convoy/, by bind(c)
python/convoy/_bindings.py  the same for ctypes

Run it after a change of a header. --check writes nothing, and fails if a file is not up to date.

The headers are regular C: enums, structures of plain members, opaque types, pointers to functions, and functions that
begin with CVY_API. A declaration that this script does not understand ends it with an error.
"""
import sys

sys.dont_write_bytecode = True
from c_headers import ROOT, Variable, parse_all

FORTRAN, PYTHON = ROOT / "fortran/convoy_c.f90", ROOT / "python/convoy/_bindings.py"


# ---- Fortran ----

F_SCALARS = {"int": "integer(c_int)", "int64_t": "integer(c_int64_t)", "uint64_t": "integer(c_int64_t)", "int32_t": "integer(c_int32_t)",
             "uint32_t": "integer(c_int32_t)", "unsigned": "integer(c_int)", "size_t": "integer(c_size_t)", "double": "real(c_double)",
             "float": "real(c_float)", "uint8_t": "integer(c_int8_t)", "char": "character(kind=c_char)"}


def f_scalar(api, base):
    if base in F_SCALARS:
        return F_SCALARS[base]
    if base in api.enums:
        return "integer(c_int)"
    if base in api.callbacks:
        return "type(c_funptr)"
    if base in api.structs:
        return f"type({base})"
    raise SystemExit(f"make_bindings: the type {base} is not known")


def f_member(api, v, known):
    if v.stars or v.base == "void":
        kind, initial = "type(c_ptr)", "c_null_ptr"
    else:
        kind = f_scalar(api, v.base)
        initial = {"i": "0", "r": "0", "c": "c_null_char"}.get(kind[0])
        if kind == "type(c_funptr)":
            initial = "c_null_funptr"
    lengths = ", ".join(str(eval(n, {}, known)) for n in reversed(v.lengths))  # Fortran's first index is C's last
    return f"{kind} :: {v.name}" + (f"({lengths})" if lengths else "") + (f" = {initial}" if initial else "")


def f_argument(api, v, params):
    if v.lengths or v.stars == 1 and any(p.name in ("n" + v.name, "n" + v.name.rstrip("s")) for p in params):
        is_array = v.base in api.structs or v.base in F_SCALARS and v.base != "char"
        if is_array:
            return f"{f_scalar(api, v.base)}, intent({'in' if v.is_const or v.lengths else 'inout'}) :: {v.name}(*)"
    if v.stars == 0:
        return f"{f_scalar(api, v.base)}, value :: {v.name}"
    if v.stars == 2 and not v.is_const and v.base not in ("char", "void"):  # the place of a handle
        return f"type(c_ptr), intent(inout) :: {v.name}"
    if v.stars == 2:
        return f"type(c_ptr), intent(inout), optional :: {v.name}" if v.name.endswith("_out") or v.name == "text" else f"type(c_ptr), value :: {v.name}"
    if v.base in api.opaque or v.base in ("char", "void", "uint8_t"):
        return f"type(c_ptr), value :: {v.name}"
    return f"{f_scalar(api, v.base)}, intent({'in' if v.is_const else 'inout'}), optional :: {v.name}"


def f_result(api, v):
    if v.stars:
        return "type(c_ptr)"
    return None if v.base == "void" else f_scalar(api, v.base)


def f_wrapped(text, indent):
    """Breaks a statement into lines of at most 120 columns."""
    lines, rest = [], " " * indent + text
    while len(rest) > 120:
        at = rest.rfind(", ", 0, 117)
        lines.append(rest[:at + 1] + " &")
        rest = " " * (indent + 4) + rest[at + 2:]
    return lines + [rest]


def fortran(api, known):
    out = ["! The C API of convoy for Fortran: made by tools/make_bindings.py from include/convoy/. Do not edit it.",
           "!", "! The headers say what each function does. A status is an integer(c_int); a text is a pointer to characters that end",
           "! with c_null_char; what a header calls NULL is c_null_ptr, or an optional argument that is left out. The member `size`",
           "! of options must be set: options%size = c_sizeof(options). The module convoy is easier to use.", "!",
           "! SPDX-License-Identifier: BSD-3-Clause", "module convoy_c", "  use, intrinsic :: iso_c_binding", "  implicit none", "  public", ""]
    out += [f"  integer(c_int), parameter :: {name} = {value}" for name, value in api.constants]
    for name, members in api.structs.items():
        out += ["", f"  type, bind(c) :: {name}"] + [line for v in members for line in f_wrapped(f_member(api, v, known), 4)] + [f"  end type {name}"]
    out += ["", "  interface"]
    for name, result, params in api.functions:
        kind = f_result(api, result)
        word = "subroutine" if kind is None else "function"
        names = ", ".join(p.name for p in params)
        out += f_wrapped(f"{word} {name}({names}) bind(c)", 4)
        out.append("      import")
        out += [line for p in params for line in f_wrapped(f_argument(api, p, params), 6)]
        if kind:
            out.append(f"      {kind} :: {name}")
        out.append(f"    end {word} {name}")
    out += ["  end interface", "end module convoy_c", ""]
    return "\n".join(out)


# ---- Python ----

P_SCALARS = {"int": "c.c_int", "int64_t": "c.c_int64", "uint64_t": "c.c_uint64", "int32_t": "c.c_int32", "uint32_t": "c.c_uint32",
             "unsigned": "c.c_uint", "size_t": "c.c_size_t", "double": "c.c_double", "float": "c.c_float", "uint8_t": "c.c_uint8", "char": "c.c_char"}


def p_type(api, v, known, is_result=False):
    if v.base == "char" and v.stars == 1 and not v.lengths:
        return "c.c_char_p" if v.is_const else "c.c_void_p"
    if v.base in api.callbacks:
        return "c.c_void_p"
    if v.stars == 0:
        base = P_SCALARS.get(v.base) or ("c.c_int" if v.base in api.enums else v.base if v.base in api.structs else None)
        if base is None:
            raise SystemExit(f"make_bindings: the type {v.base} is not known")
        return base + "".join(f" * {eval(n, {}, known)}" for n in reversed(v.lengths))
    if v.stars == 1 and (v.base in api.opaque or v.base == "void"):
        return "c.c_void_p"
    inner = Variable(v.base, v.name)
    inner.stars, inner.is_const = v.stars - 1, v.is_const
    return f"c.POINTER({p_type(api, inner, known)})"


def python(api, known):
    out = ["# SPDX-License-Identifier: BSD-3-Clause",
           '"""The C API of convoy for ctypes: made by tools/make_bindings.py from include/convoy/. Do not edit it."""', "import ctypes as c", "", ""]
    out += [f"{name} = {value}" for name, value in api.constants]
    for name, members in api.structs.items():
        fields = ",\n                ".join(f'("{v.name}", {p_type(api, v, known)})' for v in members)
        out += ["", "", f"class {name}(c.Structure):", f"    _fields_ = [{fields}]"]
    out += ["", "", "FUNCTIONS = {  # name: (type of the result, types of the arguments); c_int may be a status: STATUS has those functions"]
    for name, result, params in api.functions:
        kind = "None" if result.base == "void" and not result.stars else p_type(api, result, known)
        out.append(f'    "{name}": ({kind}, [{", ".join(p_type(api, p, known) for p in params)}]),')
    statuses = ",\n    ".join(f'"{name}"' for name, result, _ in api.functions if result.base == "cvy_status" and not result.stars)
    out += ["}", "", "STATUS = {", f"    {statuses},", "}", ""]
    return "\n".join(out)


def main():
    api = parse_all()
    known = dict(api.constants)
    stale = []
    for path, text in ((FORTRAN, fortran(api, known)), (PYTHON, python(api, known))):
        if path.exists() and path.read_text() == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if "--check" not in sys.argv:
            path.write_text(text)
    if stale and "--check" in sys.argv:
        raise SystemExit(f"make_bindings: not up to date: {', '.join(stale)}; run python3 tools/make_bindings.py")


main()
