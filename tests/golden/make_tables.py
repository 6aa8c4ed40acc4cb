#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes tables_golden.h of test_tables.c: small tables as pandas and R write them with their many options, and what
pandas.read_csv() reads from them with the hints that a person would give (separator, decimal mark, no header ..).

    python3 make_tables.py    # needs pandas, and Rscript; writes tables_golden.h into its folder

A row of the list is a table, the options of a source of convoy, and the inputs, targets of class and names that are
expected, or a word of the message that refuses it. The index that pandas and R write as a column without a name is no
input. Missing numbers become -99 on both sides. A table whose inputs are no numbers for pandas (texts, dates), or that
have infinite numbers, must be refused; so must what pandas refuses.
"""
import bz2
import csv
import gzip
import io
import lzma
import math
import os
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import pandas as pd

HERE = os.path.dirname(os.path.abspath(__file__))
tables = []  # (name, file suffix, bytes, options of convoy, hints for pandas, word of the refusal or None)


def add(name, data, options="", hints=None, refused=None, suffix="csv"):
    tables.append((name, suffix, data.encode() if isinstance(data, str) else data, options, dict(hints or {}), refused))


# ---- frames ----

def plain(n=6):
    g = np.random.default_rng(1)
    return pd.DataFrame({"mass": np.round(g.normal(3, 2, n), 4), "width": np.round(g.normal(0, 1, n), 3),
                         "count": g.integers(0, 90, n), "label": np.arange(n) * 7 % 3})


def gaps():
    f = plain()
    f.loc[[1, 4], "mass"] = np.nan
    f.loc[2, "width"] = np.nan
    return f


def words():
    f = plain()
    f["label"] = np.array(["red", "green", "blue"])[f["label"]]
    return f


def odd_names():
    f = words()
    f.columns = ['a "b"', "c,d", "e;f g", "label"]
    return f


def odd_words():
    f = plain()
    f["label"] = np.array(['say "hi"', "a, b", "x;y|z"])[f["label"]]
    return f


def truths():
    f = plain()
    f["seen"] = f["count"] > 40
    return f[["mass", "seen", "width", "label"]]


def large():
    f = plain()
    f["mass"] = [1234567.25, -98765.5, 12.5, 1000, 0.001, 123456789]
    f["count"] = [1000, 20000, 300, 4000000, 5, 123456]
    return f


def unnamed(n=6):
    return pd.DataFrame(np.round(np.random.default_rng(2).normal(size=(n, 4)), 3))


def dated():
    f = plain()
    f.insert(1, "day", pd.date_range("2020-01-01", periods=len(f), freq="h"))
    return f


FRAMES = {"plain": plain, "gaps": gaps, "words": words, "odd_names": odd_names, "odd_words": odd_words,
          "truths": truths, "large": large}


# ---- pandas ----

def put(frame, name, options="", hints=None, refused=None, **how):
    add("pandas " + name, frame.to_csv(**how), options, hints, refused)


def pandas_tables():
    for key, make in FRAMES.items():
        put(make(), f"{key}, index")
        put(make(), f"{key}, no index", index=False)
        put(make(), f"{key}, sep ;", hints={"sep": ";"}, index=False, sep=";")
        put(make(), f"{key}, sep ; decimal ,", 'decimal: ","', {"sep": ";", "decimal": ","}, sep=";", decimal=",")
        put(make(), f"{key}, sep tab", hints={"sep": "\t"}, sep="\t")
        put(make(), f"{key}, sep |", hints={"sep": "|"}, index=False, sep="|")
        put(make(), f"{key}, all quoted", quoting=csv.QUOTE_ALL)
        put(make(), f"{key}, texts quoted", quoting=csv.QUOTE_NONNUMERIC, index=False)
        put(make(), f"{key}, CRLF", lineterminator="\r\n")
        put(make(), f"{key}, CR", lineterminator="\r", index=False)
    for key in ("plain", "gaps", "words"):
        make = FRAMES[key]
        put(make(), f"{key}, sep space", hints={"sep": " "}, index=False, sep=" ", na_rep="NA")
        put(make(), f"{key}, single quotes", hints={"quotechar": "'"}, quotechar="'", quoting=csv.QUOTE_NONNUMERIC)
        put(make().sample(frac=1, random_state=3), f"{key}, shuffled")
        put(make().sample(n=4, random_state=3), f"{key}, sampled")
        put(pd.concat([make(), make()]), f"{key}, two of them with their indices")
        put(make().set_index(pd.Index(list("uvwxyz"))), f"{key}, index of texts")
        put(make().set_index(pd.date_range("2021-03-01", periods=6)), f"{key}, index of days")
        put(make().set_index(np.arange(6) * 0.5), f"{key}, index of reals")
        put(make(), f"{key}, index_label id", index_label="id")
        put(make(), f"{key}, index_label row", "index: input", index_label="row")
        put(make().reset_index(), f"{key}, index as a column", index=False)
        again = pd.read_csv(io.StringIO(make().to_csv()))
        put(again, f"{key}, written again without index", index=False)
        put(again, f"{key}, written again with index")
        put(make(), f"{key}, index_label False", index_label=False)
        put(make(), f"{key}, no header", "label: -1", {"header": None}, index=False, header=False)
    for rep in ("", "NA", "NaN", "nan", "NULL", "null", "None", "N/A", "n/a", "<NA>", "#N/A", "-999"):
        put(gaps(), f"na_rep {rep!r}", na_rep=rep, index=False)
    for rep in (".", "-", "missing"):
        put(gaps(), f"na_rep {rep!r}", na_rep=rep, index=False, refused=f'"{rep}" is not a number')
    for form in ("%.2f", "%.6e", "%g", "%+.3f", "%8.3f"):
        put(large(), f"float_format {form!r}", float_format=form, index=False)
    put(large(), "float_format with commas", 'thousands: ","', {"thousands": ","}, index=False,
        float_format="{:,.2f}".format)
    put(large(), "float_format with commas, sep ;", 'thousands: ","', {"thousands": ",", "sep": ";"}, sep=";",
        float_format="{:,.2f}".format)
    put(large(), "float_format with commas, not asked for", refused='`thousands: ","`', index=False,
        float_format="{:,.2f}".format)
    put(large(), "float_format in Europe", 'thousands: ".", decimal: ","',
        {"thousands": ".", "decimal": ",", "sep": ";"}, sep=";", index=False,
        float_format=lambda x: f"{x:,.2f}".translate(str.maketrans(",.", ".,")))
    put(large(), "float_format with blanks", "thousands: space", {"thousands": " "}, index=False,
        float_format=lambda x: f"{x:,.2f}".replace(",", " "))
    put(large(), "float_format with blanks that do not break", "thousands: space", {"replace": "\u00a0"}, index=False,
        float_format=lambda x: f"{x:,.2f}".replace(",", "\u00a0"))
    put(large(), "float_format with apostrophes", "thousands: apostrophe", {"thousands": "'"}, index=False,
        float_format=lambda x: f"{x:,.2f}".replace(",", "'"))
    put(large(), "float_format with underscores", "thousands: underscore", {"thousands": "_"}, index=False,
        float_format="{:_.2f}".format)
    put(large(), "float_format with %", refused="a number with a unit", index=False, float_format="{:.1f}%".format)
    put(large(), "float_format with $", refused="a number with a unit", index=False, float_format="${:.2f}".format)
    put(plain(), "decimal comma and separator comma", 'decimal: ","', {"decimal": ","}, index=False, decimal=",")
    put(plain(), "decimal comma, not asked for", sep=";", decimal=",", index=False, hints={"sep": ";"},
        refused='`decimal: ","` of the source')
    put(plain(), "decimal and separator comma, not asked for", decimal=",", index=False,
        refused='`decimal: ","` of the source')
    for key, how in {"index": {}, "no index": {"index": False}, "index, sep tab": {"sep": "\t"}}.items():
        put(unnamed(), f"columns without names, {key}", hints={"sep": how.get("sep", ",")}, **how)
        put(unnamed(), f"columns without names, {key}, no header", hints={"header": None, "sep": how.get("sep", ",")},
            header=False, **how)
    put(unnamed()[[0, 1]], "two columns without names", index=False)
    put(unnamed(12), "twelve rows with index, no header", hints={"header": None}, header=False)
    put(unnamed(12).sample(frac=1, random_state=1), "twelve shuffled rows with index, no header",
        hints={"header": None}, header=False)
    put(plain(), "other names", header=["m", "w", "c", "label"])
    put(plain(), "columns chosen", columns=["width", "label"])
    put(dated(), "dates", refused="a date or a time", index=False)
    put(dated(), "dates dropped", "drop: day", index=False)
    put(dated(), "date_format", refused="a date or a time", index=False, date_format="%d/%m/%Y")
    put(dated(), "date_format of digits", index=False, date_format="%Y%m%d")
    put(dated(), "times", refused="a date or a time", index=False, date_format="%H:%M")
    put(plain().assign(mass=[1, 2, math.inf, 3, -math.inf, 4]), "infinite", refused="is not a finite number", index=False)
    put(plain().assign(city=["Rome"] * 6), "a column of texts", refused="no number in column", index=False)
    put(plain().assign(answer=["yes", "no"] * 3), "yes and no", refused="no number in column", index=False)
    put(plain().assign(answer=["T", "F"] * 3), "T and F", refused="no number in column", index=False)
    put(plain().assign(code=[hex(20 + i) for i in range(6)]), "hexadecimal", refused="no number in column", index=False)
    put(odd_names(), "doublequote False", "", {"escapechar": "\\"}, doublequote=False, escapechar="\\", index=False)
    put(odd_names(), "no quotes but escapes", refused="no number in column", quoting=csv.QUOTE_NONE, escapechar="\\", index=False)
    put(words(), "no quotes", quoting=csv.QUOTE_NONE, index=False)
    broken = words()
    broken.columns = ["a\nb", "c", "d", "label"]
    put(broken, "a line end in a name", index=False)
    put(broken, "a line end in a name, CRLF", index=False, lineterminator="\r\n")
    lines = plain().assign(label=["one\ntwo", "three"] * 3)
    put(lines, "line ends in labels")
    two = plain()
    two.columns = pd.MultiIndex.from_tuples([("p", "mass"), ("p", "width"), ("q", "count"), ("q", "label")])
    put(two, "two lines of names", refused="is not a number", index=False)
    index = plain().set_index(pd.MultiIndex.from_product([[0, 1], [0, 1, 2]]))
    put(index, "two indices without names")
    put(index.rename_axis(["group", "item"]), "two indices with names")
    accents = plain().rename(columns={"mass": "Größe"})
    for code in ("utf-8", "utf-8-sig"):
        add(f"pandas encoding {code}", accents.to_csv(index=False).encode(code))
    add("pandas encoding latin-1", accents.to_csv(index=False).encode("latin-1"), refused="is not UTF-8")
    for code in ("utf-16", "utf-16-le", "utf-16-be"):
        add(f"pandas encoding {code}", ("\ufeff" * (code != "utf-16") + accents.to_csv(index=False)).encode(code),
            refused="UTF-16")
    text = plain(40).to_csv().encode()
    add("pandas compression gzip", gzip.compress(text, mtime=0), suffix="csv.gz")
    add("pandas compression bz2", bz2.compress(text), refused="bzip2", suffix="csv.bz2")
    add("pandas compression xz", lzma.compress(text), refused="xz", suffix="csv.xz")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo("table.csv"), text)
    add("pandas compression zip", packed.getvalue(), refused="zip archive", suffix="csv.zip")
    put(plain().rename(columns={"width": "mass"}), "a name twice", index=False)
    put(plain().astype({"label": float}), "labels as reals", index=False)
    put(plain().assign(label=plain().label + 0.5), "labels with a fraction", refused="is not a label", index=False)
    put(plain().astype({"label": str}), "labels as texts", index=False, quoting=csv.QUOTE_NONNUMERIC)


# ---- R ----

R_SCRIPT = r"""
f <- data.frame(mass = c(1.5, 2.25, -3.125, 1e6, 1e-7), width = c(10L, 20L, 30L, 40L, 50L),
                `a "b", c` = c(0.1, 0.2, 0.3, 0.4, 0.5), label = c("red", "green", "red", "blue", "green"),
                check.names = FALSE)
