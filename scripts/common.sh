# Shared by the scripts beside it; sourced, never run. Puts the caller into the project's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! command -v cargo >/dev/null 2>&1 && [ -x "$HOME/.cargo/bin/cargo" ]; then
    PATH="$HOME/.cargo/bin:$PATH"
fi
say() { printf '%s\n' "$*"; }
die() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    if [ $# -gt 1 ]; then printf 'hint: %s\n' "$2" >&2; fi
    exit 1
}
# named_tests ARGUMENT...: cargo test with the name of tests. Of a name that none has cargo runs none, and passes.
named_tests() {
    cargo test --quiet "$@" |
        awk '{ print } /^running [1-9]/ { any = 1 } END { if (!any) { print "no test of this name ran"; exit 1 } }'
}
