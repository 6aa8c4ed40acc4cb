# SPDX-License-Identifier: BSD-3-Clause
# make_completion.awk: writes the completion of one shell (shell=bash, zsh or fish); tools/make_completion.sh calls it.
#
# Lines of the input: "verb NAME ARGUMENTS SUMMARY", "option NAME VALUE KIND HELP" below their verb, "key NAME CHOICES",
# "network NAME", separated by tabs. The other lines of `convoy --print-tables` are not read.
BEGIN { FS = "\t" }
$1 == "verb" {
    verb[++nverb] = $2
    summary[nverb] = $4
    # What a word that is no option may be: networks of the zoo beside files, folders alone, or files.
    takes[nverb] = $3 == "" || $3 ~ /^\[-/ ? "nothing" : $3 ~ /MODEL/ ? "networks" : \
        $3 ~ /^\[FOLDER\]/ ? "folders" : "files"
}
$1 == "option" {
    option[nverb, ++noption[nverb]] = $2
    value[nverb, noption[nverb]] = $3
    kind[nverb, noption[nverb]] = kind_of($2, $3, $4)
    help[nverb, noption[nverb]] = short($5)
}
$1 == "key" { key[++nkey] = $2; words[nkey] = $3 }
$1 == "network" { networks = networks (networks == "" ? "" : " ") $2 }
END {
    if (shell == "bash")
        write_bash()
    else if (shell == "zsh")
        write_zsh()
    else
        write_fish()
}

# What completes the value of an option: flag, choice, set, networks, folders, files or nothing.
function kind_of(name, value, kind) {
    if (kind == "flag" || kind == "choice" || kind == "set")
        return kind
    if (name == "--model")
        return "networks"
    return value ~ /^FOLDER/ ? "folders" : value ~ /FILE|^SOURCE|^JOB|^RUN|^PATH/ ? "files" : "nothing"
}
# The beginning of a help text, for the line beside an option.
function short(text,    at) {
    at = match(text, /[;:(]/)
    if (at > 20)
        text = substr(text, 1, at - 1)
    gsub(/[`'"\\$]/, "", text)
    sub(/ +$/, "", text)
    return text
}
function spaced(choices) {
    gsub(/\|/, " ", choices)
    return choices
}
function verbs(    i, list) {
    for (i = 1; i <= nverb; i++)
        list = list (i > 1 ? " " : "") verb[i]
    return list
}
function options(v,    i, list) {
    for (i = 1; i <= noption[v]; i++)
        list = list option[v, i] " "
    return list "--help"
}

# ---- bash ----

function write_bash(    v, i, arms, k) {
    print "# bash completion for convoy, written by its build."
    print "_convoy_keys='" all_keys("=", " ") "'"
    print "_convoy_networks='" networks "'"
    print ""
    print "# _convoy_words WORDS [PREFIX]: those words that begin as the current one."
    print "_convoy_words() {"
    print "    mapfile -t COMPREPLY < <(compgen -P \"${2-}\" -W \"$1\" -- \"$cur\")"
    print "}"
    print "_convoy_files() { # an empty answer means file names: complete -o default"
    print "    COMPREPLY=()"
    print "}"
    print "_convoy_folders() {"
    print "    mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")"
    print "    compopt -o filenames 2>/dev/null || :"
    print "}"
    print "_convoy_models() { # networks, and files"
    print "    mapfile -t COMPREPLY < <(compgen -W \"$_convoy_networks\" -- \"$cur\"; compgen -f -- \"$cur\")"
    print "    compopt -o filenames 2>/dev/null || :"
    print "}"
    print "_convoy_nothing() {"
    print "    COMPREPLY=()"
    print "    compopt +o default +o bashdefault 2>/dev/null || :"
    print "}"
    print "_convoy_set() { # KEY=VALUE"
    print "    case $cur in"
    for (k = 1; k <= nkey; k++)
        if (words[k] != "")
            print "    " key[k] "=*) cur=${cur#*=} && _convoy_words '" spaced(words[k]) "' '" key[k] "=' ;;"
    print "    *=*) _convoy_files ;;"
    print "    *)"
    print "        _convoy_words \"$_convoy_keys\""
    print "        compopt -o nospace 2>/dev/null || :"
    print "        ;;"
    print "    esac"
    print "}"
    print ""
    print "_convoy_option() { # the value of an option: VERB OPTION"
    print "    case $1:$2 in"
    for (v = 1; v <= nverb; v++)
        for (i = 1; i <= noption[v]; i++)
            if (kind[v, i] != "flag")
                print "    " verb[v] ":" option[v, i] ") " bash_action(v, i) " ;;"
    print "    *) return 1 ;;"
    print "    esac"
    print "}"
    print ""
    print "_convoy() {"
    print "    local word glue= rest=$COMP_LINE i cur prev prefix= words=()"
    print "    # Bash splits words at '=' and ':'. They are joined again unless blanks stood between them."
    print "    for ((i = 0; i <= COMP_CWORD; i++)); do"
    print "        word=${COMP_WORDS[i]}"
    print "        if [[ $i -gt 0 && $rest == [![:blank:]]* && ( $word == [=:]* || $glue == yes ) ]]; then"
    print "            words[${#words[@]}-1]+=$word"
    print "        elif [[ $i -gt 0 && -z $rest && -z $word && $glue == yes ]]; then"
    print "            : # the cursor stands behind '='"
    print "        else"
    print "            words+=(\"$word\")"
    print "        fi"
    print "        rest=${rest#\"${rest%%[![:blank:]]*}\"}"
    print "        rest=${rest#\"$word\"}"
    print "        [[ $word == [=:]* ]] && glue=yes || glue="
    print "    done"
    print "    cur=${words[${#words[@]}-1]}"
    print "    prev=${words[${#words[@]}-2]-}"
    print "    COMPREPLY=()"
    print "    if [[ ${#words[@]} -le 2 ]]; then"
    print "        _convoy_words '" verbs() " help --help --version'"
    print "        return"
    print "    fi"
    print "    if [[ $cur == --*=* ]]; then"
    print "        prev=${cur%%=*} prefix=${cur%%=*}= cur=${cur#*=}"
    print "    fi"
    print "    if [[ $prev == --* ]] && _convoy_option \"${words[1]}\" \"$prev\"; then"
    print "        COMPREPLY=(\"${COMPREPLY[@]/#/$prefix}\")"
    print "    elif [[ $cur == -* ]]; then"
    print "        case ${words[1]} in"
    for (v = 1; v <= nverb; v++)
        print "        " verb[v] ") _convoy_words '" options(v) "' ;;"
    print "        esac"
    print "    else"
    print "        case ${words[1]} in"
    print "        help) _convoy_words '" verbs() "' ;;"
    for (v = 1; v <= nverb; v++)
        print "        " verb[v] ") _convoy_" (takes[v] == "networks" ? "models" : takes[v]) " ;;"
    print "        esac"
    print "    fi"
    print "    # If bash splits words at \47=\47, it replaces only what stands behind the last one."
    print "    word=${words[${#words[@]}-1]}"
    print "    if [[ $COMP_WORDBREAKS == *=* && $word == *=* ]]; then"
    print "        word=${word%\"${word##*=}\"}"
    print "        COMPREPLY=(\"${COMPREPLY[@]#\"$word\"}\")"
    print "    fi"
    print "}"
    print "complete -o bashdefault -o default -F _convoy convoy"
}
function bash_action(v, i) {
    if (kind[v, i] == "choice")
        return "_convoy_words '" spaced(value[v, i]) "'"
    if (kind[v, i] == "networks")
        return "_convoy_words \"$_convoy_networks\""
    return "_convoy_" kind[v, i]
}
function all_keys(after, between,    k, list) {
    for (k = 1; k <= nkey; k++)
        list = list (k > 1 ? between : "") key[k] after
    return list
}

# ---- zsh ----

function write_zsh(    v, i, k) {
    print "#compdef convoy"
    print "# zsh completion for convoy, written by its build."
    print "_convoy_set() { # KEY=VALUE"
    print "    if compset -P '*='; then"
    print "        case $IPREFIX in"
    for (k = 1; k <= nkey; k++)
        if (words[k] != "")
            print "        *" key[k] "=) compadd -- " spaced(words[k]) " ;;"
    print "        *) _files ;;"
    print "        esac"
    print "    else"
    print "        compadd -S = -- " all_keys("", " ")
    print "    fi"
    print "}"
    print "_convoy_networks() { compadd -- " networks " }"
    print "_convoy_models() { _convoy_networks; _files }"
    print "_convoy() {"
    print "    local -a verbs"
    print "    verbs=("
    for (v = 1; v <= nverb; v++)
        print "        '" verb[v] ":" short(summary[v]) "'"
    print "        'help:prints the options of a verb'"
    print "    )"
    print "    if ((CURRENT == 2)); then"
    print "        _describe verb verbs"
    print "        return"
    print "    fi"
    print "    shift words"
    print "    ((CURRENT--))"
    print "    case $words[1] in"
    print "    help) _describe verb verbs ;;"
    for (v = 1; v <= nverb; v++) {
        print "    " verb[v] ")"
        print "        _arguments \\"
        for (i = 1; i <= noption[v]; i++)
            print "            '" zsh_option(v, i) "' \\"
        print "            '--help[prints the options]'" (takes[v] == "nothing" ? "" : " \\")
        if (takes[v] != "nothing")
            print "            '*:argument:" zsh_action(takes[v]) "'"
        print "        ;;"
    }
    print "    esac"
    print "}"
    print "_convoy \"$@\""
}
function zsh_action(what) {
    return what == "networks" ? "_convoy_models" : what == "folders" ? "_files -/" : what == "files" ? "_files" : " "
}
function zsh_option(v, i,    text, action) {
    text = help[v, i]
    gsub(/\[/, "\\[", text)
    gsub(/\]/, "\\]", text)
    if (kind[v, i] == "flag")
        return option[v, i] "[" text "]"
    if (kind[v, i] == "choice")
        action = "(" spaced(value[v, i]) ")"
    else if (kind[v, i] == "set")
        action = "_convoy_set"
    else if (kind[v, i] == "networks")
        action = "_convoy_networks"
    else
        action = zsh_action(kind[v, i])
    return (kind[v, i] == "set" ? "*" : "") option[v, i] "=[" text "]:value:" action
}

# ---- fish ----

function write_fish(    v, i, k, n, word, list) {
    print "# fish completion for convoy, written by its build."
    print "function __convoy_verb # whether the verb is one of the arguments"
    print "    set -l words (commandline -opc)"
    print "    test (count $words) -gt 1; and contains -- $words[2] $argv"
    print "end"
    print "function __convoy_first"
    print "    test (count (commandline -opc)) -eq 1"
    print "end"
    print "function __convoy_set # KEY=VALUE"
    for (k = 1; k <= nkey; k++) {
        list = list " " key[k] "="
        n = split(words[k], word, "|")
        for (i = 1; i <= n; i++)
            list = list " " key[k] "=" word[i]
    }
    print "    string join \\n --" list
    print "end"
    print "complete -c convoy -n __convoy_first -f"
    for (v = 1; v <= nverb; v++)
        print "complete -c convoy -n __convoy_first -a " verb[v] " -d '" short(summary[v]) "'"
    print "complete -c convoy -n __convoy_first -a help -d 'prints the options of a verb'"
    print "complete -c convoy -n __convoy_first -l version -d 'prints the version'"
    print "complete -c convoy -l help -d 'prints the options'"
    print "complete -c convoy -n '__convoy_verb help' -f -a '" verbs() "'"
    for (v = 1; v <= nverb; v++) {
        if (takes[v] == "nothing")
            print "complete -c convoy -n '__convoy_verb " verb[v] "' -f"
        else if (takes[v] == "folders")
            print "complete -c convoy -n '__convoy_verb " verb[v] "' -f -a '(__fish_complete_directories)'"
        else if (takes[v] == "networks")
            print "complete -c convoy -n '__convoy_verb " verb[v] "' -a '" networks "'"
        for (i = 1; i <= noption[v]; i++)
            print "complete -c convoy -n '__convoy_verb " verb[v] "' -l " substr(option[v, i], 3) fish_value(v, i) \
                " -d '" help[v, i] "'"
    }
}
function fish_value(v, i) {
    if (kind[v, i] == "flag")
        return ""
    if (kind[v, i] == "choice")
        return " -x -a '" spaced(value[v, i]) "'"
    if (kind[v, i] == "set")
        return " -x -a '(__convoy_set)'"
    if (kind[v, i] == "networks")
        return " -x -a '" networks "'"
    if (kind[v, i] == "folders")
        return " -x -a '(__fish_complete_directories)'"
    return kind[v, i] == "files" ? " -r -F" : " -x"
}
