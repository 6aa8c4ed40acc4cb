#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: minimal
# completion.sh: bash, zsh and fish complete verbs, options, choices, keys after --set, networks and file names. A shell
# that is not installed is left out.
. "$CONVOY_SOURCE/tests/shell.inc"
command -v bash >/dev/null || { echo "no bash"; exit 77; }
sh "$CONVOY_SOURCE/tools/make_completion.sh" "$CONVOY" "$CONVOY_SOURCE" "$work/made" || { echo "make_completion.sh fails"; exit 1; }
sh "$CONVOY_SOURCE/tools/make_completion.sh" /bin/true "$CONVOY_SOURCE" "$work/none" >log 2>&1 && fail "completions are made of a command that prints nothing"
grep -q 'lists no verb' log || fail "make_completion.sh does not say what is wrong: $(cat log)"
mkdir files && cd files && touch job.yaml 'with blank.yaml' lenet.yaml && mkdir runs || exit 1

# ---- what each shell answers: one word a line ----

# Bash splits a line at blanks and, unless told otherwise, also at '='. BREAKS is what it splits at.
cat >"$work/drive.bash" <<'END'
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=() COMP_CWORD=0
COMP_WORDBREAKS=$BREAKS
rest=$COMP_LINE
while [[ -n $rest ]]; do
    rest=${rest#"${rest%%[! ]*}"}
    if [[ $BREAKS == *=* && $rest == =* ]]; then
        word==
    elif [[ $BREAKS == *=* ]]; then
        word=${rest%%[ =]*}
    else
        word=${rest%% *}
    fi
    [[ -n $word ]] && COMP_WORDS+=("$word")
    rest=${rest#"$word"}
done
# Behind a blank, and behind '=', the cursor is in a new, empty word.
[[ $COMP_LINE == *" " || ( $BREAKS == *=* && $COMP_LINE == *= ) ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_convoy convoy "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}"
exit 0
END
bash_answers() { BREAKS=${breaks-" ='\""} bash --norc "$work/drive.bash" "$work/made/bash/convoy" "$1" 2>&1; }
fish_answers() {
    HOME=$work XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work XDG_CACHE_HOME=$work \
        fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$work/made/fish/convoy.fish" "$1" 2>&1 | cut -f 1
}
# zsh completes only in its line editor, so it runs on a pseudo terminal. Its answers are what it hands to compadd.
cat >"$work/drive.zsh" <<'END'
zmodload zsh/zpty || exit 77
zpty shell zsh -f -i
fill() { zpty -w shell "$1"; }
fill "PS1= PROMPT= RPROMPT=; unsetopt zle_bracketed_paste 2>/dev/null; fpath=($1 \$fpath); autoload -Uz compinit; compinit -D -u"
fill 'compadd() { if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
typeset -a __hits; builtin compadd -A __hits "$@"; (( $#__hits )) && print -rl -- $__hits >>'$work'/zsh.answers; builtin compadd "$@" }'
fill 'bindkey "^I" complete-word; zstyle ":completion:*" list-prompt ""; LISTMAX=100000; print -r ready >'$work'/zsh.ready'
for ((i = 0; i < 300; i++)); do [[ -s $work/zsh.ready ]] && break; sleep 0.1; done
zpty -w -n shell "$2"$'\t'
# Some answers come from several calls of compadd, so a moment is left after the first.
for ((i = 0; i < 300; i++)); do [[ -s $work/zsh.answers ]] && break; sleep 0.1; done
sleep 0.3
zpty -w shell $'\C-u'"print -r done >$work/zsh.done"
for ((i = 0; i < 300; i++)); do [[ -s $work/zsh.done ]] && break; sleep 0.1; done
zpty -d shell
END
zsh_answers() {
    rm -f "$work"/zsh.*s "$work/zsh.ready" "$work/zsh.done"
    work=$work timeout 120 zsh -f "$work/drive.zsh" "$work/made/zsh" "$1" >/dev/null 2>"$work/zsh.err" || cat "$work/zsh.err"
    [ ! -e "$work/zsh.answers" ] || cat "$work/zsh.answers"
}

# offers SHELL LINE WORD...: the shell offers each of these words.
offers() {
    shell=$1 line=$2
    shift 2
    got=$("${shell}_answers" "$line")
    for word in "$@"; do
        printf '%s\n' "$got" | grep -qxF -e "$word" || fail "$shell: '$line' does not offer '$word' but: $(printf '%s' "$got" | head -c 400)"
    done
}
# hides SHELL LINE WORD...: it offers none of them.
hides() {
    shell=$1 line=$2
    shift 2
    got=$("${shell}_answers" "$line")
    for word in "$@"; do
        printf '%s\n' "$got" | grep -qxF -e "$word" && fail "$shell: '$line' offers '$word'"
    done
}

# ---- bash ----
bash -n "$work/made/bash/convoy" || fail "the script for bash does not parse"
verbs=$("$CONVOY" --print-tables | awk -F '\t' '$1 == "verb" { print $2 }')
# shellcheck disable=SC2086
offers bash 'convoy ' $verbs help --version
offers bash 'convoy tr' train
hides bash 'convoy tr' test time
offers bash 'convoy help pl' plan
offers bash 'convoy train --r' --resume
hides bash 'convoy train --r' --out
offers bash 'convoy train --progress ' auto live plain none
offers bash 'convoy train job.yaml --progress l' live
offers bash 'convoy train --progress=pl' plain
offers bash 'convoy plan --dtype ' f32 bf16 f64
offers bash 'convoy plan --format e' explain
offers bash 'convoy train --set train.bat' train.batch= train.batch_per_rank=
offers bash 'convoy train --set update.e' update.every=
offers bash 'convoy train --set data.cache=' none memory decoded
offers bash 'convoy train --set data.cache=m' memory
hides bash 'convoy train --set data.cache=m' none decoded data.cache=memory
offers bash 'convoy train --set data.cache=memory --set comm.over' comm.overlap=
offers bash 'convoy train --set data.cache=memory --res' --resume
offers bash 'convoy train --set train.seed= ' ''
hides bash 'convoy train --set train.seed= ' train.batch=
offers bash 'convoy bench --model vgg' vgg-13 vgg-16 vgg-19 vgg-a
offers bash 'convoy plan le' lenet lenet.yaml
offers bash 'convoy time resnet-' resnet-50
hides bash 'convoy time resnet-' resnet-N
offers bash 'convoy ls r' runs
offers bash 'convoy train --out r' runs
hides bash 'convoy models ' job.yaml
# An empty answer leaves file names to bash itself (complete -o default).
[ -z "$(bash_answers 'convoy train j')" ] || fail "bash: 'convoy train j' offers more than files"
grep -q '^complete .*-o default .*convoy$' "$work/made/bash/convoy" || fail "bash: file names are not the default"
# Some people take '=' out of COMP_WORDBREAKS. The words are then whole.
breaks=" '\""
offers bash 'convoy train --set data.cache=m' data.cache=memory
offers bash 'convoy train --progress=pl' --progress=plain
unset breaks

# ---- fish ----
if command -v fish >/dev/null; then
    # shellcheck disable=SC2086
    offers fish 'convoy ' $verbs help
    offers fish 'convoy train --r' --resume
    hides fish 'convoy train --r' --stats
    offers fish 'convoy train --progress ' auto live plain none
    offers fish 'convoy train --set train.bat' train.batch= train.batch_per_rank=
    offers fish 'convoy train --set data.cache=' data.cache=none data.cache=memory
    offers fish 'convoy bench --model vgg' vgg-16
    offers fish 'convoy plan le' lenet lenet.yaml
    offers fish 'convoy train j' job.yaml
    offers fish 'convoy ls ' runs/
    hides fish 'convoy ls ' job.yaml
    hides fish 'convoy train ' train
else
    echo "no fish: its completion is not tried"
fi

# ---- zsh ----
if command -v zsh >/dev/null && zsh -f -c 'zmodload zsh/zpty' 2>/dev/null; then
    zsh -n "$work/made/zsh/_convoy" || fail "the script for zsh does not parse"
    # shellcheck disable=SC2086
    offers zsh 'convoy ' $verbs help
    offers zsh 'convoy train --r' --resume
    offers zsh 'convoy train --progress ' auto live plain none
    offers zsh 'convoy train --set train.bat' train.batch train.batch_per_rank
    offers zsh 'convoy train --set data.cache=' none memory decoded
    offers zsh 'convoy bench --model vgg' vgg-16
    offers zsh 'convoy plan le' lenet lenet.yaml
    offers zsh 'convoy train j' job.yaml
    hides zsh 'convoy train j' runs
else
    echo "no zsh with zsh/zpty: its completion is not tried"
fi
exit $failed
