#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: release
# level: 2
# bare_system.sh: on a system whose kernel has no memfd_create(), and on one without /proc, `convoy info`, a training on
# 1 and 2 ranks and `convoy selftest` on 2 work, give the same losses, and say once why ranks do not share memory. The first
# is made by a filter of system calls (seccomp), the second by an empty folder over /proc in a namespace of its own.
. "$CONVOY_SOURCE/tests/cmd/job.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "skipped: the sanitizer needs /proc"; exit 77; }
tried=0

cat >old.c <<'END'
/* Runs a program for which memfd_create() is not implemented. Exit code 77: such a filter is not possible here. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 77;
    execvp(argv[1], argv + 1);
    return 1;
}
END
cat >no_proc <<'END'
#!/bin/sh
mount -t tmpfs none /proc 2>/dev/null && [ ! -e /proc/self ] || exit 77
exec "$@"
END
chmod +x no_proc

losses() { grep -o '"step": [0-9]*, .*"loss": [-0-9.e]*' "$1/metrics.jsonl" | sed 's/, .*"loss"/ loss/'; }

# works NAME REASON COMMAND...: what must work under the command, which takes something away from the system.
works() {
    name=$1 reason=$2
    shift 2
    "$@" true || { echo "$name: not possible here"; return; }
    tried=1
    "$@" "$CONVOY" info >log 2>&1 || fail "$name: info: $(cat log)"
    for n in 1 2; do
        # shellcheck disable=SC2086
        "$@" $MPIEXEC_N $n "$CONVOY" train job.yaml --threads 1 --out $name$n >log 2>&1 || fail "$name: $n ranks: $(cat log)"
        [ "$(losses $name$n)" = "$(losses usual$n)" ] || fail "$name: $n ranks: other losses: $(losses $name$n); expected $(losses usual$n)"
        [ "$(grep -c "ranks of a node reduce by messages.*$reason" log)" = $((n - 1)) ] || fail "$name: $n ranks: the reason is not said once: $(cat log)"
    done
    # shellcheck disable=SC2086
    "$@" $MPIEXEC_N 2 "$CONVOY" selftest --threads 1 --seconds 1 >log 2>&1 || fail "$name: selftest: $(cat log)"
    ! grep -q 'warning' log || fail "$name: selftest repeats itself: $(cat log)"
    grep -q "^skipped  node-memory .*$reason" log || fail "$name: selftest does not give the reason: $(cat log)"
}

# Sums in the node's memory and those by messages add in another order unless the algorithm is the same.
printf 'comm: {algorithm: doubling}\nlog: {every: 1}\n' >>job.yaml
for n in 1 2; do
    # shellcheck disable=SC2086
    $MPIEXEC_N $n "$CONVOY" train job.yaml --threads 1 --out usual$n >log 2>&1 || fail "$n ranks: $(cat log)"
done
if "$CC" old.c -o old 2>log; then
    works memfd 'a memory file cannot be made.*3[.]17' ./old
else
    echo "memfd: the filter does not compile here: $(head -n 1 log)"
fi
if command -v unshare >/dev/null; then
    works proc '/proc/[0-9]*/fd/[0-9]*: .* with /proc mounted' unshare -rm ./no_proc
else
    echo "proc: there is no unshare"
fi
[ $failed = 1 ] || [ $tried = 1 ] || { echo "skipped: neither can be made here"; exit 77; }
exit $failed
