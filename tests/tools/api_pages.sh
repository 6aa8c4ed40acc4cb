#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# api_pages.sh: the pages of the API are made without a warning; each function and structure of C, each type-bound
# procedure of Fortran, each class of C++ and each public name of Python has an entry and a place in the index, and no
# link is dead. What has no description is a warning.
. "$CONVOY_SOURCE/tests/shell.inc"
export LC_ALL=C
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
sh "$CONVOY_SOURCE/scripts/api_pages.sh" pages >out 2>err || fail "api_pages.sh fails"
[ ! -s err ] || fail "warnings: $(cat err)"
contains out pages/index.html || fail "the script does not name the first page: $(cat out)"

# ---- what must be there: found in the sources without their parsers ----
{
    cat "$CONVOY_SOURCE"/include/convoy/*.h | sed 's,^#.*,,' | tr '\n' ' ' | sed 's,/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/,,g' | tr ';' '\n' |
        sed -n 's/.*CVY_API[^(]*[ *]\(cvy_[a-z0-9_]*\)(.*/\1/p'
    sed -n 's/^} \(cvy_[a-z0-9_]*\);$/\1/p' "$CONVOY_SOURCE"/include/convoy/*.h
} >c
sed -n 's/^class \([a-z]*\) .*/convoy.\1/p; s/^template.*> class \([a-z]*\)$/convoy.\1/p' "$CONVOY_SOURCE/include/convoy/convoy.hpp" >cpp
awk '/^  type, public ::/ { type = $4; print type }
    /^  end type/ { type = "" }
    type != "" && /^    (procedure|generic) :: [a-z_]+ =>/ { print type "." $3 }
    /^  public :: convoy_/ { gsub(/,/, ""); for (i = 3; i <= NF; i++) print $i }' "$CONVOY_BUILD/fortran/convoy.f90" >fortran
python3 - "$CONVOY_SOURCE/python/convoy" >python <<'PY'
import pathlib, re, sys
folder = pathlib.Path(sys.argv[1])
for plugin in ("torch", "keras"):  # what they give out, also of other files
    for name in re.findall(r'"(\w+)"', re.search(r"__all__ = \[(.*?)\]", (folder / f"{plugin}.py").read_text()).group(1)):
        print(f"convoy.{plugin}.{name}")
public = re.findall(r'"(\w+)"', re.search(r"__all__ = \[(.*?)\]", (folder / "__init__.py").read_text()).group(1))
for path in folder.glob("*.py"):
    owner = module = None
    for line in path.read_text().splitlines():
        top = re.match(r"(?:class|def) (\w+)", line)
        if top:
            module = f"convoy.{path.stem}" if path.stem in ("torch", "keras") else "convoy"
            is_public = top.group(1) in public if module == "convoy" else not top.group(1).startswith("_")
            if path.stem == "_mpi" or not is_public:
                owner = None
                continue
            owner = top.group(1) if line.startswith("class") else None
            print(f"{module}.{top.group(1)}")
        method = re.match(r"    def ([a-z]\w*)\(", line)
        if owner and method:
            print(f"{module}.{owner}.{method.group(1)}")
PY
for list in c:150:'*_h.html' cpp:6:cpp.html fortran:40:fortran.html python:40:python.html; do
    name=${list%%:*} least=${list#*:}
    pages=${least#*:} least=${least%%:*}
    [ "$(wc -l <"$name")" -ge "$least" ] || fail "only $(wc -l <"$name") names of $name were found in the sources"
    # The pattern is expanded.
    sed -n 's/.*<section id="\([^"]*\)".*/\1/p' pages/$pages | sort >entries
    sort -u "$name" >wanted
    missing=$(comm -23 wanted entries)
    [ -z "$missing" ] || fail "no entry of $name: $missing"
    sed -n 's/.*<li><a href="[^#]*#\([^"]*\)".*/\1/p' pages/symbols.html | sort -u >indexed
    missing=$(comm -23 wanted indexed)
    [ -z "$missing" ] || fail "the index lacks of $name: $missing"
done
grep -q 'output(layer: str.*) -&gt; np.ndarray' pages/python.html || fail "signatures of Python have no type of the result"
grep -q 'first_row: int' pages/python.html || fail "properties of Python have no type"
sed -n '/id="convoy.Program.__setitem__"/,/<\/section>/p' pages/python.html | grep -q 'Sets a weight' || fail "__setitem__ has no description of its own"
grep -q '"others">.*C++: <a.*Fortran: <a.*Python: <a' pages/program_h.html || fail "functions of C do not name their counterparts"

# ---- links ----
cat >links.py <<'PY'
import html.parser, pathlib, sys
class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.opened = [], [], []
        self.feed(path.read_text())
    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if tag not in ("meta", "link"):
            self.opened.append(tag)
    def handle_endtag(self, tag):
        if not self.opened or self.opened.pop() != tag:
            print(f"{tag} is closed, but was not opened last")
folder = pathlib.Path(sys.argv[1])
pages = {path.name: Page(path) for path in folder.glob("*.html")}
for name, page in pages.items():
    for i in {i for i in page.ids if page.ids.count(i) > 1}:
        print(f"{name} has {i} twice")
    for link in page.links:
        target, _, place = link.partition("#")
        if not (folder / (target or name)).exists() or place and place not in pages[target or name].ids:
            print(f"{name}: dead link {link}")
PY
python3 links.py pages >log || fail "the links cannot be read"
[ ! -s log ] || fail "$(cat log)"
# The check of links finds a dead one.
sed 's/id="cvy_version"/id="other"/' pages/base_h.html >changed && mv changed pages/base_h.html
python3 links.py pages >log
contains log 'dead link base_h.html#cvy_version' || fail "a dead link is not found"

# ---- warnings ----
mkdir tree
for part in include fortran python tools scripts; do
    cp -r "$CONVOY_SOURCE/$part" tree
done
cat >>tree/include/convoy/base.h <<'H'

CVY_API int cvy_more(void);
/** As cvy_nowhere(). */
CVY_API int cvy_much_more(void);
H
sh tree/scripts/api_pages.sh other >out 2>err && fail "a warning is no fault"
contains err 'base.h: cvy_more has no comment' || fail "a function without a comment is not named: $(cat err)"
contains err 'the description of cvy_much_more names cvy_nowhere' || fail "an unknown name is not named: $(cat err)"
exit $failed
