# Sourced by build: the modules ext4lazy and jbd2lazy for Debian's packaged kernel, from the patched source, with the
# kernel's header packages unpacked, never installed; for a kernel of a newer suite with that suite's compiler (needs root).
# They stand beside the stock modules, so everything that both would register under one name gets another: exported symbols,
# file systems, caches, folders in proc and sysfs, trace systems.

# The suite that packages this version; empty if it is the machine's own.
suite_of_version() {
    command -v apt-cache >/dev/null 2>&1 && apt-cache show "$package" >/dev/null 2>&1 || echo "$newer_suite"
}

# apt knows the packages of $suite from here on.
ask_suite() {
    if [ -n "$suite" ] && [ -z "${APT_CONFIG:-}" ]; then packages_of "$suite" "$objects"; fi
}

# The lab's kernel if it is of this version, else the newest packaged one; of a newer suite the one whose headers are here.
packaged_kernel() {
    if [ -n "$suite" ] && [ -e "$objects/headers/release" ]; then
        cat "$objects/headers/release"
        return
    fi
    { ls "$PWD"/target/lab/{kernel,newer}/boot 2>/dev/null | sed -n 's/^vmlinuz-//p' | grep -F "$version." ||
        apt-cache pkgnames "linux-headers-$version." | sed -n 's/^linux-headers-//p' | grep -v -e -rt- -e -cloud-; } |
        grep -e '-amd64$' | sort -V | tail -n 1
}

