// rocksdb::FileSystem::Default() for programs that know no address of a drive: the drive that the
// environment names. RocksDB's own environment asks for it too, so rocksdb::Env::Default() has threads and
// clocks of its own and files on the drive.
//
// The drive is mounted with the first path: static objects of the program and processes that fork before
// they open a database leave it alone. Paths lie on the drive; a relative one begins at its root. Two kinds
// are the host's: those of its kernel and its settings, and a file that is read from start to end, is not on
// the drive, and has no name that RocksDB gives (options that a program's user wrote).

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb_file_system.h"
#include "zonestore/bluefs.h"

namespace {

using namespace rocksdb;
using Result = IOStatus;
using Path = const std::string&;

// 1: what `zonestore rocksdb` sets for programs that take no address.
constexpr char kAsked[] = "ZONESTORE_DEFAULT_FILE_SYSTEM";

bool BeginsWith(Path text, const char* start) { return text.rfind(start, 0) == 0; }
bool EndsWith(Path text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool IsHosts(Path path) {
  for (const char* above : {"/proc/", "/sys/", "/dev/", "/etc/"}) {
    if (BeginsWith(path, above)) return true;
  }
  return false;
}

bool IsOfDatabase(Path name) {
  for (const char* start : {"CURRENT", "IDENTITY", "LOCK", "LOG", "MANIFEST-"}) {
    if (BeginsWith(name, start)) return true;
  }
  return BeginsWith(name, "OPTIONS-") || EndsWith(name, ".log") || EndsWith(name, ".sst") || EndsWith(name, ".blob") ||
         EndsWith(name, ".dbtmp");
}

// Whether both lie on the drive, or both on the host.
bool AreOfOne(Path first, Path second) { return IsHosts(first) == IsHosts(second); }

constexpr char kOtherFileSystem[] = "one of the two names is on the drive, the other one on the host";

Result OtherFileSystem(Path from, Path to) { return Result::IOError(from + " to " + to, kOtherFileSystem); }

class DefaultFileSystem final : public FileSystem {
 public:
  explicit DefaultFileSystem(std::shared_ptr<FileSystem> host) : host_(std::move(host)) {}
  const char* Name() const override { return "zonestore"; }

  Result NewSequentialFile(Path path, const FileOptions& options,
                           std::unique_ptr<FSSequentialFile>* file, IODebugContext* dbg) override {
    const auto open = [&](FileSystem& fs) { return fs.NewSequentialFile(path, options, file, dbg); };
    Result s = On(path, open);
    if (!s.IsPathNotFound() || IsHosts(path)) return s;
    const size_t slash = path.rfind('/');
    if (IsOfDatabase(slash == std::string::npos ? path : path.substr(slash + 1))) return s;
    return open(*host_).ok() ? Result::OK() : std::move(s);
  }
  Result NewRandomAccessFile(Path path, const FileOptions& options,
                             std::unique_ptr<FSRandomAccessFile>* file, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.NewRandomAccessFile(path, options, file, dbg); });
  }
  Result NewWritableFile(Path path, const FileOptions& options,
                         std::unique_ptr<FSWritableFile>* file, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.NewWritableFile(path, options, file, dbg); });
  }
  Result ReopenWritableFile(Path path, const FileOptions& options,
                            std::unique_ptr<FSWritableFile>* file, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.ReopenWritableFile(path, options, file, dbg); });
  }
  Result ReuseWritableFile(Path path, Path old, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file, IODebugContext* dbg) override {
    if (!AreOfOne(path, old)) return OtherFileSystem(old, path);
    return On(path, [&](auto& fs) { return fs.ReuseWritableFile(path, old, options, file, dbg); });
  }
  Result NewDirectory(Path path, const IOOptions& options, std::unique_ptr<FSDirectory>* directory,
                      IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.NewDirectory(path, options, directory, dbg); });
  }
  Result NewLogger(Path path, const IOOptions& options, std::shared_ptr<Logger>* logger,
                   IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.NewLogger(path, options, logger, dbg); });
  }
  Result FileExists(Path path, const IOOptions& options, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.FileExists(path, options, dbg); });
  }
  Result GetChildren(Path path, const IOOptions& options, std::vector<std::string>* names,
                     IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.GetChildren(path, options, names, dbg); });
  }
  Result DeleteFile(Path path, const IOOptions& options, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.DeleteFile(path, options, dbg); });
  }
  Result Truncate(Path path, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.Truncate(path, size, options, dbg); });
  }
  Result CreateDir(Path path, const IOOptions& options, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.CreateDir(path, options, dbg); });
  }
  Result CreateDirIfMissing(Path path, const IOOptions& options, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.CreateDirIfMissing(path, options, dbg); });
  }
  Result DeleteDir(Path path, const IOOptions& options, IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.DeleteDir(path, options, dbg); });
  }
  Result GetFileSize(Path path, const IOOptions& options, uint64_t* size,
                     IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.GetFileSize(path, options, size, dbg); });
  }
  Result GetFileModificationTime(Path path, const IOOptions& options, uint64_t* time,
                                 IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.GetFileModificationTime(path, options, time, dbg); });
  }
  Result RenameFile(Path from, Path to, const IOOptions& options, IODebugContext* dbg) override {
    if (!AreOfOne(from, to)) return OtherFileSystem(from, to);
    return On(from, [&](auto& fs) { return fs.RenameFile(from, to, options, dbg); });
  }
  Result LinkFile(Path from, Path to, const IOOptions& options, IODebugContext* dbg) override {
    // RocksDB copies a file that it asked to be moved then.
    if (!AreOfOne(from, to)) return Result::NotSupported(from, kOtherFileSystem);
    return On(from, [&](auto& fs) { return fs.LinkFile(from, to, options, dbg); });
  }
  Result NumFileLinks(Path path, const IOOptions& options, uint64_t* count,
                      IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.NumFileLinks(path, options, count, dbg); });
  }
  Result AreFilesSame(Path first, Path second, const IOOptions& options, bool* same,
                      IODebugContext* dbg) override {
    if (!AreOfOne(first, second)) {
      *same = false;
      return Result::OK();
    }
    return On(first, [&](auto& fs) { return fs.AreFilesSame(first, second, options, same, dbg); });
  }
  Result LockFile(Path path, const IOOptions& options, FileLock** lock,
                  IODebugContext* dbg) override {
    Result s = On(path, [&](auto& fs) { return fs.LockFile(path, options, lock, dbg); });
    if (s.ok() && IsHosts(path)) {
      const std::lock_guard<std::mutex> guard(locking_);
      host_locks_.insert(*lock);
    }
    return s;
  }
  // Who gives a lock back names no path.
  Result UnlockFile(FileLock* lock, const IOOptions& options, IODebugContext* dbg) override {
    std::unique_lock<std::mutex> guard(locking_);
    const bool is_hosts = host_locks_.erase(lock) > 0;
    guard.unlock();
    if (is_hosts) return host_->UnlockFile(lock, options, dbg);
    return On("", [&](auto& fs) { return fs.UnlockFile(lock, options, dbg); });
  }
  Result GetTestDirectory(const IOOptions& options, std::string* path,
                          IODebugContext* dbg) override {
    return On("", [&](auto& fs) { return fs.GetTestDirectory(options, path, dbg); });
  }
  Result GetAbsolutePath(Path path, const IOOptions& options, std::string* absolute,
                         IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.GetAbsolutePath(path, options, absolute, dbg); });
  }
  Result GetFreeSpace(Path path, const IOOptions& options, uint64_t* bytes,
                      IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.GetFreeSpace(path, options, bytes, dbg); });
  }
  Result IsDirectory(Path path, const IOOptions& options, bool* is_directory,
                     IODebugContext* dbg) override {
    return On(path, [&](auto& fs) { return fs.IsDirectory(path, options, is_directory, dbg); });
  }
  // Only files of the drive answer reads later.
  Result Poll(std::vector<void*>& handles, size_t count) override {
    return On("", [&](auto& fs) { return fs.Poll(handles, count); });
  }
  Result AbortIO(std::vector<void*>& handles) override {
    return On("", [&](auto& fs) { return fs.AbortIO(handles); });
  }

 private:
  template <typename Call>
  Result On(Path path, Call call) {
    if (IsHosts(path)) return call(*host_);
    Result s = Mount();
    return s.ok() ? call(*drive_) : s;
  }

  Result Mount() {
    if (mounted_.load(std::memory_order_acquire)) return Result::OK();
    const std::lock_guard<std::mutex> one_at_a_time(mounting_);
    if (mounted_.load(std::memory_order_relaxed)) return Result::OK();
    zs_fs* fs = nullptr;
    if (zs_fs_open_named(&fs) != ZS_OK) return Result::IOError(zs_last_error());
    drive_ = zonestore::NewFileSystem(fs);
    mounted_.store(true, std::memory_order_release);
    return Result::OK();
  }

  const std::shared_ptr<FileSystem> host_;
  std::mutex mounting_;
  std::shared_ptr<FileSystem> drive_;
  std::atomic<bool> mounted_{false};
  std::mutex locking_;
  std::set<FileLock*> host_locks_;
};

using Own = std::shared_ptr<FileSystem> (*)();

// Never destroyed: threads may be at work until the end.
std::shared_ptr<FileSystem>& Default(Own own) {
  static auto* const chosen = [own] {
    const char* asked = std::getenv(kAsked);
    auto* answer = new std::shared_ptr<FileSystem>(own());
    if (asked != nullptr && std::string(asked) == "1") answer->reset(new DefaultFileSystem(*answer));
    return answer;
  }();
  return *chosen;
}

}  // namespace

// Builds what rocksdb::FileSystem::Default() is to answer in `answer`, which it also returns; `own` is RocksDB's.
extern "C" void* zonestore_rocksdb_default_file_system(void* answer, Own own) {
  return new (answer) std::shared_ptr<FileSystem>(Default(own));
}
