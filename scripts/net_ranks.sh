#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# net_ranks.sh: runs COMMAND as MPI ranks in network namespaces that act as hosts, with links of a given speed.
#
#     sh scripts/net_ranks.sh [--hosts 2] [--ranks 1] [--rate 1gbit] [--mpiexec mpiexec] -- COMMAND...
#
# Each host is a namespace with its own network card (a veth pair to a bridge), address and host name, so that MPI takes it for a node: between
# hosts everything uses TCP. --ranks is the number of each host. --rate limits each card in each direction, by a token bucket (tc tbf); without
# it the links are as fast as the kernel copies. It works with Open MPI 4 and MPICH (Hydra), and needs root, ip, tc (package iproute2) and
# unshare (util-linux). At the end, also after Ctrl-C, it removes namespaces, bridge and files. The exit code is that of mpiexec.
set -eu
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
refuse() { echo "net_ranks: $*" >&2; exit 2; }

hosts=2 ranks=1 rate='' mpiexec=${MPIEXEC:-mpiexec}
while [ $# -gt 0 ]; do
    case $1 in
    --hosts | --ranks | --rate | --mpiexec)
        [ $# -ge 2 ] || usage
        eval "${1#--}=\$2"
        shift 2 ;;
    --) shift; break ;;
    *) usage ;;
    esac
done
[ $# -gt 0 ] || usage
case $hosts$ranks in *[!0-9]*) refuse "--hosts and --ranks are whole numbers" ;; esac
[ "$hosts" -ge 1 ] && [ "$hosts" -le 200 ] && [ "$ranks" -ge 1 ] || refuse "--hosts is $hosts and --ranks is $ranks, expected 1 to 200 hosts of at least one rank"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || refuse "making network namespaces needs root"
for tool in ip tc; do
    command -v $tool >/dev/null || refuse "there is no $tool: install the package iproute2"
done
command -v unshare >/dev/null || refuse "there is no unshare: install the package util-linux"
kind=$("$mpiexec" --version 2>&1 | sed -nE 's/.*(Open MPI|OpenRTE|HYDRA).*/\1/p' | head -n 1) || kind=
[ -n "$kind" ] || refuse "$mpiexec is neither Open MPI's nor Hydra; name another one with --mpiexec"

scripts=$(dirname "$0")
# shellcheck source=scripts/mpi_env.sh
. "$scripts/mpi_env.sh"
id=cvy$$ net=10.213.$(($$ % 250)) pid=
work=$(mktemp -d)

host_name() { echo "$id-$1"; }
clean_up() {
    trap '' INT TERM HUP PIPE
    set +e
    i=0
    while [ $i -lt "$hosts" ]; do
        ns=$(host_name $i)
        ip netns pids "$ns" 2>/dev/null | while read -r left; do kill -KILL "$left"; done
        ip netns del "$ns" 2>/dev/null
        rm -rf "/etc/netns/$ns"
        i=$((i + 1))
    done
    ip link del "$id" 2>/dev/null
    rmdir /etc/netns 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP PIPE

# limit NAMESPACE-OR-EMPTY DEVICE. The pieces that the network stack sends are kept smaller than the bucket, which would
# otherwise cut them into packets: this takes a third of a core at 1 Gbit/s.
limit() {
    [ -n "$rate" ] || return 0
    ip ${1:+-n "$1"} link set dev "$2" gso_max_size 32768 || true
    tc ${1:+-n "$1"} qdisc add dev "$2" root tbf rate "$rate" burst 64kb latency 20ms || refuse "tc does not take --rate $rate"
}

# ---- hosts, and a bridge between them; mpiexec itself is at the bridge ----
ip link add "$id" type bridge || refuse "the system does not allow a bridge here"
ip addr add "$net.254/24" dev "$id"
ip link set "$id" up
i=0
while [ $i -lt "$hosts" ]; do
    ns=$(host_name $i)
    ip netns add "$ns" || refuse "the system does not allow network namespaces here"
    ip link add "$id.$i" type veth peer name eth0 netns "$ns"
    ip link set "$id.$i" master "$id" up
    ip -n "$ns" addr add "$net.$((i + 1))/24" dev eth0
    ip -n "$ns" link set lo up
    ip -n "$ns" link set eth0 up
    # A congestion control without pacing by an estimate of the link, because the sums are sent in bursts.
    for control in cubic reno; do
        ip netns exec "$ns" sh -c "echo $control >/proc/sys/net/ipv4/tcp_congestion_control" 2>/dev/null && break
    done
    limit "$ns" eth0
    limit '' "$id.$i"
    echo "$net.$((i + 1)) $ns" >>"$work/names"
    i=$((i + 1))
done
while read -r address ns; do           # `ip netns exec` shows it as /etc/hosts
    mkdir -p "/etc/netns/$ns"
    { echo "127.0.0.1 localhost"; sed "s/ $id-/ host/" "$work/names"; } >"/etc/netns/$ns/hosts"
    if [ "$kind" = HYDRA ]; then echo "$address:$ranks"; else echo "$address slots=$ranks"; fi >>"$work/hosts"
done <"$work/names"

# The command with which MPI starts its daemons in place of ssh: agent ADDRESS WORDS-FOR-A-SHELL...
cat >"$work/agent" <<AGENT
#!/bin/sh
ns=\$(sed -n "s/^\$1 //p" $work/names)
[ -n "\$ns" ] || exit 1
shift
exec ip netns exec "\$ns" unshare --uts sh -c 'hostname "host\${0#$id-}"; exec sh -c "\$1"' "\$ns" "\$*"
AGENT
chmod +x "$work/agent"

# ---- the ranks ----
if [ "$kind" = HYDRA ]; then
    export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 FI_PROVIDER=tcp FI_TCP_IFACE=eth0
    "$mpiexec" -launcher rsh -launcher-exec "$work/agent" -localhost "$net.254" -f "$work/hosts" -n $((hosts * ranks)) "$@" </dev/null &
else
    "$mpiexec" --hostfile "$work/hosts" -n $((hosts * ranks)) --map-by "ppr:$ranks:node" --mca plm rsh --mca plm_rsh_agent "$work/agent" \
        --mca oob_tcp_if_include "$net.0/24" --mca pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include "$net.0/24" "$@" </dev/null &
fi
pid=$!
trap 'kill -TERM $pid 2>/dev/null' INT TERM HUP PIPE
code=0
wait $pid || code=$?
while kill -0 $pid 2>/dev/null; do     # a signal ended the first wait
    code=0
    wait $pid || code=$?
done
exit $code
