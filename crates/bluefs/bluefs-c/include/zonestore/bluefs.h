/* BlueFS for C and C++: files on a zoned drive. The same calls reach ZEAFS, which is for LevelDB and has no links.
 *
 * Every function answers a zs_code; zs_last_error() has the words for the last failure in the
 * calling thread. Strings are pointer and length, UTF-8, not terminated. Handles are freed by their
 * own zs_*_free. After the last zs_fs_free of a drive, its writers and readers stay valid memory, but calls of
 * writers fail, and the drive stays open: free them before the drive is opened again.
 * Handles may be shared by threads. A sync makes durable what was appended before it was called; on BlueFS, it
 * does not keep others from appending to the same zs_writer. In a process that was forked while a drive was
 * mounted, everything fails: the drive is its parent's. A null pointer where something is wanted is ZS_INVALID, and 0
 * from a function that answers a number; what frees takes null.
 */
#ifndef ZONESTORE_BLUEFS_H
#define ZONESTORE_BLUEFS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ZS_OK = 0,
  ZS_NOT_FOUND = 1,
  ZS_EXISTS = 2,
  ZS_NO_SPACE = 3,
  ZS_CORRUPT = 4,
  ZS_BUSY = 5,
  ZS_INVALID = 6,
  ZS_IO = 7,
  ZS_READ_ONLY = 8,
  ZS_NOT_EMPTY = 9,
  // A failure has ended all writing until the next mount.
  ZS_STOPPED = 10,
} zs_code;

typedef struct zs_fs zs_fs;
typedef struct zs_writer zs_writer;
typedef struct zs_reader zs_reader;
typedef struct zs_pending zs_pending;

typedef struct {
  uint64_t size_bytes;
  uint64_t modified_micros;
  uint64_t inode;
  uint32_t links;
  uint32_t is_directory;
} zs_metadata;

/* Words for the last failure in this thread; valid until the next call in it. */
const char* zs_last_error(void);
/* The same without the path in front, where that is what the words begin with. */
const char* zs_last_error_of(const char* path, size_t length);

/* Opens the drive file at `path` and mounts its BlueFS, or shares the mount that this process has
 * already. The mount ends with the last handle. */
zs_code zs_fs_open(const char* path, size_t path_length, zs_fs** fs);
/* The same for the drive in the environment: ZONESTORE_URI=zonestore:///path/of/drive, or zeafs:///path/of/drive. */
zs_code zs_fs_open_named(zs_fs** fs);
/* Makes everything durable and ends every mount by path, whoever uses it: for the end of the process. Handles
 * stay valid; from then on, calls of this thread fail, and calls of other threads do not come back. */
void zs_fs_unmount_all(void);
void zs_fs_free(zs_fs* fs);
uint64_t zs_fs_free_bytes(const zs_fs* fs);
/* Names the mount within the process. */
uint64_t zs_fs_identity(const zs_fs* fs);

zs_code zs_create(const zs_fs*, const char* path, size_t, zs_writer**);
zs_code zs_reopen(const zs_fs*, const char* path, size_t, zs_writer**);
zs_code zs_writer_append(zs_writer*, const char* data, size_t);
zs_code zs_writer_flush(zs_writer*);
zs_code zs_writer_range_sync(zs_writer*);
zs_code zs_writer_sync(zs_writer*);
zs_code zs_writer_truncate(zs_writer*, uint64_t size);
zs_code zs_writer_close(zs_writer*);
uint64_t zs_writer_size(const zs_writer*);
uint64_t zs_writer_inode(const zs_writer*);
/* 0 unknown, 1 short, 2 medium, 3 long, 4 extreme. */
void zs_writer_set_lifetime(zs_writer*, int lifetime);
void zs_writer_set_expected_size(zs_writer*, uint64_t bytes);
/* 1: nobody waits for the file; it leaves the last free zones to others. */
void zs_writer_set_background(zs_writer*, int background);
void zs_writer_free(zs_writer*);

zs_code zs_open(const zs_fs*, const char* path, size_t, zs_reader**);
/* `*got` is less than `length` only at the end of the file. */
zs_code zs_reader_read(const zs_reader*, uint64_t offset, char* data, size_t length, size_t* got);
typedef struct {
  uint64_t offset;
  char* data;
  size_t length;
  size_t got;   /* out: less than `length` only at the end of the file */
  int32_t code; /* out: a zs_code; zs_last_error is of the last one that failed */
} zs_read;
/* Does many reads at once and answers each in its `got` and `code`. */
void zs_reader_read_many(const zs_reader*, zs_read* reads, size_t count);
/* Begins a read of up to `length` bytes; all that are begun and not done go to the drive together. It ends
   with one of the two functions below, which also free it. */
zs_code zs_reader_read_later(const zs_reader*, uint64_t offset, size_t length, zs_pending**);
/* Waits for it. `*got` is less than `length`, which is that of the read, only at the end of the file. */
zs_code zs_pending_wait(zs_pending*, char* data, size_t length, size_t* got);
void zs_pending_free(zs_pending*);
/* What is read from now on is not put into the cache. */
void zs_reader_set_uncached(zs_reader*);
uint64_t zs_reader_size(const zs_reader*);
uint64_t zs_reader_inode(const zs_reader*);
void zs_reader_free(zs_reader*);

zs_code zs_stat(const zs_fs*, const char* path, size_t, zs_metadata*);
// Whether two names lead to one file or directory.
zs_code zs_same(const zs_fs*, const char* first, size_t, const char* second, size_t, int* same);
zs_code zs_list(const zs_fs*, const char* path, size_t,
                void (*each)(void* context, const char* name, size_t length), void* context);
zs_code zs_make_directory(const zs_fs*, const char* path, size_t);
/* With those above it; one that is there already is as good. */
zs_code zs_make_directories(const zs_fs*, const char* path, size_t);
zs_code zs_remove_directory(const zs_fs*, const char* path, size_t);
zs_code zs_remove(const zs_fs*, const char* path, size_t);
zs_code zs_rename(const zs_fs*, const char* from, size_t, const char* to, size_t);
zs_code zs_link(const zs_fs*, const char* from, size_t, const char* to, size_t);
zs_code zs_truncate(const zs_fs*, const char* path, size_t, uint64_t size);
zs_code zs_sync_metadata(const zs_fs*);
/* Takes a lock by name within the process (the drive itself is locked against others), and makes the
 * file if it is missing. */
zs_code zs_lock(const zs_fs*, const char* path, size_t);
void zs_unlock(const zs_fs*, const char* path, size_t);

#ifdef __cplusplus
}
#endif
#endif
