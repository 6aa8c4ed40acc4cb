# SPDX-License-Identifier: BSD-3-Clause
# make_bindings.awk -v to=fortran|python -v folder=INCLUDE: prints the declarations of the C API for another language, from
# the headers INCLUDE/convoy/*.h:
#
#   fortran   the module convoy_c: every constant, structure and function, by bind(c)
#   python    the module _bindings of the package convoy: the same for ctypes
#
# The headers are regular C: enums, structures of plain members, opaque types, pointers to functions, and functions that
# begin with CVY_API. A declaration that is not understood ends the program with an error. Left out are convoy.h, which
# includes the others, what takes a type of MPI, and what a library of operators exports.

function fail(text) {
    print "make_bindings: " text >"/dev/stderr"
    failed = 1
    exit 1
}

function trimmed(text) {
    sub(/^[ \t]+/, "", text)
    sub(/[ \t]+$/, "", text)
    return text
}

# ---- numbers: literals, names of earlier constants, shifts and sums of these ----

function number(text,   part, n, i, value) {
    text = trimmed(text)
    if (text ~ /^\(.*\)$/)
        text = trimmed(substr(text, 2, length(text) - 2))
    if (text ~ /^-?[0-9]+$/)
        return text + 0
    if (text in value_of)
        return value_of[text]
    if ((n = split(text, part, /<</)) == 2)
        return number(part[1]) * 2 ^ number(part[2])
    if ((n = split(text, part, /[|+]/)) > 1) {
        for (i = 1; i <= n; i++)
            value += number(part[i])
        return value
    }
    fail("the number " text " is not known")
}

function add_constant(name, value) {
    value_of[name] = value
    constant[++nconstant] = name
}

# ---- variables: members, parameters and results ----

# Takes "const char *names[4]" apart into var_base, var_name, var_stars, var_const and var_lengths ("4"; "3 2" for
# [2][3], as both languages begin with the last one).
function take_variable(text, has_name,   at, words, word, i) {
    text = trimmed(text)
    var_lengths = ""
    while (has_name && match(text, /\[[^][]*\]$/)) {
        words = trimmed(substr(text, RSTART + 1, RLENGTH - 2))
        var_lengths = var_lengths (var_lengths == "" ? "" : " ") (words == "" ? "?" : number(words))
        text = trimmed(substr(text, 1, RSTART - 1))
    }
    var_name = ""
    if (has_name) {
        if (!match(text, /[A-Za-z_0-9]+$/))
            fail("not understood: " text)
        var_name = substr(text, RSTART)
        text = substr(text, 1, RSTART - 1)
    }
    var_stars = gsub(/\*/, " ", text)
    var_const = 0
    var_base = ""
    words = split(text, word, /[ \t]+/)
    for (i = 1; i <= words; i++)
        if (word[i] == "const")
            var_const = 1
        else if (word[i] != "" && word[i] != "struct" && word[i] != "volatile")
            var_base = var_base (var_base == "" ? "" : " ") word[i]
}

# Keeps the variable as number n of a list, such as the members of a structure.
function keep_variable(list, n) {
    base[list, n] = var_base
    name[list, n] = var_name
    stars[list, n] = var_stars
    is_const[list, n] = var_const
    lengths[list, n] = var_lengths
}

# ---- declarations ----

function take_enum(body, type,   item, n, i, at, value) {
    if (type != "")
        enums[type]
    value = -1
    n = split(body, item, ",")
    for (i = 1; i <= n; i++) {
        if (trimmed(item[i]) == "")
            continue
        at = index(item[i], "=")
        value = at ? number(substr(item[i], at + 1)) : value + 1
        add_constant(trimmed(at ? substr(item[i], 1, at - 1) : item[i]), value)
    }
}

function take_struct(type, body,   line, part, n, k, i, j, members, first) {
    structs[type]
    struct[++nstruct] = type
    n = split(body, line, ";")
    for (i = 1; i <= n; i++) {
        if (trimmed(line[i]) == "")
            continue
        if (match(line[i], /\(\*[A-Za-z_0-9]+\)/)) { # a pointer to a function
            take_variable("function_pointer " substr(line[i], RSTART + 2, RLENGTH - 3), 1)
            keep_variable(type, ++members)
            continue
        }
        k = split(line[i], part, ",")
        take_variable(part[1], 1)
        keep_variable(type, ++members)
        first = (var_const ? "const " : "") var_base " "
        for (j = 2; j <= k; j++) {
            take_variable(first part[j], 1)
            keep_variable(type, ++members)
        }
    }
    count[type] = members
}

