// leveldb::Env on BlueFS. It translates and decides nothing.
//
// The drive is mounted with the first call that needs it: programs that only inherit the library, or
// fork before they open a database, leave it alone. Threads and clocks are those of LevelDB's own
// environment. All paths lie on the drive; a relative one begins at its root.

#include <sys/time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "leveldb/env.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "zonestore/bluefs.h"

namespace {

using leveldb::Env;
using leveldb::Slice;
using leveldb::Status;

constexpr int kMediumLifetime = 2;

Status ToStatus(zs_code code, const std::string& path) {
  if (code == ZS_OK) return Status::OK();
  const char* words = zs_last_error_of(path.data(), path.size());
  switch (code) {
    case ZS_NOT_FOUND:
      return Status::NotFound(path, words);
    case ZS_CORRUPT:
      return Status::Corruption(path, words);
    default:
      return Status::IOError(path, words);
  }
}

std::string BaseName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string Directory(const std::string& path) {
  return path.substr(0, path.size() - BaseName(path).size());
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool IsLog(const std::string& path) { return EndsWith(path, ".log"); }

// Databases with a log of which a part is missing, until they are opened again.
class TornLogs {
 public:
  void Add(const std::string& log) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    directories_.insert(Directory(log));
  }
  void Forget(const std::string& lock) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    directories_.erase(Directory(lock));
  }
  bool IsBeside(const std::string& log) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    return directories_.count(Directory(log)) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> directories_;
};

class BlueSequentialFile final : public leveldb::SequentialFile {
 public:
  BlueSequentialFile(std::string path, TornLogs* unread, zs_reader* reader)
      : path_(std::move(path)), unread_(unread), reader_(reader) {}
  ~BlueSequentialFile() override { zs_reader_free(reader_); }

  Status Read(size_t n, Slice* result, char* scratch) override {
    size_t got = 0;
    Status s = ToStatus(zs_reader_read(reader_, offset_, scratch, n, &got), path_);
    if (s.ok()) offset_ += got;
    // LevelDB takes that for the log's end, and would delete the log once what is before it is in a table.
    if (!s.ok() && IsLog(path_)) unread_->Add(path_);
    *result = Slice(scratch, s.ok() ? got : 0);
    return s;
  }
  Status Skip(uint64_t n) override {
    const uint64_t size = zs_reader_size(reader_);
    const uint64_t left = size > offset_ ? size - offset_ : 0;
    offset_ += n < left ? n : left;
    return Status::OK();
  }

 private:
  const std::string path_;
  TornLogs* const unread_;
  zs_reader* const reader_;
  uint64_t offset_ = 0;
};

class BlueRandomAccessFile final : public leveldb::RandomAccessFile {
 public:
  BlueRandomAccessFile(std::string path, zs_reader* reader)
      : path_(std::move(path)), reader_(reader) {}
  ~BlueRandomAccessFile() override { zs_reader_free(reader_); }

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    size_t got = 0;
    Status s = ToStatus(zs_reader_read(reader_, offset, scratch, n, &got), path_);
    *result = Slice(scratch, s.ok() ? got : 0);
    return s;
  }

 private:
  const std::string path_;
  zs_reader* const reader_;
};

class BlueWritableFile final : public leveldb::WritableFile {
 public:
  BlueWritableFile(std::string path, const zs_fs* fs, TornLogs* torn, zs_writer* writer)
      : path_(std::move(path)),
        fs_(fs),
        torn_(torn),
        writer_(writer),
        is_log_(IsLog(path_)),
        is_manifest_(BaseName(path_).compare(0, 8, "MANIFEST") == 0) {
    // Tables outlive what else lies beside them in a zone; which level they are of nobody says.
    if (EndsWith(path_, ".ldb") || EndsWith(path_, ".sst")) {
      zs_writer_set_lifetime(writer_, kMediumLifetime);
    }
  }
  // LevelDB drops its logs without closing them. Written out here, what is in an old log becomes
  // durable with the next sync of the new one: there is no hole in what a power cut leaves. If it
  // cannot be written out, no later sync of the database's logs succeeds.
  ~BlueWritableFile() override {
    if (zs_writer_close(writer_) != ZS_OK && is_log_) torn_->Add(path_);
    zs_writer_free(writer_);
  }