# Unpacks the headers of the kernel $release into $objects/headers; of a newer suite with its compiler, which they ask for.
headers() {
    local headers=$objects/headers common=${release%-amd64}-common kbuild=linux-kbuild-${release%-amd64} package
    [ "$(cat "$headers/release" 2>/dev/null)" = "$release" ] && return
    say "ext4-lazy: fetching and unpacking the headers of Linux $release"
    rm -rf "$headers"
    mkdir -p "$headers/deb"
    if [ -n "$suite" ]; then
        ask_suite
        build_root "$headers" "linux-headers-$release"
    else
        if [ "$version" = 6.1 ]; then kbuild=linux-kbuild-6.1; fi
        (cd "$headers/deb" && apt-get download -qq "linux-headers-$release" "linux-headers-$common" "$kbuild" 2>"$log") ||
            die "cannot download the headers of Linux $release: $(grep -m1 '^E:' "$log" || tail -n 1 "$log")" "apt-get update"
        for package in "$headers"/deb/*.deb; do dpkg-deb -x "$package" "$headers"; done
        # Debian's makefile includes the other package's by its installed path.
        sed -i "s|/usr/src/|$headers/usr/src/|" "$headers/usr/src/linux-headers-$release/Makefile"
    fi
    rm -rf "$headers/deb"
    echo "$release" >"$headers/release"
}

# Copies what differs, so that only that is built.
sources() {
    local stage=$objects/stage events=include/trace/events symbol
    rm -rf "$stage"
    mkdir -p "$stage/include/linux" "$stage/$events"
    cp -r "$source/fs/jbd2" "$stage/jbd2lazy"
    cp -r "$source/fs/ext4" "$stage/ext4lazy"
    find "$stage" -type f ! -name '*.[ch]' ! -name Makefile -delete
    rm -f "$stage"/*/*-test.c
    cp "$source"/include/linux/{jbd2,journal-head}.h "$stage/include/linux"
    cp "$source/$events"/{ext4,jbd2}.h "$stage/$events"
    sed -i -E 's/^#define TRACE_SYSTEM (ext4|jbd2)$/&lazy\n#undef TRACE_INCLUDE_FILE\n#define TRACE_INCLUDE_FILE \1/' \
        "$stage/$events"/*.h
    sed -i -E -e 's/(kmem_cache_create(_usercopy)?\()"(ext4|jbd2)_/\1"\3lazy_/' \
        -e 's/"ext4_groupinfo_/"ext4lazy_groupinfo_/g' -e 's/"jbd2_([0-9]+k)"/"jbd2lazy_\1"/g' \
        -e 's|"fs/(ext4\|jbd2)"|"fs/\1lazy"|' \
        -e 's/((\.name\s*= |MODULE_ALIAS(_FS)?\(|kobject_create_and_add\())"(ext[234])"/\1"\4lazy"/' \
        "$stage"/*lazy/*.c
    sed -n 's/^EXPORT_SYMBOL\(_GPL\)\?(\(.*\));/\2/p' "$source"/fs/jbd2/*.c | while read -r symbol; do
        # A tracepoint may have the name of a function.
        printf '#define %s lazy_%s\n#define trace_%s trace_lazy_%s\n' "$symbol" "$symbol" "$symbol" "$symbol"
    done >"$stage/include/renamed.h"
    for symbol in ext4 jbd2; do
        # The include directories come before the kernel's own only by way of this variable.
        {
            echo 'NOSTDINC_FLAGS += -I$(M)/include -include $(M)/include/renamed.h'
            sed -E -e ':a;/\\$/{N;s/\\\n//;ba}' "$stage/${symbol}lazy/Makefile" |
                sed -E -e '/-test/d' -e "s/^obj-\S+/obj-m/" -e "s/^$symbol-/${symbol}lazy-/" -e "s/\b$symbol\.o/${symbol}lazy.o/"
        } >"$stage/${symbol}lazy/Kbuild"
        rm "$stage/${symbol}lazy/Makefile"
    done
    echo 'obj-m := jbd2lazy/ ext4lazy/' >"$stage/Kbuild"
    (cd "$stage" && find . -type f) | while read -r symbol; do
        cmp -s "$stage/$symbol" "$sources/$symbol" && continue
        mkdir -p "$(dirname "$sources/$symbol")"
        cp "$stage/$symbol" "$sources/$symbol"
    done
    rm -rf "$stage"
}

# Where the kernel $release is unpacked for the lab: with one of the lab's own, or here.
image() {
    for kernel in "$PWD"/target/lab/{kernel,newer} "$objects/kernel"; do
        if [ -e "$kernel/lib/modules/$release/modules.dep" ]; then return; fi
    done
    say "ext4-lazy: fetching and unpacking Linux $release"
    rm -rf "$kernel"
    ask_suite
    unpack_kernel "$release" "$kernel"
    rm -rf "$kernel/debs"
}

# Type information would need pahole.
compile() {
    local arguments=(-j"${JOBS:-2}" CONFIG_DEBUG_INFO_BTF_MODULES= modules)
    if [ -n "$suite" ]; then
        in_root "$objects/headers" nice -n 10 make -C "/usr/src/linux-headers-$release" M=/lazy "${arguments[@]}"
    else
        nice -n 10 make -C "$objects/headers/usr/src/linux-headers-$release" M="$sources" "${arguments[@]}"
    fi
}

modules() {
    local release suite kernel sources=$objects/src module
    suite=$(suite_of_version)
    mkdir -p "$objects"
    if [ ! -e "$objects/headers/release" ]; then ask_suite; fi
    release=$(packaged_kernel)
    [ -n "$release" ] ||
        die "there is no Linux $version with headers" "apt-get update; modules are made of what this Debian packages (6.1, 6.12), and $newer_suite"
    if [ -n "$suite" ]; then sources=$objects/headers/lazy; fi
    headers
    sources
    if ! compile >"$log" 2>&1; then
        grep -E -m 5 'error|Error|ERROR' "$log" >&2 || tail "$log" >&2
        die "the modules do not build" "the whole of it is in $log"
    fi
    mkdir -p "$folder/modules-$version"
    for module in jbd2lazy ext4lazy; do cp "$sources/$module/$module.ko" "$folder/modules-$version/"; done
    image
    rm -rf "$objects/apt"
    ln -sfn "$kernel" "$folder/modules-$version/kernel"
    say "ext4-lazy: $folder/modules-$version/{jbd2lazy,ext4lazy}.ko, for Linux $release"
}
