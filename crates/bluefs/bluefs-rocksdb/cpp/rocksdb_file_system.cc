// rocksdb::FileSystem on BlueFS (see rocksdb_file_system.h), and its registration for the URI
// scheme zonestore:///path/of/drive, for file systems and environments alike.

#include "rocksdb_file_system.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/utilities/object_registry.h"
#include "zonestore/bluefs.h"
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace zonestore {
namespace {

using rocksdb::Env;
using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Direct reads and writes are rounded by BlueFS itself; this only tells RocksDB's buffers.
constexpr size_t kAlignment = 4096;

IOStatus ToStatus(zs_code code, const std::string& path) {
  if (code == ZS_OK) return IOStatus::OK();
  const char* words = zs_last_error_of(path.data(), path.size());
  switch (code) {
    case ZS_NOT_FOUND:
      return IOStatus::PathNotFound(path, words);
    case ZS_NO_SPACE:
      return IOStatus::NoSpace(path, words);
    case ZS_CORRUPT: {
      // Not Corruption: RocksDB asserts that what goes wrong with CURRENT and IDENTITY is an error of
      // this kind, and recovery to a point in time takes Corruption of a log for its end, and goes on
      // without what was acknowledged. Data loss keeps it from trying again; the scope tells our own
      // callers that it is damage.
      IOStatus damaged = IOStatus::IOError(path, words);
      damaged.SetDataLoss(true);
      damaged.SetScope(IOStatus::kIOErrorScopeRange);
      return damaged;
    }
    case ZS_STOPPED: {
      // What RocksDB tries again, and lets its writers wait for, will not come. It takes data loss for the end.
      IOStatus stopped = IOStatus::IOError(path, words);
      stopped.SetDataLoss(true);
      return stopped;
    }
    case ZS_BUSY:
      // RocksDB knows a lock that somebody holds as an error of this kind.
      return IOStatus::IOError("lock " + path, words);
    default:
      return IOStatus::IOError(path, words);
  }
}

// Of SSTs, whose damage RocksDB's own checksums call Corruption too.
IOStatus TableStatus(zs_code code, const std::string& path) {
  if (code != ZS_CORRUPT) return ToStatus(code, path);
  return IOStatus::Corruption(path, zs_last_error_of(path.data(), path.size()));
}

// Whether this thread is one that RocksDB keeps for flushes: it names them.
bool IsFlushing() {
  char name[16];
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && std::strncmp(name, "rocksdb:high", 12) == 0;
}

// Calls `read` again where a flush cannot read the SST that it has just written, for five seconds: a flush that fails
// ends all writes of a database.
template <typename Read>
zs_code Patiently(Read read) {
  constexpr int kFirstPauseMicros = 10'000;
  constexpr int kTries = 9;
  zs_code code = read();
  for (int tries = 0; code == ZS_IO && tries < kTries && IsFlushing(); ++tries) {
    Env::Default()->SleepForMicroseconds(kFirstPauseMicros << tries);
    code = read();
  }
  return code;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// RocksDB's log of messages: LOG in the database's directory, or another one with the database's name in front.
bool IsOfMessages(const std::string& path) {
  return path == "LOG" || EndsWith(path, "/LOG") || EndsWith(path, "_LOG");
}

size_t UniqueId(uint64_t mount, uint64_t inode, char* id, size_t max_size) {
  char whole[18] = {};
  std::memcpy(whole, &mount, 8);
  std::memcpy(whole + 8, &inode, 8);
  if (max_size < sizeof whole) return 0;
  std::memcpy(id, whole, sizeof whole);
  return sizeof whole;
}

class SequentialFile final : public FSSequentialFile {
 public:
  SequentialFile(std::string path, zs_reader* reader)
      : path_(std::move(path)),
        reader_(reader),
        is_identity_(path_.substr(path_.rfind('/') + 1) == "IDENTITY") {}
  ~SequentialFile() override { zs_reader_free(reader_); }

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) override {
    IOStatus s = PositionedRead(offset_, n, options, result, scratch, dbg);
    if (s.ok()) offset_ += result->size();
    return s;
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions&, Slice* result,
                          char* scratch, IODebugContext*) override {
    size_t got = 0;
    IOStatus s = ToStatus(zs_reader_read(reader_, offset, scratch, n, &got), path_);
    if (!s.ok() && is_identity_) {
      // RocksDB gives a database whose identity file is empty another identity, and writes it anew if
      // it may write. It would not open one whose identity cannot be read, for the sake of 36 bytes.
      *result = Slice();
      return IOStatus::OK();
    }
    *result = Slice(scratch, got);
    return s;
  }
  IOStatus Skip(uint64_t n) override {
    const uint64_t size = zs_reader_size(reader_);
    offset_ = n > size - std::min(size, offset_) ? size : offset_ + n;
    return IOStatus::OK();
  }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }

 private:
  const std::string path_;
  zs_reader* const reader_;
  const bool is_identity_;
  uint64_t offset_ = 0;
};

// A read that RocksDB asks about later, by FileSystem::Poll.
class LaterRead {
 public:
  using Callback = std::function<void(const rocksdb::FSReadRequest&, void*)>;

  LaterRead(std::string path, const rocksdb::FSReadRequest& request, Callback callback, void* argument)
      : path_(std::move(path)), callback_(std::move(callback)), argument_(argument) {
    request_.offset = request.offset;
    request_.len = request.len;
    request_.scratch = request.scratch;
  }
  LaterRead(const LaterRead&) = delete;
  ~LaterRead() { zs_pending_free(pending_); }

  IOStatus Begin(zs_reader* reader) {
    return TableStatus(zs_reader_read_later(reader, request_.offset, request_.len, &pending_), path_);
  }
  void Wait() {
    if (pending_ == nullptr) return;
    size_t got = 0;
    request_.status = TableStatus(
        zs_pending_wait(std::exchange(pending_, nullptr), request_.scratch, request_.len, &got), path_);
    request_.result = Slice(request_.scratch, got);
    callback_(request_, argument_);
  }
  // Its bytes have a place of their own until somebody waits for them, so nothing writes to RocksDB's
  // buffer after this. RocksDB frees with the callback what it keeps of the read.
  void Abort() {
    if (pending_ == nullptr) return;
    zs_pending_free(std::exchange(pending_, nullptr));
    request_.status = IOStatus::Aborted();
    callback_(request_, argument_);
  }

 private:
  const std::string path_;
  rocksdb::FSReadRequest request_;
  const Callback callback_;
  void* const argument_;
  zs_pending* pending_ = nullptr;
};

class RandomAccessFile final : public FSRandomAccessFile {
 public:
  // `is_new`: opened the first time since it was written.
  RandomAccessFile(const FileOptions& options, std::string path, zs_reader* reader, uint64_t mount, bool is_new)
      : path_(std::move(path)),
        reader_(reader),
        mount_(mount),
        direct_(options.use_direct_reads),
        is_tail_needed_(is_new) {}
  ~RandomAccessFile() override { zs_reader_free(reader_); }

  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    if (scratch == nullptr && n > 0) return ReadMapped(offset, n, result);
    size_t got = 0;
    const auto read = [&] { return zs_reader_read(reader_, offset, scratch, n, &got); };
    const bool is_tail = offset + n >= tail_.load(std::memory_order_relaxed);
    if (is_tail) tail_.store(kNoTail, std::memory_order_relaxed);
    const zs_code code = Patiently(read);
    if (code != ZS_OK && is_tail && !is_tail_needed_) {
      // RocksDB reads by itself what it needs and does not find in this buffer. So a small table opens although a
      // block of it is damaged. A new table has to be whole: behind it, RocksDB removes what it was made of.
      *result = Slice();
      return IOStatus::OK();
    }
    *result = Slice(scratch, got);
    return TableStatus(code, path_);
  }
  // RocksDB 7.8 asks for this only where it reads ahead with direct I/O.
  IOStatus ReadAsync(rocksdb::FSReadRequest& request, const IOOptions&,
                     std::function<void(const rocksdb::FSReadRequest&, void*)> callback,
                     void* argument, void** handle, rocksdb::IOHandleDeleter* deleter,
                     IODebugContext*) override {
    auto read = std::make_unique<LaterRead>(path_, request, std::move(callback), argument);
    IOStatus s = read->Begin(reader_);
    if (!s.ok()) return s;
    *handle = read.release();
    *deleter = [](void* read) { delete static_cast<LaterRead*>(read); };
    return s;
  }
  bool use_direct_io() const override { return direct_; }
  size_t GetRequiredBufferAlignment() const override { return kAlignment; }
  // Where it is not supported, RocksDB reads into a buffer of its own, in one call. The first time, that is up to 512 KiB of
  // the end of a table that it opens; if that read fails, the table is not opened. Later buffers are taken for full
  // without a look at how much has come.
  IOStatus Prefetch(uint64_t offset, size_t n, const IOOptions&, IODebugContext*) override {
    const bool is_first = !has_prefetched_.exchange(true, std::memory_order_relaxed);
    if (is_first && offset + n >= zs_reader_size(reader_)) tail_.store(offset + n, std::memory_order_relaxed);
    return IOStatus::NotSupported("Prefetch");
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* reqs, size_t num_reqs, const IOOptions&,
                     IODebugContext*) override {
    std::vector<zs_read> reads(num_reqs);
    for (size_t i = 0; i < num_reqs; ++i) {
      reads[i] = zs_read{reqs[i].offset, reqs[i].scratch, reqs[i].len, 0, ZS_OK};
    }
    zs_reader_read_many(reader_, reads.data(), num_reqs);
    for (size_t i = 0; i < num_reqs; ++i) {
      reqs[i].status = TableStatus(static_cast<zs_code>(reads[i].code), path_);
      reqs[i].result = Slice(reqs[i].scratch, reads[i].got);
    }
    return IOStatus::OK();
  }
  size_t GetUniqueId(char* id, size_t max_size) const override {
    return UniqueId(mount_, zs_reader_inode(reader_), id, max_size);
  }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }

 private:
  // Plain and cuckoo tables read without a buffer where mapped files are asked for, and expect the
  // bytes to stay as long as the file is open. The whole file is read once for them.
  IOStatus ReadMapped(uint64_t offset, size_t n, Slice* result) const {
    std::lock_guard<std::mutex> guard(mapping_);
    if (mapped_.empty()) {
      std::string whole(zs_reader_size(reader_), '\0');
      size_t got = 0;
      IOStatus s = TableStatus(zs_reader_read(reader_, 0, whole.data(), whole.size(), &got), path_);
      if (!s.ok()) return s;
      whole.resize(got);
      mapped_ = std::move(whole);
    }
    const size_t from = std::min<uint64_t>(offset, mapped_.size());
    *result = Slice(mapped_.data() + from, std::min(n, mapped_.size() - from));
    return IOStatus::OK();
  }

  const std::string path_;
  zs_reader* const reader_;
  const uint64_t mount_;
  const bool direct_;
  const bool is_tail_needed_;
  static constexpr uint64_t kNoTail = UINT64_MAX;
  // Where the end of the table that is read next in advance ends.
  mutable std::atomic<uint64_t> tail_ = kNoTail;
  std::atomic<bool> has_prefetched_ = false;
  mutable std::mutex mapping_;
  mutable std::string mapped_;
};

