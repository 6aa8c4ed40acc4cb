#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make_completion.sh CONVOY SOURCE OUT: writes the completions of three shells: OUT/bash/convoy, OUT/zsh/_convoy and
# OUT/fish/convoy.fish.
#
# Verbs, options and their choices come from `convoy --print-tables`, keys of the job file from `convoy keys`, networks
# from `convoy models`. All of them are written into the scripts, so completing a word starts no process.
set -eu
convoy=$1 source=$2 out=$3
rm -rf "$out.new" && mkdir -p "$out.new/bash" "$out.new/zsh" "$out.new/fish"
tables=$out.new/tables
{
    "$convoy" --print-tables
    # "  dtype   f32|bf16 = f32: help" below "train: help"; lists of maps have no keys that --set could name
    "$convoy" keys | awk '
        /^[a-z]/ {
            split($0, part, ": ")
            section = part[1] == "job" ? "" : part[1] ~ /^update,/ ? "update." : part[1] "."
            is_list = part[2] ~ /^a list/
        }
        /^  [a-z_]+ / && !is_list {
            words = $2
            sub(/[:,]$/, "", words)
            last = $NF
            gsub(/[()]/, "", last)
            words = words ~ /\|/ ? words : words == "true" || words == "bool" ? "true|false" : last ~ /^[a-z]+(\|[a-z]+)+$/ ? last : ""
            if (!seen[section $1]++)
                print "key\t" section $1 "\t" words
        }'
    "$convoy" models | awk '/^$/ { exit } /^[a-z]/ && $1 !~ /N$/ { print "network\t" $1 }'
} >"$tables"
for kind in verb option key network; do
    grep -q "^$kind	" "$tables" || { echo "make_completion.sh: $convoy lists no $kind"; exit 1; }
done
for shell in bash zsh fish; do
    case $shell in
    bash) file=bash/convoy ;;
    zsh) file=zsh/_convoy ;;
    fish) file=fish/convoy.fish ;;
    esac
    awk -f "$source/tools/make_completion.awk" -v shell=$shell "$tables" >"$out.new/$file"
done
rm -f "$tables"
rm -rf "$out" && mv "$out.new" "$out"
