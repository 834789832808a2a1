#!/bin/sh
# Installs tpuprof from the wheels beside this script; needs no network and no compiler.
#
#   sh install.sh [FOLDER]            into FOLDER (~/.local/share/tpuprof), with a link in ~/.local/bin
#   sh install.sh --remove [FOLDER]   removes both again
#
# PYTHON names the interpreter, BIN the folder of the link.
set -eu

pythons="@PYTHONS@"
machine="@MACHINE@"
here=$(cd "$(dirname "$0")" && pwd)
bin=${BIN:-$HOME/.local/bin}
man=$(dirname "$bin")/share/man/man1

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

remove=no
if [ "${1:-}" = --remove ]; then
    remove=yes
    shift
fi
folder=${1:-$HOME/.local/share/tpuprof}

if [ $remove = yes ]; then
    [ -f "$folder/.tpuprof-bundle" ] || fail "$folder was not made by this script; nothing was removed."
    for link in "$bin/tpuprof" "$man/tpuprof.1"; do
        case $(readlink "$link" 2>/dev/null || true) in "$folder"/*) rm -f "$link" ;; esac
    done
    rm -rf "$folder"
    echo "Removed $folder."
    exit 0
fi

[ "$(uname -m)" = "$machine" ] || fail "these wheels are for $machine, this machine is $(uname -m)."
if [ -e "$folder" ] && [ ! -f "$folder/.tpuprof-bundle" ]; then
    fail "$folder exists and was not made by this script; name another folder."
fi

version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

found=""
candidates=${PYTHON:-python3}
if [ -z "${PYTHON:-}" ]; then
    for version in $pythons; do candidates="$candidates python$version"; done
fi
for candidate in $candidates; do
    version=$(version_of "$candidate")
    for wanted in $pythons; do
        [ -n "$found" ] || [ "$version" != "$wanted" ] || found=$candidate
    done
done
[ -n "$found" ] || fail "these wheels are for Python $pythons, and none is here; PYTHON=... names one."

if command -v sha256sum >/dev/null; then
    (cd "$here" && sha256sum --quiet -c SHA256SUMS) || fail "the archive is damaged; copy it again."
fi
"$found" -m venv --clear "$folder" || fail "no virtual environment could be made; on Debian: apt install python3-venv."
touch "$folder/.tpuprof-bundle"
"$folder/bin/python" -m pip --disable-pip-version-check install --quiet --no-index --find-links "$here/wheels" \
    tpuprof-tui || fail "pip could not install the wheels; what it said stands above."
mkdir -p "$bin"
ln -sf "$folder/bin/tpuprof" "$bin/tpuprof"
if mkdir -p "$man" 2>/dev/null; then
    ln -sf "$folder/share/man/man1/tpuprof.1" "$man/tpuprof.1"
fi
echo "Installed $("$bin/tpuprof" --version) to $folder; run $bin/tpuprof."
case :$PATH: in *:"$bin":*) ;; *) echo "To have it on the path: export PATH=\"$bin:\$PATH\"" ;; esac