// A call on a file. RocksDB lets one thread at a time write to a file (a sync may run beside it), and
// hands the file on by atomics too, which the thread sanitizer does not see in a library that is not built
// with it. So it is told that a call that begins comes after those that have ended.
class Turn {
 public:
  explicit Turn(zs_writer* writer) : writer_(writer) {
#ifdef __SANITIZE_THREAD__
    __tsan_acquire(writer_);
#endif
  }
  Turn(const Turn&) = delete;
  ~Turn() {
#ifdef __SANITIZE_THREAD__
    __tsan_release(writer_);
#endif
  }
  operator zs_writer*() const { return writer_; }

 private:
  zs_writer* const writer_;
};

class WritableFile final : public FSWritableFile {
 public:
  WritableFile(const FileOptions& options, std::string path, zs_writer* writer, uint64_t mount)
      : FSWritableFile(options),
        path_(std::move(path)),
        writer_(writer),
        mount_(mount),
        direct_(options.use_direct_writes),
        is_log_(path_.size() > 4 && EndsWith(path_, ".log")),
        is_of_messages_(IsOfMessages(path_)) {}
  ~WritableFile() override { zs_writer_free(Turn(writer_)); }

  using FSWritableFile::Append;

  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    return Done(zs_writer_append(Turn(writer_), data.data(), data.size()));
  }
  // The checksum of verified appends is RocksDB's to use: BlueFS has checksums of its own.
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo&, IODebugContext* dbg) override {
    return PositionedAppend(data, offset, options, dbg);
  }
  // RocksDB rewrites nothing but the last sector: what is there already is cut off first.
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    const uint64_t size = zs_writer_size(Turn(writer_));
    if (offset > size) return IOStatus::InvalidArgument(path_, "append behind the end of the file");
    if (offset < size) {
      IOStatus s = Done(zs_writer_truncate(Turn(writer_), offset));
      if (!s.ok()) return s;
    }
    return Append(data, options, dbg);
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    return Done(zs_writer_truncate(Turn(writer_), size));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    return Done(zs_writer_close(Turn(writer_)));
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override {
    return Done(zs_writer_flush(Turn(writer_)));
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return Done(zs_writer_sync(Turn(writer_)));
  }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return Done(zs_writer_sync(Turn(writer_)));
  }
  // SyncWAL, FlushWAL(true), and synced writes with two write queues need it.
  bool IsSyncThreadSafe() const override { return true; }
  // Where `strict_bytes_per_sync` is set, RocksDB counts on nothing being left behind.
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions& options, IODebugContext* dbg) override {
    if (strict_bytes_per_sync_) return Sync(options, dbg);
    return Done(zs_writer_range_sync(Turn(writer_)));
  }
  bool use_direct_io() const override { return direct_; }
  size_t GetRequiredBufferAlignment() const override { return kAlignment; }
  void SetWriteLifeTimeHint(Env::WriteLifeTimeHint hint) override {
    FSWritableFile::SetWriteLifeTimeHint(hint);
    zs_writer_set_lifetime(Turn(writer_), hint >= Env::WLTH_SHORT ? hint - Env::WLTH_SHORT + 1 : 0);
  }
  // RocksDB gives compactions the low priority and memtables on their way out the high one.
  void SetIOPriority(Env::IOPriority priority) override {
    FSWritableFile::SetIOPriority(priority);
    zs_writer_set_background(Turn(writer_), priority == Env::IO_LOW);
  }
  void SetPreallocationBlockSize(size_t size) override {
    FSWritableFile::SetPreallocationBlockSize(size);
    zs_writer_set_expected_size(Turn(writer_), size);
  }
  // Zones are not allocated ahead of time.
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    return zs_writer_size(Turn(writer_));
  }
  size_t GetUniqueId(char* id, size_t max_size) const override {
    return UniqueId(mount_, zs_writer_inode(Turn(writer_)), id, max_size);
  }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }

 private:
  // RocksDB takes no space for an error that it may recover from by itself. If the memtable happens
  // to be empty then, it goes on writing to the log that failed, which its own assertion turns into
  // the end of the process. Data loss is what makes it stay stopped until the database is reopened.
  //
  // A message that cannot be written is lost: nobody could be told. RocksDB goes on with a log of messages that has
  // failed, which its own assertion turns into the end of the process as well.
  IOStatus Done(zs_code code) const {
    if (is_of_messages_) return IOStatus::OK();
    IOStatus s = ToStatus(code, path_);
    if (!s.ok() && is_log_) s.SetDataLoss(true);
    return s;
  }

  const std::string path_;
  zs_writer* const writer_;
  const uint64_t mount_;
  const bool direct_;
  const bool is_log_;
  const bool is_of_messages_;
};