g <- data.frame(mass = c(1.5, NA, -3.125, 1e6, NaN), seen = c(TRUE, FALSE, TRUE, NA, FALSE), label = c(0L, 1L, 0L, 2L, 1L))
h <- g; rownames(h) <- c("Mazda RX4", "Fiat 128", "Duster 360", "Merc \"240\"", "Valiant, 2")
m <- matrix(c(1.5, 2.5, 3.5, 4.5, 5.5, 6.5), 3)
frames <- list(texts = f, gaps = g, names = h)
put <- function(.name, .how, .x, ...) .how(.x, file = file.path(commandArgs(TRUE)[1], .name), ...)
for (k in names(frames)) {
  x <- frames[[k]]
  put(paste0(k, "~table"), write.table, x)
  put(paste0(k, "~table, col.names NA"), write.table, x, col.names = NA)
  put(paste0(k, "~table, no row.names"), write.table, x, row.names = FALSE)
  put(paste0(k, "~table, no col.names"), write.table, x, row.names = FALSE, col.names = FALSE)
  put(paste0(k, "~table, tabs"), write.table, x, sep = "\t")
  put(paste0(k, "~table, tabs, col.names NA"), write.table, x, sep = "\t", col.names = NA)
  put(paste0(k, "~table, tabs, no quotes"), write.table, x, sep = "\t", quote = FALSE)
  put(paste0(k, "~table, tabs, double"), write.table, x, sep = "\t", qmethod = "double")
  put(paste0(k, "~table, commas, double"), write.table, x, sep = ",", qmethod = "double")
  put(paste0(k, "~table, pipes"), write.table, x, sep = "|", row.names = FALSE, qmethod = "double")
  put(paste0(k, "~table, tabs, decimal ,"), write.table, x, sep = "\t", dec = ",", qmethod = "double")
  put(paste0(k, "~table, tabs, CRLF"), write.table, x, sep = "\t", eol = "\r\n", qmethod = "double")
  put(paste0(k, "~csv"), write.csv, x)
  put(paste0(k, "~csv, no row.names"), write.csv, x, row.names = FALSE)
  put(paste0(k, "~csv, na empty"), write.csv, x, na = "")
  put(paste0(k, "~csv, no quotes"), write.csv, x, quote = FALSE)
  put(paste0(k, "~csv, CR"), write.csv, x, eol = "\r")
  put(paste0(k, "~csv2"), write.csv2, x)
  put(paste0(k, "~csv2, no row.names"), write.csv2, x, row.names = FALSE)
}
put("matrix~table", write.table, m)
put("matrix~table, tabs", write.table, m, sep = "\t")
put("matrix~csv", write.csv, m)
put("matrix~csv, no row.names", write.csv, m, row.names = FALSE)
put("shuffled~csv", write.csv, g[c(3, 1, 5, 2, 4), ])
put("part~csv", write.csv, g[c(1, 3, 4), ])
put("one~table", write.table, g["mass"])
"""


def r_tables():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "make.R")
        with open(script, "w", encoding="utf-8") as f:
            f.write(R_SCRIPT)
        out = os.path.join(folder, "out")
        os.mkdir(out)
        subprocess.run(["Rscript", "--vanilla", script, out], check=True)
        for name in sorted(os.listdir(out)):
            frame, how = name.split("~")
            with open(os.path.join(out, name), "rb") as f:
                data = f.read()
            sep = ("\t" if "tabs" in how else "|" if "pipes" in how else ";" if how.startswith("csv2") else
                   "," if how.startswith("csv") or "commas" in how else " ")
            hints = {"sep": sep}
            options = []
            if "decimal" in how or how.startswith("csv2"):
                hints["decimal"] = ","
                options.append('decimal: ","')
            if how.startswith("table") and "double" not in how and "pipes" not in how and "decimal" not in how:
                hints["escapechar"] = "\\"
            if "no col.names" in how:
                hints["header"] = None
                options.append("label: -1")
            refused = None
            if "no quotes" in how and frame != "gaps" and not (frame == "texts" and "tabs" in how):
                refused = "column"  # names or texts with the separator in them
            if frame == "names" and "no quotes" in how and "tabs" in how:
                refused = None
            add(f"R {frame}, {how}", data, ", ".join(options), hints, refused)


# ---- by hand: habits of other programs ----

def other_tables():
    add("a separator at the end of rows and header", "a,b,label,\n1,2,0,\n3,4,1,\n5,6,1,\n")
    add("a separator at the end of rows", "a,b,label\n1,2,0,\n3,4,1,\n5,6,1,\n", hints={"index_col": False})
    add("blanks after separators", "a, b, label\n1, 2, 0\n 3, +4, 1\n", hints={"skipinitialspace": True})
    add("columns of fixed width", "   a      b  label\n 1.5    2.5      0\n-3.5  100.5      1\n", hints={"sep": r"\s+"})
    add("blank lines", "a,b,label\n\n1,2,0\n\n\n3,4,1\n\n")
    add("comments", "# made by hand\na,b,label\n1,2,0\n# a pause\n3,4,1\n", hints={"comment": "#"})
    add("names in a comment", "# a b label\n1.0 2.0 0\n3.0 4.0 1\n",
        hints={"sep": r"\s+", "skiprows": 1, "names": ["a", "b", "label"]})
    add("no end of the last line", "a,b,label\n1,2,0\n3,4,1")
    add("scientific notation", "a,b,label\n1e5,-2.5E-3,0\n+1.e2,.5,1\n")
    add("a zero byte", "a,b,label\n1,2,0\n3,\0,1\n", refused="zero byte")
    add("a row is short", "a,b,label\n1,2,0\n3,4\n5,6,1\n", refused="2 columns, expected 3")
    add("a row is long", "a,b,label\n1,2,0\n3,4,1,9\n5,6,1\n", refused="4 columns, expected 3")
    add("a quote without end", 'a,b,label\n1,2,0\n3,"4,1\n5,6,1\n', refused="columns, expected 3")
    add("only a header", "a,b,label\n", refused="no samples")
    add("nothing", "", refused="no samples")
    add("a column of the day in digits", "day,b,label\n20200101,2.5,0\n20200102,3.5,1\n")
    add("MNIST as a table", "label," + ",".join(f"pixel{i}" for i in range(9)) + "\n" +
        "".join(f"{i % 3}," + ",".join(str((i * k * 31) % 256) for k in range(9)) + "\n" for i in range(5)))
    add("a long line", "label," + ",".join(f"v{i}" for i in range(600)) + "\n1," + ",".join(["7"] * 600) + "\n")


# ---- what pandas reads ----

def index_columns(frame, data, options):
    """The columns that are names or numbers of rows."""
    columns = list(frame.columns)
    if "index: input" in options:
        return []
    if isinstance(columns[0], str):
        n = 0
        while n < len(columns) and columns[n].startswith("Unnamed: ") and not frame[columns[n]].isna().all():
            n += 1
        return columns[:n]
    first = frame[columns[0]]
    counts = len(frame) >= 8 and sorted(first) in (list(range(len(frame))), list(range(1, len(frame) + 1)))
    return columns[:1] if counts else []


def raw_names(frame, hints):
    """Names as they are written: pandas adds .1 to those that occur twice."""
    return [c[:-2] if isinstance(c, str) and c.endswith(".1") and c[:-2] in frame.columns else c for c in frame.columns]


def expected(table):
    name, suffix, data, options, hints, refused = table
    if refused is not None:
        return None
    if suffix.endswith("gz"):
        data = gzip.decompress(data)
    hints = dict(hints)
    data = data.replace(hints.pop("replace", "").encode() or b"\0", b"")  # what read_csv() has no option for
    frame = pd.read_csv(io.BytesIO(data), **hints)
    drop = index_columns(frame, data, options)
    drop += [c for c in frame.columns if isinstance(c, str) and c.startswith("Unnamed: ") and frame[c].isna().all()]
    drop += ["day"] if "drop: day" in options else []
    frame.columns = raw_names(frame, hints) if not drop else frame.columns
    label = None
    if "label: -1" in options:
        label = frame.columns[-1]
    elif "label" in frame.columns:
        label = "label"
    keep = [i for i, c in enumerate(frame.columns) if c not in drop and c != label]
    x = frame.iloc[:, keep]
    for c in range(x.shape[1]):
        kinds = set(type(v) for v in x.iloc[:, c].dropna())
        assert not any(issubclass(k, str) for k in kinds), (name, x)
    values = x.astype(object).where(x.notna(), -99.0).astype(float).to_numpy()
    names = None if hints.get("header", 0) is None else [str(c) for c in x.columns]
    labels = [] if label is None else [str(v) for v in frame[label]]
    return names, values, labels


# ---- the header ----

def c_bytes(data):
    out, line = [], '"'
    for b in data:
        ch = chr(b)
        if ch in '"\\':
            piece = "\\" + ch
        elif ch == "\n":
            piece = "\\n"
        elif 32 <= b < 127 and ch != "?":
            piece = ch
        else:
            piece = "\\%03o" % b
        if len(line) + len(piece) > 2000:
            out.append(line + '"')
            line = '"'
        line += piece
    out.append(line + '"')
    return "\n     ".join(out)


def c_list(items):
    return c_bytes("\x1f".join(items).encode())


def number(v):
    return "%.9g" % np.float32(v)


def write(f, given, version):
    """given: (name, suffix, data, options, refused, expected) of each table. Tables that are read alike share what is expected."""
    results = list(dict.fromkeys(e for *_, e in given if e is not None))
    f.write("/* SPDX-License-Identifier: BSD-3-Clause */\n/* clang-format off */\n"
            f"/* Written by make_tables.py with pandas {version}: do not edit. */\n"
            "/* Lists have the unit separator, octal 037, between their items. */\n"
            "static const struct golden_result {\n    int nrow, ncolumn, has_names;\n    const char *names, *x, *labels;\n} golden_result[] = {\n")
    for shape, *texts in results:
        f.write(f"    {{{', '.join(map(str, shape))}, {', '.join(map(c_list, texts))}}},\n")
    f.write("};\nstatic const struct golden_table {\n    const char *name, *suffix, *data;\n    size_t bytes;\n    const char *options;\n"
            "    const char *refused; /* a word of the message; NULL: the table is read, and gives this result: */\n"
            "    const struct golden_result *result;\n} golden_table[] = {\n")
    for name, suffix, data, options, refused, e in given:
        quoted = "NULL" if refused is None else c_bytes(refused.encode())
        result = "NULL" if e is None else f"&golden_result[{results.index(e)}]"
        f.write(f'    {{{c_bytes(name.encode())}, "{suffix}", {c_bytes(data)}, {len(data)}, {c_bytes(options.encode())}, {quoted}, {result}}},\n')
    f.write("};\n")


def main():
    pandas_tables()
    r_tables()
    other_tables()
    given, failed = [], []
    for t in tables:
        name, suffix, data, options, _, refused = t
        try:
            e = expected(t)
        except Exception as error:  # pylint: disable=broad-except
            failed.append(f"{name}: pandas cannot read it: {error!r}\n{data.decode(errors='replace')}")
            continue
        if e is not None:
            names, values, labels = e
            e = ((*values.shape, int(names is not None)), tuple(names or []), tuple(number(v) for v in values.ravel()), tuple(labels))
        given.append((name, suffix, data, options, refused, e))
    with open(os.path.join(HERE, "tables_golden.h"), "w", encoding="ascii") as f:
        write(f, given, pd.__version__)
    print(f"{len(tables)} tables")
    sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
