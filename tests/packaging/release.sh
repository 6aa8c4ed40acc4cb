#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# release.sh: the notes of a release are the version's section of the change log; a version without one is refused, and so
# is a tree with changes. A wheel of stand-ins has the files of the tarball's tree that it should, their hashes, the
# metadata of pyproject.toml and the licences; it has the same bytes when it is made again, and pip installs it with a
# command that works.
. "$CONVOY_SOURCE/tests/shell.inc"
command -v git >/dev/null || { echo "there is no git"; exit 77; }
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

# ---- the notes, and what is refused ----
mkdir -p tree/scripts tree/include/convoy
cp "$CONVOY_SOURCE/scripts/release.sh" tree/scripts
cp "$CONVOY_SOURCE/include/convoy/base.h" tree/include/convoy
page=docs/thing
version=$("$CONVOY" --version | sed 's/^convoy //')
cat >tree/CHANGELOG.md <<END
# Changelog
## [Unreleased]
- not yet
## [$version] - 2026-01-01

### Added
- a thing ([guide]($page#how), [site](https://example.org))
## [0.0.1] - 2025-01-01
- an old thing
END
release() { sh tree/scripts/release.sh "$@" >log 2>&1; }
release --notes || fail "no notes: $(cat log)"
contains log "# convoy $version" && contains log '- a thing (guide: `docs/thing`, [site](https://example.org))' || fail "the notes are: $(cat log)"
grep -q 'not yet\|an old thing\|^## ' log && fail "the notes have another section: $(cat log)"
release --notes 0.0.1 && contains log '- an old thing' || fail "the notes of 0.0.1: $(cat log)"
release --notes 7.0.0 && fail "there are notes of a version that the change log does not have"
contains log 'no section [7.0.0]' || fail "$(cat log)"
release zip && fail "a kind that is not known is taken"
contains log "'zip' is not known" || fail "$(cat log)"
(cd tree && git init -q && git add . && git -c user.name=a -c user.email=a commit -q -m a && echo >>CHANGELOG.md) || fail "git fails"
release source && fail "a tree with changes is released"
contains log 'not committed: M CHANGELOG.md' || contains log 'not committed:  M CHANGELOG.md' || fail "$(cat log)"

# ---- a wheel ----
python=$(command -v python3) && "$python" -c 'import tomllib, pip' 2>/dev/null || { echo "no python3, 3.11 or newer, with pip: no wheel is made"; exit $failed; }
mkdir -p built/bin built/lib/convoy/mpich built/lib/convoy/openmpi built/include/convoy built/share/doc/convoy/licenses built/share/convoy/frameworks/a built/share/convoy/jobscripts
printf '#!/bin/sh\necho "the loader $*"\n' >built/bin/convoy && chmod +x built/bin/convoy
for file in choose.so libgomp.so.1 mpich/alone.so mpich/convoy.so mpich/libconvoy.so.0.9 openmpi/convoy.so openmpi/libconvoy.so.0.9; do echo "$file" >"built/lib/convoy/$file"; done
for variant in mpich openmpi; do ln -s libconvoy.so.0.9 built/lib/convoy/$variant/libconvoy.so.0 && ln -s libconvoy.so.0 built/lib/convoy/$variant/libconvoy.so; done
echo x | tee built/include/convoy/a.h built/share/doc/convoy/licenses/zlib.txt built/share/convoy/jobscripts/a.job >built/share/convoy/frameworks/a/a.py
wheel() { PYTHONDONTWRITEBYTECODE=1 PATCHELF=true SOURCE_DATE_EPOCH=1700000000 "$python" "$CONVOY_SOURCE/packaging/wheel/make_wheel.py" "$CONVOY_SOURCE" built stage "$1"; }
file=$(wheel one) || { fail "the wheel is not made"; exit 1; }
[ "$file" = "one/libconvoy-$version-py3-none-linux_x86_64.whl" ] || fail "the wheel is $file"
wheel two >log && cmp "$file" "two/${file#one/}" || fail "it has other bytes when it is made again"
"$python" - "$file" "$version" <<'END' || fail "the wheel is wrong"
import base64, csv, email, hashlib, io, sys, zipfile
wheel, about = zipfile.ZipFile(sys.argv[1]), f"libconvoy-{sys.argv[2]}.dist-info"
names = set(wheel.namelist())
record = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(f"{about}/RECORD").decode()))}
assert set(record) == names and record.pop(f"{about}/RECORD") == ["", ""], set(record) ^ names
for name, (digest, size) in record.items():
    data = wheel.read(name)
    assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() and int(size) == len(data), name
binary = {name for name in names if not name.startswith(about) and not name.endswith(".py")}
assert binary == {f"libconvoy-{sys.argv[2]}.data/scripts/convoy", "convoy/py.typed", "convoy/bin/convoy", "convoy/lib/convoy/choose.so", "convoy/lib/convoy/libgomp.so.1", "convoy/lib/convoy/mpich/alone.so", "convoy/share/convoy/jobscripts/a.job",
                  *(f"convoy/lib/convoy/{v}/{f}" for v in ("mpich", "openmpi") for f in ("convoy.so", "libconvoy.so.0"))}, binary
assert {"convoy/__init__.py", "convoy/share/convoy/frameworks/a/a.py", f"{about}/licenses/LICENSE", f"{about}/licenses/zlib.txt"} <= names, names
assert wheel.getinfo("convoy/bin/convoy").external_attr >> 16 == 0o100755
said = email.message_from_bytes(wheel.read(f"{about}/METADATA"))
assert (said["Name"], said["Version"], said.get_all("License-File")) == ("libconvoy", sys.argv[2], ["LICENSE", "zlib.txt"]), said.items()
assert "numpy" in said.get_all("Requires-Dist") and 'mpich; extra == "mpich"' in said.get_all("Requires-Dist"), said.items()
assert "Tag: py3-none-linux_x86_64" in wheel.read(f"{about}/WHEEL").decode()
END
if [ "$(uname -sm)" = "Linux x86_64" ]; then
    "$python" -m pip install -q --no-index --no-deps --target there "$file" >log 2>&1 || fail "pip refuses it: $(cat log)"
    [ "$(PYTHONPATH=there there/bin/convoy train job.yaml 2>&1)" = "the loader train job.yaml" ] || fail "its command: $(PYTHONPATH=there there/bin/convoy train 2>&1)"
fi
exit $failed