struct LockedFile final : public rocksdb::FileLock {
  explicit LockedFile(std::string p) : path(std::move(p)) {}
  const std::string path;
};

// NewRandomRWFile and NewMemoryMappedFileBuffer stay NotSupported: nothing is overwritten in a zone.
// RocksDB asks for the first to write a sequence number into an SST that it ingests, and keeps the number
// in its manifest alone where it cannot; for the second it never asks.
class BlueFileSystem final : public rocksdb::FileSystem {
 public:
  explicit BlueFileSystem(zs_fs* fs) : fs_(fs) {}
  ~BlueFileSystem() override { zs_fs_free(fs_); }

  static const char* kClassName() { return "zonestore"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions&,
                             std::unique_ptr<FSSequentialFile>* result, IODebugContext*) override {
    zs_reader* reader = nullptr;
    IOStatus s = ToStatus(zs_open(fs_, path.data(), path.size(), &reader), path);
    result->reset(s.ok() ? new SequentialFile(path, reader) : nullptr);
    return s;
  }
  // Whoever asks for direct reads keeps what was read already, or does not want it kept.
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext*) override {
    zs_reader* reader = nullptr;
    IOStatus s = ToStatus(zs_open(fs_, path.data(), path.size(), &reader), path);
    if (s.ok() && options.use_direct_reads) zs_reader_set_uncached(reader);
    const bool is_new = s.ok() && Forget(path);
    result->reset(s.ok() ? new RandomAccessFile(options, path, reader, zs_fs_identity(fs_), is_new) : nullptr);
    return s;
  }
  IOStatus Poll(std::vector<void*>& handles, size_t) override {
    for (void* read : handles) static_cast<LaterRead*>(read)->Wait();
    return IOStatus::OK();
  }
  IOStatus AbortIO(std::vector<void*>& handles) override {
    for (void* read : handles) static_cast<LaterRead*>(read)->Abort();
    return IOStatus::OK();
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext*) override {
    zs_writer* writer = nullptr;
    IOStatus s = ToStatus(zs_create(fs_, path.data(), path.size(), &writer), path);
    if (s.ok()) {
      std::lock_guard<std::mutex> guard(new_mutex_);
      new_.insert(path);
    }
    Give(s, options, path, writer, result);
    return s;
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result, IODebugContext*) override {
    zs_writer* writer = nullptr;
    IOStatus s = ToStatus(zs_reopen(fs_, path.data(), path.size(), &writer), path);
    Give(s, options, path, writer, result);
    return s;
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                             const FileOptions& options, std::unique_ptr<FSWritableFile>* result,
                             IODebugContext* dbg) override {
    IOStatus s = DeleteFile(old_path, IOOptions(), dbg);
    return s.ok() ? NewWritableFile(path, options, result, dbg) : s;
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions&,
                        std::unique_ptr<FSDirectory>* result, IODebugContext*) override;

  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override {
    zs_metadata metadata;
    zs_code code = zs_stat(fs_, path.data(), path.size(), &metadata);
    return code == ZS_NOT_FOUND ? IOStatus::NotFound(path) : ToStatus(code, path);
  }
  IOStatus GetChildren(const std::string& path, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    result->clear();
    auto each = [](void* context, const char* name, size_t length) {
      static_cast<std::vector<std::string>*>(context)->emplace_back(name, length);
    };
    zs_code code = zs_list(fs_, path.data(), path.size(), each, result);
    return code == ZS_NOT_FOUND ? IOStatus::NotFound(path, zs_last_error()) : ToStatus(code, path);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) override {
    Forget(path);
    return ToStatus(zs_remove(fs_, path.data(), path.size()), path);
  }
  IOStatus Truncate(const std::string& path, size_t size, const IOOptions&,
                    IODebugContext*) override {
    return ToStatus(zs_truncate(fs_, path.data(), path.size(), size), path);
  }
  IOStatus CreateDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return ToStatus(zs_make_directory(fs_, path.data(), path.size()), path);
  }
  // Directories above are made too: a drive begins empty, and users name /some/db.
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions&,
                              IODebugContext*) override {
    return ToStatus(zs_make_directories(fs_, path.data(), path.size()), path);
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return ToStatus(zs_remove_directory(fs_, path.data(), path.size()), path);
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions&, uint64_t* size,
                       IODebugContext*) override {
    zs_metadata metadata{};
    IOStatus s = ToStatus(zs_stat(fs_, path.data(), path.size(), &metadata), path);
    *size = metadata.size_bytes;
    return s;
  }
  IOStatus GetFileModificationTime(const std::string& path, const IOOptions&, uint64_t* seconds,
                                   IODebugContext*) override {
    zs_metadata metadata{};
    IOStatus s = ToStatus(zs_stat(fs_, path.data(), path.size(), &metadata), path);
    *seconds = metadata.modified_micros / 1000000;
    return s;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    Forget(from);
    return ToStatus(zs_rename(fs_, from.data(), from.size(), to.data(), to.size()), from);
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions&,
                    IODebugContext*) override {
    return ToStatus(zs_link(fs_, from.data(), from.size(), to.data(), to.size()), from);
  }
  IOStatus NumFileLinks(const std::string& path, const IOOptions&, uint64_t* count,
                        IODebugContext*) override {
    zs_metadata metadata{};
    IOStatus s = ToStatus(zs_stat(fs_, path.data(), path.size(), &metadata), path);
    *count = metadata.links;
    return s;
  }
  IOStatus AreFilesSame(const std::string& first, const std::string& second, const IOOptions&,
                        bool* same, IODebugContext*) override {
    int answer = 0;
    zs_code code =
        zs_same(fs_, first.data(), first.size(), second.data(), second.size(), &answer);
    *same = answer != 0;
    return ToStatus(code, first);
  }
  IOStatus LockFile(const std::string& path, const IOOptions&, rocksdb::FileLock** lock,
                    IODebugContext*) override {
    IOStatus s = ToStatus(zs_lock(fs_, path.data(), path.size()), path);
    *lock = s.ok() ? new LockedFile(path) : nullptr;
    return s;
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    auto* locked = static_cast<LockedFile*>(lock);
    zs_unlock(fs_, locked->path.data(), locked->path.size());
    delete locked;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions& options, std::string* path,
                            IODebugContext* dbg) override {
    *path = "/test";
    return CreateDirIfMissing(*path, options, dbg);
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute,
                           IODebugContext*) override {
    *absolute = !path.empty() && path[0] == '/' ? path : "/" + path;
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, uint64_t* bytes,
                        IODebugContext*) override {
    *bytes = zs_fs_free_bytes(fs_);
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* is_directory,
                       IODebugContext*) override {
    zs_metadata metadata{};
    IOStatus s = ToStatus(zs_stat(fs_, path.data(), path.size(), &metadata), path);
    *is_directory = metadata.is_directory != 0;
    return s;
  }

 private:
  void Give(const IOStatus& s, const FileOptions& options, const std::string& path,
            zs_writer* writer, std::unique_ptr<FSWritableFile>* result) const {
    result->reset(s.ok() ? new WritableFile(options, path, writer, zs_fs_identity(fs_)) : nullptr);
  }
  // Whether nobody has opened the file since it was created; the next time, somebody has.
  bool Forget(const std::string& path) {
    std::lock_guard<std::mutex> guard(new_mutex_);
    return new_.erase(path) > 0;
  }

  zs_fs* const fs_;
  std::mutex new_mutex_;
  std::unordered_set<std::string> new_;
};

