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

# build_root ROOT PACKAGE…: these packages and all that they need, unpacked below ROOT for `in_root`. Behind packages_of.
build_root() {
    local root=$1 package
    shift
    apt-get install -qq -y --no-install-recommends --download-only "$@" make bash coreutils grep sed gawk findutils \
        base-files >/dev/null
    mkdir -p "$root"/{dev,proc}
    for package in "$(dirname "$APT_CONFIG")"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
    ln -sf gawk "$root/usr/bin/awk"
    ln -sf bash "$root/usr/bin/sh"
}

# in_root ROOT COMMAND…: runs it there, with this machine's devices. Needs root; nothing stays mounted, however it ends.
in_root() {
    unshare --mount sh -c 'mount --bind /dev "$1/dev" && mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$@"
}

# unpack_kernel RELEASE FOLDER: boot/vmlinuz-RELEASE and lib/modules/RELEASE in FOLDER, of the packages that apt knows: what
# a guest may need of it.
unpack_kernel() {
    local release=$1 folder=$2 to=$2/lib/modules/$1 package from part
    # Older packages hold kernel and modules in one, newer ones in two of their own.
    local packages=("linux-image-$release")
    if apt-cache show "linux-modules-$release" >/dev/null 2>&1; then packages=("linux-binary-$release" "linux-modules-$release"); fi
    mkdir -p "$folder"/{boot,kernel,debs} "$to/kernel"
    (cd "$folder/debs" && apt-get download -qq "${packages[@]}") ||
        die "cannot download ${packages[*]}" "apt-get update"
    for package in "${packages[@]}"; do
        dpkg-deb --fsys-tarfile "$folder/debs/$package"_*.deb | tar -x -C "$folder/kernel" --exclude='*/drivers/gpu' \
            --exclude='*/drivers/net' --exclude='*/sound'
    done
    # The image is in boot, or beside its modules.
    from=$(find "$folder/kernel" -type d -path "*/lib/modules/$release")
    cp "$(find "$folder/kernel" -name "vmlinuz*" -type f)" "$folder/boot/vmlinuz-$release"
    (cd "$from/kernel" && for part in fs lib crypto block net/9p drivers/{block,char,scsi,nvme,virtio,md,dax,nvdimm}; do
        if [ -d "$part" ]; then cp -r --parents "$part" "$to/kernel"; fi
    done)
    find "$from" -maxdepth 1 -name 'modules.*' -exec cp {} "$to" \;
    # busybox' insmod takes no compressed modules.
    find "$to" -name '*.ko.xz' -exec unxz {} +
    PATH=$PATH:/usr/sbin:/sbin depmod -b "$folder" "$release" 2>/dev/null
    rm -rf "$folder/kernel"
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
    if ! make -s -C "$source" O="$objects" ARCH=um -j"${JOBS:-2}" "$@" linux >"$log" 2>&1; then
        grep -E -m 5 'error|Error' "$log" >&2 || tail "$log" >&2
        die "user-mode Linux does not build" "the whole of it is in $log"
    fi
    # The first name is for those who run the tests while the next one is built.
    cp "$objects/linux" "$to.new"
    mv "$to.new" "$to"
}
