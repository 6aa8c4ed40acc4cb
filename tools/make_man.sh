#!/bin/sh
# make_man.sh CONVOY OUT: writes OUT, the manual page convoy(1), from what the command prints for --help.
set -eu
convoy=$1 out=$2

# Help is set as it is printed: a backslash, and a line that begins with a dot or a quote, would mean something to roff.
verbatim() {
    printf '.nf\n'
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"
    printf '.fi\n'
}

"$convoy" --help >"$out.new.help"
summary=$(sed -n '1s/^convoy [^:]*: //p' "$out.new.help")
version=$("$convoy" --version | sed -n '1s/^\(convoy [0-9.]*\).*/\1/p')
verbs=$(sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' "$out.new.help")
[ -n "$summary" ] && [ -n "$version" ] && [ -n "$verbs" ] || { echo "make_man.sh: cannot read the help of $convoy"; exit 1; }
{
    printf '.TH CONVOY 1 "" "%s" "User Commands"\n.SH NAME\nconvoy \\- %s\n.SH DESCRIPTION\n' "$version" "$summary"
    tail -n +2 "$out.new.help" | verbatim
    for verb in $verbs; do
        printf '.SH CONVOY %s\n' "$(echo "$verb" | tr '[:lower:]' '[:upper:]')"
        "$convoy" "$verb" --help | verbatim
    done
    printf '.SH EXIT STATUS\n0: done. 1: a fault. 2: a wrong command line. 75: stopped by a signal or the end of the\n'
    printf 'allocation, with everything saved.\n'
    printf '.SH SEE ALSO\nThe pages in share/doc/convoy, which begin at README.md.\n'
} >"$out.new"
rm "$out.new.help"
mv "$out.new" "$out"
