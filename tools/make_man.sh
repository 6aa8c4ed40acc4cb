#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_man.sh CONVOY SOURCE OUT: writes the manual pages: OUT/man1/convoy.1, OUT/man1/convoy-<verb>.1 for each verb,
# OUT/man3/<name>.3 for each public function and structure, and OUT/man5/convoy-job.5.
#
# Verbs and options come from the tables of the command (`convoy --print-tables`). Exit codes, signals, files and
# variables come from the tables of docs/reference/command.md, and the keys of the job file from
# docs/reference/job-file.md, which is made from the tables in the library. Pages of functions come from the comments of
# the headers. So nothing is written down twice.
set -eu
convoy=$1 source=$2 out=$3
reference=$source/docs/reference

version=$("$convoy" --version | sed -n '1s/^convoy \([0-9.]*\).*/\1/p')
summary=$("$convoy" --help | sed -n '1s/^convoy [^:]*: //p')
# The date of the newest version: a page must not depend on when it is built.
date=$(sed -n 's/^## \[[0-9.]*\] - \([0-9-]*\)$/\1/p' "$source/CHANGELOG.md" | head -n 1)
[ -n "$version" ] && [ -n "$summary" ] && [ -n "$date" ] || { echo "make_man.sh: cannot read the help of $convoy, or the changelog"; exit 1; }

rm -rf "$out.new" && mkdir -p "$out.new/man1" "$out.new/man3" "$out.new/man5"
tables=$out.new/tables
"$convoy" --print-tables >"$tables"
man() { awk -f "$source/tools/make_man.awk" -v date="$date" -v version="$version" "$@"; }
man -v page=verbs -v out="$out.new/man1" "$tables"

{
    cat <<END
.TH CONVOY 1 "$date" "convoy $version" "User Commands"
.SH NAME
convoy \\- $summary
.SH SYNOPSIS
.B convoy
.I VERB
.RI [ options ]
.br
.B mpiexec \\-n
.I N
.B convoy
.I VERB
.RI [ options ]
.br
.B convoy help
.I VERB
.br
.B convoy \\-\\-version
.SH DESCRIPTION
convoy trains neural networks on the CPUs of a cluster, as a job of MPI. A job file in YAML describes a training
.RB ( convoy\\-job (5)).
Each verb has a page of its own.
.PP
Started by a launcher
.RB ( mpiexec ", " srun ),
the verbs that compute run on all its ranks; started alone they are one rank. The other verbs need no launcher.
.SH VERBS
END
    man -v page=list "$tables"
    cat <<END
.SH OPTIONS
.TP
.B \\-\\-help
prints the verbs; after a verb, its options
.TP
.B \\-\\-version
prints the version
.TP
.BI @ FILE
reads the words after \\fBconvoy\\fR from a file in which a NUL follows each word, for launchers that split words
.TP
.B \\-\\-print\\-tables
prints the verbs and options as tables, from which the build makes these pages
.SH EXIT STATUS
END
    man -v page=table -v head="exit code" "$reference/command.md"
    echo ".SH SIGNALS"
    echo "A signal may be sent to any rank of a training."
    man -v page=table -v head="signal to any rank" "$reference/command.md"
    echo ".SH FILES"
    echo "In the folder of a run:"
    man -v page=table -v head="in the run's folder" "$reference/command.md"
    echo ".PP"
    echo "Elsewhere:"
    man -v page=table -v head="elsewhere" "$reference/command.md"
    echo ".SH ENVIRONMENT"
    man -v page=table -v head="variable" "$reference/command.md"
    echo ".PP"
    echo "Variables of launchers and schedulers that convoy reads:"
    man -v page=table -v head="variable of a launcher or a scheduler" "$reference/command.md"
    cat <<END
.SH EXAMPLES
.EX
convoy plan cifar10.yaml
mpiexec \\-n 4 convoy train cifar10.yaml \\-\\-out runs/cifar10
mpiexec \\-n 4 convoy train cifar10.yaml \\-\\-out runs/cifar10 \\-\\-resume
convoy test runs/cifar10
.EE
.SH SEE ALSO
END
    awk -F '\t' '$1 == "verb" { printf "convoy\\-%s(1), ", $2 }' "$tables"
    echo "convoy\\-job(5)"
    echo ".PP"
    echo "The pages in share/doc/convoy, which begin at README.md."
} >"$out.new/man1/convoy.1"

{
    printf '.TH CONVOY\\-JOB 5 "%s" "convoy %s" "File Formats"\n' "$date" "$version"
    printf '.SH NAME\nconvoy\\-job \\- the file in YAML that describes a training of convoy\n.SH DESCRIPTION\n'
    man -v page=job "$reference/job-file.md"
    printf '.SH SEE ALSO\nconvoy(1), convoy\\-train(1), convoy\\-plan(1), convoy\\-keys(1)\n'
} >"$out.new/man5/convoy-job.5"

awk -f "$source/tools/make_man3.awk" -v out="$out.new/man3" -v date="$date" -v version="$version" "$source"/include/convoy/*.h

rm -f "$tables"
rm -rf "$out" && mv "$out.new" "$out"