class Directory final : public FSDirectory {
 public:
  explicit Directory(const zs_fs* fs) : fs_(fs) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return ToStatus(zs_sync_metadata(fs_), "fsync of a directory");
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  const zs_fs* const fs_;
};

IOStatus BlueFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                      std::unique_ptr<FSDirectory>* result, IODebugContext* dbg) {
  bool is_directory = false;
  IOStatus s = IsDirectory(path, options, &is_directory, dbg);
  if (s.ok() && !is_directory) s = IOStatus::IOError(path, "is no directory");
  result->reset(s.ok() ? new Directory(fs_) : nullptr);
  return s;
}

constexpr char kScheme[] = "zonestore";
constexpr char kSeparator[] = "://";

std::shared_ptr<rocksdb::FileSystem> Open(const std::string& uri, std::string* error) {
  const std::string path = uri.substr(std::strlen(kScheme) + std::strlen(kSeparator));
  zs_fs* fs = nullptr;
  if (zs_fs_open(path.data(), path.size(), &fs) != ZS_OK) {
    *error = zs_last_error();
    return nullptr;
  }
  return NewFileSystem(fs);
}

// An Env that keeps its file system alive, for programs that know env_uri only.
class BlueEnv final : public rocksdb::EnvWrapper {
 public:
  explicit BlueEnv(std::unique_ptr<Env> env) : EnvWrapper(std::move(env)) {}
  static const char* kClassName() { return "zonestore"; }
  const char* Name() const override { return kClassName(); }
};

