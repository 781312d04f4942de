# Sourced by the benchmarks that run peers: their Python environment, below the cache folder.

make_peers_venv() {
  local venv=$REPRISE_CACHE/venv-peers
  local requirements=$REPRISE_ROOT/tests/bench/peers/requirements.txt
  local wanted
  wanted=$(sha256sum <"$requirements")
  [ "$(cat "$venv/requirements.sha256" 2>/dev/null)" != "$wanted" ] || return 0
  say "Making the Python environment of the peers"
  rm -rf "$venv"
  "$REPRISE_SYSTEM_PYTHON" -m venv "$venv" </dev/null
  "$venv/bin/python" -m pip --disable-pip-version-check install --quiet --only-binary=:all: \
    --requirement "$requirements" </dev/null
  printf '%s\n' "$wanted" >"$venv/requirements.sha256"
}