function take_function(text,   at, n, i, part, arguments, function_name) {
    gsub(/CVY_MUST_CHECK/, "", text)
    sub(/CVY_PRINTF\([^)]*\)/, "", text)
    at = index(text, "(")
    arguments = trimmed(substr(text, at + 1))
    sub(/\)$/, "", arguments)
    text = trimmed(substr(text, 1, at - 1))
    match(text, /[A-Za-z_0-9]+$/)
    function_name = substr(text, RSTART)
    if (function_name !~ /^cvy_/ || arguments ~ /MPI_Comm/)
        return
    functions[++nfunction] = function_name
    take_variable(substr(text, 1, RSTART - 1), 0)
    keep_variable(function_name, 0)
    n = trimmed(arguments) == "void" ? 0 : split(arguments, part, ",")
    for (i = 1; i <= n; i++) {
        take_variable(part[i], 1)
        keep_variable(function_name, i)
    }
    count[function_name] = n
}

# A declaration on one line, without comments and without its semicolon.
function take(text,   body, type) {
    text = trimmed(text)
    body = text
    sub(/^[^{]*\{/, "", body)
    sub(/\}[^}]*$/, "", body)
    type = text
    sub(/^.*[ }*]/, "", type)
    if (text == "" || text ~ /^static inline /)
        return
    if (text ~ /^typedef enum /)
        take_enum(body, type)
    else if (text ~ /^enum \{/)
        take_enum(body, "")
    else if (text ~ /^typedef struct [A-Za-z_0-9]+ \{/)
        take_struct(type, body)
    else if (text ~ /^typedef struct [A-Za-z_0-9]+ [A-Za-z_0-9]+$/)
        opaque[type]
    else if (text ~ /^typedef [^(]*\(\*[A-Za-z_0-9]+\)\(/) {
        match(text, /\(\*[A-Za-z_0-9]+\)/)
        callbacks[substr(text, RSTART + 2, RLENGTH - 3)]
    } else if (text ~ /^CVY_API /)
        take_function(substr(text, 9))
    else
        fail("not understood: " text)
}

# ---- headers, in the order in which they include each other ----

# Returns the text without comments. mode: what is unfinished at the end of a line.
function without_comments(line,   at, out) {
    for (;;) {
        if (in_comment) {
            at = index(line, "*/")
            if (!at)
                return out
            line = substr(line, at + 2)
            in_comment = 0
        }
        at = index(line, "/*")
        if (!at)
            break
        out = out substr(line, 1, at - 1) " "
        line = substr(line, at + 2)
        in_comment = 1
    }
    sub(/\/\/.*/, "", line)
    return out line
}

function braces(line,   copy, opened) {
    copy = line
    opened = gsub(/\{/, "", copy)
    return opened - gsub(/\}/, "", copy)
}

# Takes what ends on this line: at a semicolon outside of braces, or at the brace that ends a function.
function add_line(line,   at, piece) {
    while (line != "") {
        at = match(line, /[;}]/)
        piece = at ? substr(line, 1, at) : line
        line = at ? substr(line, at + 1) : ""
        depth += braces(piece)
        pending = pending piece
        if (at && depth == 0 && (piece ~ /;$/ || pending ~ /^ *static inline /)) {
            sub(/;$/, "", pending)
            take(pending)
            pending = ""
        }
    }
    pending = pending " "
}

function read_header(path,   line, continued, part, other) {
    if (path in seen)
        return
    seen[path]
    while ((getline line <path) > 0) # those that it includes come before it
        if (line ~ /^#include <convoy\//) {
            other = line
            gsub(/^#include <|>.*$/, "", other)
            read_header(folder "/" other)
        }
    close(path)
    in_comment = depth = continued = 0
    pending = ""
    while ((getline line <path) > 0) {
        line = without_comments(line)
        gsub(/[ \t]+/, " ", line)
        if (continued || line ~ /^ ?#/) {
            continued = line ~ /\\ *$/
            if (split(trimmed(line), part, " ") == 3 && part[1] == "#define" && part[2] ~ /^CVY_[A-Z_0-9]+$/ && part[3] ~ /^\(?-?[0-9]+\)?$/)
                add_constant(part[2], number(part[3]))
        } else if (line !~ /^CVY_(BEGIN|END)_DECLS ?$/ && line !~ /^CVY_[A-Z]+_STRUCT\([A-Za-z_0-9]+\) ?$/ && !(line ~ /^\} ?$/ && depth == 0))
            add_line(line)
    }
    close(path)
    if (trimmed(pending) != "")
        fail(path ": not understood: " pending)
}

# ---- Fortran ----

function f_scalar(type) {
    if (type in f_kind)
        return f_kind[type]
    if (type in enums)
        return "integer(c_int)"
    if (type in callbacks)
        return "type(c_funptr)"
    if (type in structs)
        return "type(" type ")"
    fail("the type " type " is not known")
}

function f_member(list, n,   kind, initial, shape) {
    kind = stars[list, n] || base[list, n] == "void" ? "type(c_ptr)" : f_scalar(base[list, n])
    initial = kind == "type(c_ptr)" ? " = c_null_ptr" : kind == "type(c_funptr)" ? " = c_null_funptr" : kind ~ /^(integer|real)/ ? " = 0" : kind ~ /^character/ ? " = c_null_char" : ""
    shape = lengths[list, n]
    gsub(/ /, ", ", shape)
    return kind " :: " name[list, n] (shape == "" ? "" : "(" shape ")") initial
}

# Whether a parameter before or after it counts the elements of parameter n: nvalues or nvalue for `values`.
function is_counted(list, n,   i, singular) {
    singular = name[list, n]
    sub(/s+$/, "", singular)
    for (i = 1; i <= count[list]; i++)
        if (name[list, i] == "n" name[list, n] || name[list, i] == "n" singular)
            return 1
    return 0
}

function f_argument(list, n,   type, what, points) {
    type = base[list, n]
    what = name[list, n]
    points = stars[list, n]
    if ((lengths[list, n] != "" || (points == 1 && is_counted(list, n))) && (type in structs || (type in f_kind && type != "char")))
        return f_scalar(type) ", intent(" (is_const[list, n] || lengths[list, n] != "" ? "in" : "inout") ") :: " what "(*)"
    if (points == 0)
        return f_scalar(type) ", value :: " what
    if (points == 2 && !is_const[list, n] && type != "char" && type != "void") # the place of a handle
        return "type(c_ptr), intent(inout) :: " what
    if (points == 2)
        return what ~ /_out$/ || what == "text" ? "type(c_ptr), intent(inout), optional :: " what : "type(c_ptr), value :: " what
    if (type in opaque || type == "char" || type == "void" || type == "uint8_t")
        return "type(c_ptr), value :: " what
    return f_scalar(type) ", intent(" (is_const[list, n] ? "in" : "inout") "), optional :: " what
}

# Prints a statement in lines of at most 120 columns.
function f_print(text, indent,   at, i) {
    text = substr("          ", 1, indent) text
    while (length(text) > 120) {
        for (at = 116; at > 1 && substr(text, at, 2) != ", "; at--)
            continue
        print substr(text, 1, at) " &"
        text = substr("          ", 1, indent + 4) substr(text, at + 2)
    }
    print text
}

function print_fortran(   i, k, list, kind, word, names) {
    split("int int64_t uint64_t int32_t uint32_t unsigned size_t double float uint8_t char", c_type, " ")
    split("integer(c_int) integer(c_int64_t) integer(c_int64_t) integer(c_int32_t) integer(c_int32_t) integer(c_int) integer(c_size_t) real(c_double) real(c_float) integer(c_int8_t) character(kind=c_char)", f_type, " ")
    for (i in c_type)
        f_kind[c_type[i]] = f_type[i]
    print "! The C API of convoy for Fortran: made by tools/make_bindings.awk from include/convoy/. Do not edit it."
    print "!\n! The headers say what each function does. A status is an integer(c_int); a text is a pointer to characters that end"
    print "! with c_null_char; what a header calls NULL is c_null_ptr, or an optional argument that is left out. The member `size`"
    print "! of options must be set: options%size = c_sizeof(options). The module convoy is easier to use.\n!"
    print "! SPDX-License-Identifier: BSD-3-Clause\nmodule convoy_c\n  use, intrinsic :: iso_c_binding\n  implicit none\n  public\n"
    for (i = 1; i <= nconstant; i++)
        printf "  integer(c_int), parameter :: %s = %d\n", constant[i], value_of[constant[i]]
    for (i = 1; i <= nstruct; i++) {
        list = struct[i]
        print "\n  type, bind(c) :: " list
        for (k = 1; k <= count[list]; k++)
            f_print(f_member(list, k), 4)
        print "  end type " list
    }
    print "\n  interface"
    for (i = 1; i <= nfunction; i++) {
        list = functions[i]
        kind = stars[list, 0] ? "type(c_ptr)" : base[list, 0] == "void" ? "" : f_scalar(base[list, 0])
        word = kind == "" ? "subroutine" : "function"
        names = ""
        for (k = 1; k <= count[list]; k++)
            names = names (k > 1 ? ", " : "") name[list, k]
        f_print(word " " list "(" names ") bind(c)", 4)
        print "      import"
        for (k = 1; k <= count[list]; k++)
            f_print(f_argument(list, k), 6)
        if (kind != "")
            print "      " kind " :: " list
        print "    end " word " " list
    }
    print "  end interface\nend module convoy_c"
}

# ---- Python ----

# points: how many stars of the variable are left to say.
function p_type(list, n, points,   type, kind, length_of, k, i) {
    type = base[list, n]
    if (type == "char" && points == 1 && lengths[list, n] == "")
        return is_const[list, n] ? "c.c_char_p" : "c.c_void_p"
    if (type in callbacks)
        return "c.c_void_p"
    if (points == 0) {
        kind = type in p_kind ? p_kind[type] : type in enums ? "c.c_int" : type in structs ? type : ""
        if (kind == "")
            fail("the type " type " is not known")
        k = split(lengths[list, n], length_of, " ")
        for (i = 1; i <= k; i++)
            kind = kind " * " length_of[i]
        return kind
    }
    if (points == 1 && (type in opaque || type == "void"))
        return "c.c_void_p"
    return "c.POINTER(" p_type(list, n, points - 1) ")"
}

function print_python(   i, k, list, line) {
    split("int int64_t uint64_t int32_t uint32_t unsigned size_t double float uint8_t char", c_type, " ")
    split("int int64 uint64 int32 uint32 uint size_t double float uint8 char", ctypes, " ")
    for (i in c_type)
        p_kind[c_type[i]] = "c.c_" ctypes[i]
    print "# SPDX-License-Identifier: BSD-3-Clause"
    print "\"\"\"The C API of convoy for ctypes: made by tools/make_bindings.awk from include/convoy/. Do not edit it.\"\"\"\nimport ctypes as c\n\n"
    for (i = 1; i <= nconstant; i++)
        printf "%s = %d\n", constant[i], value_of[constant[i]]
    for (i = 1; i <= nstruct; i++) {
        list = struct[i]
        printf "\n\nclass %s(c.Structure):\n    _fields_ = [", list
        for (k = 1; k <= count[list]; k++)
            printf "%s(\"%s\", %s)", (k > 1 ? ",\n                " : ""), name[list, k], p_type(list, k, stars[list, k])
        print "]"
    }
    print "\n\nFUNCTIONS = {  # name: (type of the result, types of the arguments); c_int may be a status: STATUS has those functions"
    for (i = 1; i <= nfunction; i++) {
        list = functions[i]
        line = ""
        for (k = 1; k <= count[list]; k++)
            line = line (k > 1 ? ", " : "") p_type(list, k, stars[list, k])
        printf "    \"%s\": (%s, [%s]),\n", list, (base[list, 0] == "void" && !stars[list, 0] ? "None" : p_type(list, 0, stars[list, 0])), line
    }
    print "}\n\nSTATUS = {"
    for (i = 1; i <= nfunction; i++)
        if (base[functions[i], 0] == "cvy_status" && !stars[functions[i], 0])
            printf "    \"%s\",\n", functions[i]
    print "}"
}

BEGIN {
    if (to != "fortran" && to != "python")
        fail("expected to=fortran or to=python")
    callbacks["function_pointer"]
    seen[folder "/convoy/convoy.h"]
    list_headers = "ls " folder "/convoy/*.h"
    while ((list_headers | getline header) > 0)
        read_header(header)
    if (nfunction == 0)
        fail("there is no header in " folder "/convoy")
    if (to == "fortran")
        print_fortran()
    else
        print_python()
    exit failed
}
