#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# release_files.sh: CITATION.cff and the package for Python have the version of the headers, and CITATION.cff is valid if
# cffconvert is installed; each library that the build may link has its licence in licenses/, with a text that is one.
. "$CONVOY_SOURCE/tests/shell.inc"
version=$("$CONVOY" --version | sed 's/^convoy //')
grep -qx "version = \"$version\"" "$CONVOY_SOURCE/python/pyproject.toml" || fail "python/pyproject.toml is not of version $version"
grep -qx "version: $version" "$CONVOY_SOURCE/CITATION.cff" || fail "CITATION.cff is not of version $version: $(grep ^version: "$CONVOY_SOURCE/CITATION.cff")"
grep -qx 'license: BSD-3-Clause' "$CONVOY_SOURCE/CITATION.cff" || fail "CITATION.cff names another licence"
if command -v cffconvert >/dev/null; then
    cffconvert --validate -i "$CONVOY_SOURCE/CITATION.cff" >log 2>&1 || { cat log; fail "CITATION.cff is not valid"; }
else
    echo "no cffconvert: CITATION.cff is not validated"
fi

table=$CONVOY_SOURCE/licenses/README.md
libraries=$(sed -n 's/^ *convoy_\(find\|optional\)(\([A-Z0-9_]*\) .*/\2/p' "$CONVOY_SOURCE/cmake/ConvoyDependencies.cmake" | sort -u)
[ "$(echo "$libraries" | wc -l)" -ge 9 ] || fail "ConvoyDependencies.cmake names only: $libraries"
for library in $libraries; do
    grep -q "^| $library\(:\| |\)" "$table" || fail "licenses/README.md has no row for $library"
done
for file in $(grep -o '([A-Za-z0-9.-]*\.txt)' "$table" | tr -d '()' | sort -u); do
    text=$CONVOY_SOURCE/licenses/$file
    [ -s "$text" ] || { fail "licenses/$file is missing"; continue; }
    grep -qiE 'warrant(y|ies)' "$text" && grep -qiE 'licen[cs]e|redistribut|permission' "$text" || fail "licenses/$file is no licence"
done
for text in "$CONVOY_SOURCE"/licenses/*.txt; do
    grep -qF "($(basename "$text"))" "$table" || fail "licenses/README.md does not name $(basename "$text")"
done
exit $failed
