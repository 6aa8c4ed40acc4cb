#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# try_in_root.sh ROOT FILE...: tries packages as their users would, in a bare system in the folder ROOT (debootstrap
# --variant=minbase makes one). It needs root, for chroot, and a network for the packages of MPI.
#
#   .deb        installed by apt
#   .tar.xz     unpacked in the home folder of an unprivileged user; nothing of convoy is installed
#
# Then that user runs `convoy selftest` alone and on two ranks, and trains for some steps, under Open MPI and under
# MPICH. Exit code 0: all of it worked.
set -eu
root=$1
shift
[ -x "$root/usr/bin/apt-get" ] || { echo "try_in_root.sh: $root is no root folder of a Debian or Ubuntu"; exit 1; }
for folder in proc dev sys; do
    mountpoint -q "$root/$folder" || mount --rbind "/$folder" "$root/$folder"
done
cp /etc/resolv.conf "$root/etc/resolv.conf"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
user() { inside su - tester -c "cd; export PATH=\$HOME/convoy/bin:/usr/bin:/bin; $*"; }

inside apt-get -q update >/dev/null
inside apt-get -q install -y --no-install-recommends openmpi-bin mpich openssh-client >/dev/null
inside id tester >/dev/null 2>&1 || inside useradd -m -s /bin/bash tester
echo "compilers there: $(inside sh -c 'ls /usr/bin/gcc /usr/bin/cc /usr/bin/clang 2>/dev/null' | tr '\n' ' ')"
inside rm -rf /home/tester/convoy
for file in "$@"; do
    cp "$file" "$root/home/tester/"
    name=$(basename "$file")
    case $name in
    *.deb) inside apt-get -q install -y --no-install-recommends "/home/tester/$name" ;;
    *.tar.xz)
        inside apt-get -q install -y --no-install-recommends xz-utils >/dev/null
        inside chown tester "/home/tester/$name"
        user "mkdir convoy && tar -xJf $name -C convoy --strip-components=1"
        ;;
    esac
done

failed=0
try() {
    echo "== $*"
    user "$@" || { echo "FAILED: $*"; failed=1; }
}
try "command -v convoy; convoy --version"
try "convoy selftest --threads 1"
settings="OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none"
for mpi in openmpi mpich; do
    try "$settings mpiexec.$mpi -n 2 convoy selftest --ranks 2 --threads 1"
    try "rm -rf run; $settings mpiexec.$mpi -n 2 convoy train --threads 1 --out run --set data.train.events=1280 --set data.test.events=64 --set train.epochs=1 | tail -n 3"
done
[ $failed -eq 0 ] && echo "all of it worked"
exit $failed