  Status Append(const Slice& data) override {
    return ToStatus(zs_writer_append(writer_, data.data(), data.size()), path_);
  }
  Status Close() override { return ToStatus(zs_writer_close(writer_), path_); }
  Status Flush() override { return ToStatus(zs_writer_flush(writer_), path_); }
  // The files that a manifest names have to be there when it is.
  Status Sync() override {
    if (is_log_ && torn_->IsBeside(path_)) {
      return Status::IOError(path_, "the end of an earlier log could not be written");
    }
    zs_code code = is_manifest_ ? zs_sync_metadata(fs_) : ZS_OK;
    if (code == ZS_OK) code = zs_writer_sync(writer_);
    return ToStatus(code, path_);
  }

 private:
  const std::string path_;
  const zs_fs* const fs_;
  TornLogs* const torn_;
  zs_writer* const writer_;
  const bool is_log_;
  const bool is_manifest_;
};

// LOG: a line with its time for each message. A line that cannot be written is lost: nobody could
// be told.
class BlueLogger final : public leveldb::Logger {
 public:
  explicit BlueLogger(zs_writer* writer) : writer_(writer) {}
  ~BlueLogger() override {
    zs_writer_close(writer_);
    zs_writer_free(writer_);
  }

  void Logv(const char* format, std::va_list arguments) override {
    std::string line = Now();
    std::va_list again;
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, arguments);
    if (length > 0) {
      const size_t begin = line.size();
      line.resize(begin + length + 1);
      std::vsnprintf(&line[begin], length + 1, format, again);
      line.pop_back();
    }
    va_end(again);
    if (line.back() != '\n') line.push_back('\n');
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    zs_writer_append(writer_, line.data(), line.size());
  }

 private:
  static std::string Now() {
    timeval now{};
    std::tm local{};
    gettimeofday(&now, nullptr);
    localtime_r(&now.tv_sec, &local);
    char seconds[32], whole[48];
    std::strftime(seconds, sizeof seconds, "%Y/%m/%d-%H:%M:%S", &local);
    std::snprintf(whole, sizeof whole, "%s.%06ld ", seconds, static_cast<long>(now.tv_usec));
    return whole;
  }

  std::mutex mutex_;
  zs_writer* const writer_;
};

struct BlueFileLock final : public leveldb::FileLock {
  explicit BlueFileLock(std::string p) : path(std::move(p)) {}
  const std::string path;
};

class BlueEnv final : public leveldb::EnvWrapper {
 public:
  explicit BlueEnv(Env* own) : EnvWrapper(own) {}

  Status NewSequentialFile(const std::string& path, leveldb::SequentialFile** result) override {
    zs_reader* reader = nullptr;
    Status s = Reader(path, &reader);
    *result = s.ok() ? new BlueSequentialFile(path, &unread_, reader) : nullptr;
    return s;
  }
  Status NewRandomAccessFile(const std::string& path, leveldb::RandomAccessFile** result) override {
    zs_reader* reader = nullptr;
    Status s = Reader(path, &reader);
    *result = s.ok() ? new BlueRandomAccessFile(path, reader) : nullptr;
    return s;
  }
  Status NewWritableFile(const std::string& path, leveldb::WritableFile** result) override {
    zs_writer* writer = nullptr;
    Status s = Writer(path, zs_create, &writer);
    *result = s.ok() ? new BlueWritableFile(path, fs_, &torn_, writer) : nullptr;
    return s;
  }
  Status NewAppendableFile(const std::string& path, leveldb::WritableFile** result) override {
    zs_writer* writer = nullptr;
    Status s = Writer(path, zs_reopen, &writer);
    *result = s.ok() ? new BlueWritableFile(path, fs_, &torn_, writer) : nullptr;
    return s;
  }
  Status NewLogger(const std::string& path, leveldb::Logger** result) override {
    zs_writer* writer = nullptr;
    Status s = Writer(path, zs_create, &writer);
    *result = s.ok() ? new BlueLogger(writer) : nullptr;
    return s;
  }

