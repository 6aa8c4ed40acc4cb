#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# try_in_root.sh ROOT KIND FILE...: tries packages as their users would, in a bare system in the folder ROOT (debootstrap
# --variant=minbase makes one). It needs root, for chroot, and a network for the packages of MPI.
#
#   deb         .deb files, installed by apt
#   rpm         .rpm files, installed by rpm beside Debian's libraries, whose packages rpm does not know (--nodeps)
#   tarball     unpacked in the home folder of an unprivileged user; nothing of convoy is installed
#   wheel       installed by pip into an environment of that user, with numpy from the index
#   source      the source tarball, built and installed into that folder by CMake
#   python      the source tarball, installed by pip into an environment
#   easybuild   the source tarball, built by EasyBuild with the recipe in it, and loaded by Lmod
#
# What has builds for several MPI libraries is tried first without any: that user runs `convoy selftest` and a short training;
# from a wheel, the demonstration to its end. Then, under each MPI library of the package, `convoy selftest` alone and on two
# ranks, a short training, and all examples (try_examples.sh). From a wheel, `import convoy` must take less than 0.3 s, and
# a training on two ranks is one in Python. --short leaves out the examples. Exit code 0: all of it worked.
set -eu
short=
[ "${1-}" != --short ] || { short=yes; shift; }
[ $# -ge 3 ] || { echo "usage: sh packaging/try_in_root.sh [--short] ROOT KIND FILE..."; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
root=$1 kind=$2
shift 2
[ -x "$root/usr/bin/apt-get" ] || { echo "try_in_root.sh: $root is no root folder of a Debian or Ubuntu"; exit 1; }
for folder in proc dev sys; do
    mountpoint -q "$root/$folder" || { mount --rbind "/$folder" "$root/$folder" && mount --make-rslave "$root/$folder"; }
done
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
setup=:
user() { inside su - tester -c "set -o pipefail; cd; export PATH=\$HOME/convoy/bin:/usr/bin:/bin; $setup; $*"; }
install() { inside apt-get -q install -y --no-install-recommends "$@" >/dev/null; }

inside apt-get -q update >/dev/null
install openssh-client ca-certificates
inside id tester >/dev/null 2>&1 || inside useradd -m -s /bin/bash tester
[ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
home=$root/home/tester
rm -rf "$home/convoy" "$home"/convoy-*
cp "$@" "$home/"
inside chown -R tester /home/tester
case $kind in source | python | easybuild) user "tar -xJf convoy-*.tar.xz" 2>/dev/null || { install xz-utils; user "tar -xJf convoy-*.tar.xz"; } ;; esac

mpis="openmpi mpich" compilers="gcc gfortran libc6-dev make pkg-config" examples=/usr/share/doc/convoy/examples
begin=$(date +%s)
case $kind in
deb)
    install "/home/tester/$(cd "$home" && ls convoy_*.deb)"
    compilers="$compilers libopenmpi-dev libmpich-dev"
    ;;
rpm)
    # Its dependencies have other names here: these are they.
    install rpm libcfitsio10 libdeflate0 libdnnl2 libhdf5-103-1 libjpeg62-turbo liblmdb0 libprotobuf-c1 libspng0 libxxhash0 libyaml-0-2 libgomp1
    inside sh -c 'rpm -i --nodeps /home/tester/convoy*.rpm'
    compilers="$compilers libopenmpi-dev libmpich-dev"
    ;;
tarball)
    install xz-utils libstdc++6
    user "mkdir convoy && tar -xJf convoy-*-linux-*.tar.xz -C convoy --strip-components=1"
    echo "compilers there: $(inside sh -c 'ls /usr/bin/gcc /usr/bin/cc /usr/bin/clang 2>/dev/null' | tr '\n' ' ')"
    compilers="$compilers libopenmpi-dev libmpich-dev"
    ;;
wheel)
    install python3-venv
    user 'python3 -m venv convoy && convoy/bin/pip install -q ./*.whl && convoy/bin/pip list' | grep -v '^\(pip\|setuptools\) '
    ;;
source)
    inside sh -c 'cd /home/tester/convoy-*/ && sh scripts/setup.sh'
    user 'cd convoy-*/ && cmake -B build -DCMAKE_BUILD_TYPE=Release -DCONVOY_TESTS=OFF >cmake.log && cmake --build build -j $(nproc) >build.log && cmake --install build --prefix $HOME/convoy >install.log'
    mpis=openmpi
    ;;
