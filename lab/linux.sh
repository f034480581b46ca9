# Shared by what builds user-mode Linux (lab/uml, kernel/ext4-lazy/build) and by what fetches packages of a newer Debian
# (lab/newer, lab/uml); sourced behind scripts/common.sh, never run.

# The suite of Debian's that is newer than the machine's own.
newer_suite=forky

need_build_tools() {
    local tool
    for tool in flex bison bc gcc make patch xz; do
        command -v "$tool" >/dev/null 2>&1 || die "$tool is missing" "apt-get install build-essential flex bison bc patch xz-utils"
    done
}

# packages_of SUITE FOLDER: from here on, apt knows the packages of that suite, by lists in FOLDER/apt. The machine's own
# lists and sources stay as they are.
packages_of() {
    local folder=$2
    mkdir -p "$folder"/apt/{lists,cache/archives}/partial
    cat >"$folder/apt/sources" <<LIST
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $1 main
LIST
    cat >"$folder/apt/conf" <<CONF
Dir::Etc::sourcelist "$folder/apt/sources";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$folder/apt/lists";
Dir::State::status "/dev/null";
Dir::Cache "$folder/apt/cache";
APT::Sandbox::User "root";
CONF
    export APT_CONFIG=$folder/apt/conf
    apt-get update -qq
}

# unpack_source PACKAGE FOLDER: the kernel's source of that package into FOLDER/PACKAGE. What user-mode Linux is not built
# from stays in the package; the configuration needs every Kconfig.
unpack_source() {
    local package=$1 folder=$2
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 ||
        die "the kernel's source comes in Debian's package $package, and this is not a Debian system" \
            "unpack it into $folder/$package, and touch $folder/$package/.unpacked"
    rm -rf "${folder:?}/$package" "$folder/deb"
    mkdir -p "$folder/deb"
    (cd "$folder/deb" && apt-get download -qq "$package" 2>"$folder/deb/log") ||
        die "cannot download $package: $(grep -m1 '^E:' "$folder/deb/log" || tail -n 1 "$folder/deb/log")" "apt-get update"
    dpkg-deb --fsys-tarfile "$folder/deb/$package"_*.deb | tar -x -O "./usr/src/$package.tar.xz" | xz -dc |
        tar -x -C "$folder" --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/net/*/*.[ch]' \
            --exclude='*/drivers/media/*.[ch]' --exclude='*/drivers/staging/*.[ch]' --exclude='*/sound/*.[ch]' \
            --exclude='*/drivers/infiniband/*.[ch]' --exclude='*/arch/*/boot/dts/*' --exclude='*/tools/testing/*' \
            --exclude='*/tools/perf/*' --exclude='*/Documentation/[a-z]*'
    rm -rf "$folder/deb"
    touch "$folder/$package/.unpacked"
}

# unpack_newer_source SUITE FOLDER [PACKAGE]: as unpack_source from that suite; by default the package that its linux-source
# stands for. Its name is in $package then.
unpack_newer_source() {
    local suite=$1 folder=$2
    command -v apt-get >/dev/null 2>&1 || die "the kernel's source comes in Debian's packages, and this is not a Debian system"
    packages_of "$suite" "$folder"
    package=${3:-$(apt-cache depends linux-source | awk '$1 == "Depends:" { print $2; exit }')}
    unpack_source "$package" "$folder"
    rm -rf "$folder/apt"
    unset APT_CONFIG
    echo "$suite" >"$folder/$package/.suite"
}

# configure SOURCE OBJECTS CONFIG…: user-mode Linux with these options and no others; of one that is named twice, the later
# line counts.
configure() {
    local source=$1 objects=$2 option want=$2/want
    shift 2
    mkdir -p "$objects"
    cat "$@" >"$want"
    if [ -f "$objects/.config" ] && cmp -s "$want" "$objects/asked"; then return; fi
    make -s -C "$source" O="$objects" ARCH=um allnoconfig >/dev/null
    cat "$want" >>"$objects/.config"
    make -s -C "$source" O="$objects" ARCH=um olddefconfig >/dev/null 2>&1
    for option in $(tac "$want" | awk -F= '/^CONFIG/ && !seen[$1]++ && $2 == "y"'); do
        grep -qx "$option" "$objects/.config" || die "$(basename "$source") as user-mode Linux has no $option" "edit $*"
    done
    cp "$want" "$objects/asked"
}

# make_linux SOURCE OBJECTS LOG TO ARGUMENT…: what is configured, as the program TO.
make_linux() {
    local source=$1 objects=$2 log=$3 to=$4
    shift 4
    if ! nice -n 10 make -s -C "$source" O="$objects" ARCH=um -j"${JOBS:-2}" "$@" linux >"$log" 2>&1; then
        grep -E -m 5 'error|Error' "$log" >&2 || tail "$log" >&2
        die "user-mode Linux does not build" "the whole of it is in $log"
    fi
    # The first name is for those who run the tests while the next one is built.
    cp "$objects/linux" "$to.new"
    mv "$to.new" "$to"
}