  bool FileExists(const std::string& path) override {
    zs_metadata metadata;
    return Stat(path, &metadata).ok();
  }
  Status GetFileSize(const std::string& path, uint64_t* size) override {
    zs_metadata metadata{};
    Status s = Stat(path, &metadata);
    *size = metadata.size_bytes;
    return s;
  }
  Status GetChildren(const std::string& path, std::vector<std::string>* result) override {
    result->clear();
    auto each = [](void* context, const char* name, size_t length) {
      static_cast<std::vector<std::string>*>(context)->emplace_back(name, length);
    };
    Status s = On(path, [&] { return zs_list(fs_, path.data(), path.size(), each, result); });
    // LevelDB's own environment does not leave them out, and its users count on it.
    if (s.ok()) result->insert(result->end(), {".", ".."});
    return s;
  }
  Status RemoveFile(const std::string& path) override {
    return On(path, [&] { return zs_remove(fs_, path.data(), path.size()); });
  }
  // Directories above are made too: a drive begins empty, and users name /some/db.
  Status CreateDir(const std::string& path) override {
    return On(path, [&] {
      const zs_code code = zs_make_directory(fs_, path.data(), path.size());
      return code == ZS_NOT_FOUND ? zs_make_directories(fs_, path.data(), path.size()) : code;
    });
  }
  Status RemoveDir(const std::string& path) override {
    return On(path, [&] { return zs_remove_directory(fs_, path.data(), path.size()); });
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    return On(from,
              [&] { return zs_rename(fs_, from.data(), from.size(), to.data(), to.size()); });
  }

  Status LockFile(const std::string& path, leveldb::FileLock** lock) override {
    Status s = On(path, [&] { return zs_lock(fs_, path.data(), path.size()); });
    if (s.ok()) {
      torn_.Forget(path);
      unread_.Forget(path);
    }
    *lock = s.ok() ? new BlueFileLock(path) : nullptr;
    return s;
  }
  Status UnlockFile(leveldb::FileLock* lock) override {
    auto* locked = static_cast<BlueFileLock*>(lock);
    zs_unlock(fs_, locked->path.data(), locked->path.size());
    delete locked;
    return Status::OK();
  }

  // TEST_TMPDIR is what LevelDB's own environment listens to as well.
  Status GetTestDirectory(std::string* path) override {
    const char* named = std::getenv("TEST_TMPDIR");
    *path = named != nullptr && *named != '\0' ? named : "/test";
    return On(*path, [&] { return zs_make_directories(fs_, path->data(), path->size()); });
  }

 private:
  Status Mount() {
    if (fs_.load(std::memory_order_acquire) != nullptr) return Status::OK();
    const std::lock_guard<std::mutex> one_at_a_time(mounting_);
    if (fs_.load(std::memory_order_relaxed) != nullptr) return Status::OK();
    zs_fs* fs = nullptr;
    if (zs_fs_open_named(&fs) != ZS_OK) return Status::IOError(zs_last_error());
    fs_.store(fs, std::memory_order_release);
    return Status::OK();
  }

  template <typename Call>
  Status On(const std::string& path, Call call) {
    Status s = Mount();
    return s.ok() ? ToStatus(call(), path) : s;
  }

  Status Stat(const std::string& path, zs_metadata* metadata) {
    return On(path, [&] { return zs_stat(fs_, path.data(), path.size(), metadata); });
  }
  Status Reader(const std::string& path, zs_reader** reader) {
    return On(path, [&] { return zs_open(fs_, path.data(), path.size(), reader); });
  }
  // LevelDB begins a new log before it lets go of those that it has read.
  template <typename Open>
  Status Writer(const std::string& path, Open open, zs_writer** writer) {
    if (IsLog(path) && unread_.IsBeside(path)) {
      return Status::IOError(path, "an earlier log could not be read; open the database again, or let RepairDB keep what can be read");
    }
    return On(path, [&] { return open(fs_, path.data(), path.size(), writer); });
  }

  // Logs that could not be written out, and those that could not be read.
  TornLogs torn_, unread_;
  std::mutex mounting_;
  std::atomic<zs_fs*> fs_{nullptr};
};

Env* MakeEnv(Env* own) {
  if (std::getenv("ZONESTORE_URI") == nullptr) return own;
  return new BlueEnv(own);
}

// Runs after the program's own static objects are gone, which may use the drive until the very end of the process;
// threads may still be at work.
__attribute__((destructor)) void AtTheEnd() { zs_fs_unmount_all(); }

}  // namespace

// What leveldb::Env::Default() answers. It is never deleted.
extern "C" void* zonestore_leveldb_env(void* own) {
  static Env* const env = MakeEnv(static_cast<Env*>(own));
  return env;
}