python)
    install python3-venv
    inside sh -c 'cd /home/tester/convoy-*/ && sh scripts/setup.sh'
    user 'python3 -m venv convoy && convoy/bin/pip install -q matplotlib ./convoy-*/'
    user 'tar -tJf convoy-*.tar.xz | sed "s|/\$||" | sort >packed; find convoy-*/ | sed "s|/\$||" | sort | diff packed -' || { echo "FAILED: pip has left these files in the sources"; exit 1; }
    mpis=openmpi
    ;;
easybuild)
    install python3-venv lmod rsync patch bzip2 file
    inside sh -c 'cd /home/tester/convoy-*/ && sh scripts/setup.sh'
    user 'python3 -m venv eb && eb/bin/pip install -q easybuild setuptools && . /etc/profile.d/lmod.sh && eb/bin/eb --sourcepath=$HOME $(ls -d $PWD/convoy-*/packaging/easybuild/convoy-*.eb | grep -v foss | grep -v mpich) >eb.log 2>&1 || { tail -n 20 eb.log; exit 1; }'
    setup='. /etc/profile.d/lmod.sh; module use $HOME/.local/easybuild/modules/all; module load convoy'
    mpis=openmpi
    ;;
*) echo "try_in_root.sh: KIND is '$kind', expected deb, rpm, tarball, wheel, source, python or easybuild"; exit 2 ;;
esac
echo "installed, $(($(date +%s) - begin)) s"

failed=0 small="--threads 1 --set data.train.events=1280 --set data.test.events=64 --set train.epochs=1"
try() {
    begin=$(date +%s)
    echo "== $*"
    user "$@" || { echo "FAILED: $*"; failed=1; }
    echo "$(($(date +%s) - begin)) s"
}
try "command -v convoy; convoy --version"
case $kind in deb | rpm | tarball | wheel)
    inside sh -c '! ls /usr/lib/*/libmpi*.so* 2>/dev/null' || { echo "FAILED: this root has an MPI library already"; failed=1; }
    try "convoy info | grep ^mpi; convoy selftest --threads 1"
    [ "$kind" != wheel ] && demo=$small || demo="--threads 1"
    try "convoy train --out demo $demo | tail -n 3"
    install openmpi-bin mpich
    ;;
esac
[ "$kind" != deb ] || install "/home/tester/$(cd "$home" && ls convoy-dev_*.deb)" # it brings an MPI library
cp "$here/try_python.py" "$home/"
[ "$kind" != wheel ] || try "python try_python.py import"
try "convoy selftest --threads 1"
settings="OMP_NUM_THREADS=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl_vader_single_copy_mechanism=none"
for mpi in $mpis; do
    try "$settings mpiexec.$mpi -n 2 convoy selftest --ranks 2 --threads 1"
    try "rm -rf run; $settings mpiexec.$mpi -n 2 convoy train --out run $small | tail -n 3"
    [ "$kind" != wheel ] || try "rm -rf python; $settings mpiexec.$mpi -n 2 python try_python.py train demo python"
done

if [ "$short" ] || [ "$kind" = wheel ]; then
    [ $failed -eq 0 ] && echo "all of it worked"
    exit $failed
fi
# shellcheck disable=SC2086
[ "$kind" = python ] || install $compilers
cp "$here/try_examples.sh" "$home/"
case $kind in
deb) where=: ;;
rpm) where="export PKG_CONFIG_PATH=/usr/lib64/pkgconfig" ;; # where Fedora has it
easybuild) where='export CONVOY_PREFIX=$EBROOTCONVOY' examples='$EBROOTCONVOY/share/doc/convoy/examples' ;;
python) where=: examples='convoy-*/examples ~/convoy/bin/python' ;;
*) where='export CONVOY_PREFIX=$HOME/convoy PKG_CONFIG_PATH=$HOME/convoy/lib/pkgconfig:$HOME/convoy/lib/x86_64-linux-gnu/pkgconfig LD_LIBRARY_PATH=$HOME/convoy/lib' examples='convoy/share/doc/convoy/examples' ;;
esac
try "$where; sh try_examples.sh $examples"
[ $failed -eq 0 ] && echo "all of it worked"
exit $failed