rocksdb::ObjectLibrary::PatternEntry Pattern() {
  return rocksdb::ObjectLibrary::PatternEntry(kScheme, false).AddSeparator(kSeparator, false);
}

bool Register() {
  auto& library = *rocksdb::ObjectLibrary::Default();
  library.AddFactory<rocksdb::FileSystem>(
      Pattern(), [](const std::string& uri, std::unique_ptr<rocksdb::FileSystem>* guard,
                    std::string* error) -> rocksdb::FileSystem* {
        const std::string path = uri.substr(std::strlen(kScheme) + std::strlen(kSeparator));
        zs_fs* fs = nullptr;
        if (zs_fs_open(path.data(), path.size(), &fs) != ZS_OK) {
          *error = zs_last_error();
          return nullptr;
        }
        guard->reset(new BlueFileSystem(fs));
        return guard->get();
      });
  library.AddFactory<Env>(Pattern(),
                          [](const std::string& uri, std::unique_ptr<Env>* guard,
                             std::string* error) -> Env* {
                            auto fs = Open(uri, error);
                            if (fs == nullptr) return nullptr;
                            guard->reset(new BlueEnv(rocksdb::NewCompositeEnv(fs)));
                            return guard->get();
                          });
  return true;
}

const bool registered = Register();

// Runs after the program's own static objects are gone, which may use a drive until the very end of the process;
// threads of databases that nobody has closed may still be at work.
__attribute__((destructor)) void AtTheEnd() { zs_fs_unmount_all(); }

}  // namespace

std::shared_ptr<rocksdb::FileSystem> NewFileSystem(zs_fs* fs) {
  (void)registered;
  return std::make_shared<BlueFileSystem>(fs);
}

}  // namespace zonestore
