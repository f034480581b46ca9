# Sourced by build: the modules ext4lazy and jbd2lazy for Debian's packaged kernel, from the patched source, with the
# kernel's header packages unpacked, never installed. They stand beside the stock modules, so everything that both would
# register under one name gets another: exported symbols, file systems, caches, folders in proc and sysfs, trace systems.

# The lab's kernel if it is of this version, else the newest packaged one.
packaged_kernel() {
    local lab=$PWD/target/lab/kernel/boot
    { ls "$lab" 2>/dev/null | sed -n 's/^vmlinuz-//p' | grep -F "$version." ||
        apt-cache pkgnames "linux-headers-$version." | sed -n 's/^linux-headers-//p' | grep -v -e -rt- -e -cloud-; } |
        grep -e '-amd64$' | sort -V | tail -n 1
}

# Unpacks the headers of the kernel $release into $objects/headers.
headers() {
    local headers=$objects/headers common=${release%-amd64}-common package
    [ "$(cat "$headers/release" 2>/dev/null)" = "$release" ] && return
    say "ext4-lazy: fetching and unpacking the headers of Linux $release"
    rm -rf "$headers"
    mkdir -p "$headers/deb"
    (cd "$headers/deb" && apt-get download -qq "linux-headers-$release" "linux-headers-$common" "$kbuild" 2>"$log") ||
        die "cannot download the headers of Linux $release: $(grep -m1 '^E:' "$log" || tail -n 1 "$log")" "apt-get update"
    for package in "$headers"/deb/*.deb; do dpkg-deb -x "$package" "$headers"; done
    rm -rf "$headers/deb"
    # Debian's makefile includes the other package's by its installed path.
    sed -i "s|/usr/src/|$headers/usr/src/|" "$headers/usr/src/linux-headers-$release/Makefile"
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
            sed -E -e '/inode-test/d' -e "s/^obj-\S+/obj-m/" -e "s/^$symbol-/${symbol}lazy-/" -e "s/\b$symbol\.o/${symbol}lazy.o/" \
                "$stage/${symbol}lazy/Makefile"
        } >"$stage/${symbol}lazy/Kbuild"
        rm "$stage/${symbol}lazy/Makefile"
    done
    echo 'obj-m := jbd2lazy/ ext4lazy/' >"$stage/Kbuild"
    (cd "$stage" && find . -type f) | while read -r symbol; do
        cmp -s "$stage/$symbol" "$objects/src/$symbol" && continue
        mkdir -p "$(dirname "$objects/src/$symbol")"
        cp "$stage/$symbol" "$objects/src/$symbol"
    done
    rm -rf "$stage"
}

# Where the kernel $release is unpacked for the lab: with the lab's own kernel, or here.
image() {
    local kernel=$objects/kernel to=$objects/kernel/lib/modules/$release part
    if [ -e "$PWD/target/lab/kernel/boot/vmlinuz-$release" ]; then
        echo "$PWD/target/lab/kernel"
        return
    fi
    echo "$kernel"
    [ -e "$to/modules.dep" ] && return
    say "ext4-lazy: fetching and unpacking Linux $release" >&2
    rm -rf "$kernel"
    mkdir -p "$kernel"/{deb,boot,all} "$to/kernel"
    (cd "$kernel/deb" && apt-get download -qq "linux-image-$release" 2>"$log") ||
        die "cannot download linux-image-$release: $(grep -m1 '^E:' "$log" || tail -n 1 "$log")" "apt-get update"
    dpkg-deb --fsys-tarfile "$kernel"/deb/*.deb | tar -x -C "$kernel/all" --exclude='*/drivers/gpu' --exclude='*/drivers/net'
    cp "$kernel/all/boot/vmlinuz-$release" "$kernel/boot"
    (cd "$kernel"/all/*/modules/"$release" 2>/dev/null || cd "$kernel"/all/usr/lib/modules/"$release"
        cp modules.* "$to"
        cd kernel
        for part in fs lib crypto block net/9p drivers/{block,char,virtio,md,dax,nvdimm}; do
            if [ -d "$part" ]; then cp -r --parents "$part" "$to/kernel"; fi
        done)
    # busybox' insmod takes no compressed modules.
    find "$to" -name '*.ko.xz' -exec unxz {} +
    PATH=$PATH:/usr/sbin:/sbin depmod -b "$kernel" "$release" 2>/dev/null
    rm -rf "$kernel"/{deb,all}
}

modules() {
    local release kbuild=linux-kbuild-$version module
    release=$(packaged_kernel)
    [ -n "$release" ] || die "this Debian packages no Linux $version with headers" "apt-get update; modules are made of what it packages (6.1, 6.12)"
    mkdir -p "$objects"
    case $version in 6.1) ;; *) kbuild=linux-kbuild-${release%-amd64} ;; esac
    headers
    sources
    # Type information would need pahole.
    if ! nice -n 10 make -C "$objects/headers/usr/src/linux-headers-$release" M="$objects/src" -j"${JOBS:-2}" \
        CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$log" 2>&1; then
        grep -E -m 5 'error|Error|ERROR' "$log" >&2 || tail "$log" >&2
        die "the modules do not build" "the whole of it is in $log"
    fi
    mkdir -p "$folder/modules-$version"
    for module in jbd2lazy ext4lazy; do cp "$objects/src/$module/$module.ko" "$folder/modules-$version/"; done
    ln -sfn "$(image)" "$folder/modules-$version/kernel"
    say "ext4-lazy: $folder/modules-$version/{jbd2lazy,ext4lazy}.ko, for Linux $release"
}
