#!/usr/bin/env bash
# Makes the runs behind docs/results.md: every suite by every mode, with one model, into a directory with a report.
#
#   docs/results.sh DATA OUT [MODEL [LIMIT [SUITE…]]]
#
# DATA holds the data sets as eval's help says (memory/*.jsonl, nested_kv), OUT takes the results, MODEL is offline where it
# isn't named, LIMIT bounds the questions of each run (0 is all), SUITEs pick some. A run that was stopped goes on from what
# it has. MEMGPT names the program, "memgpt" where it isn't set.
set -euo pipefail

data=$1 out=$2 model=${3:-offline} limit=${4:-0}
shift $(($# < 4 ? $# : 4))
only=" $* "
memgpt=${MEMGPT:-memgpt}

# run SUITE FILE OUT FLAGS… [-- MODES…]: one run a mode; without modes all.
run() {
  local suite=$1 file=$2 dir=$out/$3 flags=() mode
  shift 3
  [[ $only == "  " || $only == *" $suite "* ]] || return 0
  while [ $# -gt 0 ] && [ "$1" != -- ]; do flags+=("$1"); shift; done
  [ $# -eq 0 ] || shift
  [ $# -gt 0 ] || set -- memgpt prefetch both none full sliding summary rag oracle
  for mode; do
    "$memgpt" eval "$suite" --data "$data/$file" --model "$model" --mode "$mode" --limit "$limit" --cache "$out/vectors" \
      --out "$dir" "${flags[@]}" >/dev/null
  done
}

run nested-kv nested_kv nested-kv -- memgpt full sliding rag
run nested-kv nested_kv nested-kv --window 16384 -- memgpt full
run relay nested_kv relay -- memgpt full rag
run dmr memory/dmr_a.jsonl dmr
run dmr memory/dmr_a.jsonl dmr --pooled -- memgpt prefetch both full summary rag oracle
run opener memory/msc_personas.json opener -- memgpt
run docqa memory/xquad_en.jsonl docqa -- memgpt prefetch both rag oracle
run docqa memory/cmrc_zh.jsonl docqa -- memgpt prefetch both rag oracle
run locomo memory/locomo_a.jsonl locomo
run longmemeval memory/longmemeval_sessions.jsonl longmemeval
run madial memory/madial_zh.jsonl madial
run memdaily memory/memdaily_zh_a.jsonl memdaily

for dir in "$out"/*/; do
  if compgen -G "$dir*.json" >/dev/null; then "$memgpt" eval report "$dir"; fi
done
