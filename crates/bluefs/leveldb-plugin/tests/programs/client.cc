// An ordinary LevelDB program: it knows nothing of drives. CLIENT STEP [DATABASE] exits with 0 if all
// went as it should, otherwise with 1 and a line that says what did not.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leveldb/cache.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/write_batch.h"

using leveldb::DB;
using leveldb::Env;
using leveldb::Options;
using leveldb::ReadOptions;
using leveldb::Status;
using leveldb::WriteOptions;

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      std::fprintf(stderr, "client: line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

void Ok(const Status& s, const char* what) {
  if (s.ok()) return;
  std::fprintf(stderr, "client: %s: %s\n", what, s.ToString().c_str());
  std::exit(1);
}
#define OK(call) Ok(call, #call)

const size_t kKeys = 20000;

std::string Key(size_t n) {
  char key[32];
  std::snprintf(key, sizeof key, "key%08zu", n);
  return key;
}

// Does not compress, so that sizes are what they seem.
std::string Value(size_t n, size_t length = 200) {
  std::string value(length, ' ');
  uint64_t x = n * 2654435761u + 1;
  for (char& c : value) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    c = static_cast<char>(x);
  }
  return value;
}

WriteOptions Synced() {
  WriteOptions options;
  options.sync = true;
  return options;
}

Options Small() {
  Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  options.write_buffer_size = 256 << 10;
  options.max_file_size = 1 << 20;
  return options;
}

DB* Open(const Options& options, const std::string& path) {
  DB* db = nullptr;
  OK(DB::Open(options, path, &db));
  return db;
}

using Map = std::map<std::string, std::string>;

void Same(DB* db, const Map& expected) {
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(ReadOptions()));
  auto at = expected.begin();
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++at) {
    CHECK(at != expected.end());
    CHECK(it->key() == at->first && it->value() == at->second);
  }
  OK(it->status());
  CHECK(at == expected.end());
}

// Every third key overwritten, every fifth deleted.
Map Expected() {
  Map map;
  for (size_t n = 0; n < kKeys; n++) {
    if (n % 5 != 0) map[Key(n)] = Value(n % 3 == 0 ? n + 1 : n);
  }
  return map;
}

int Work(const std::string& path) {
  Options options = Small();
  std::unique_ptr<const leveldb::FilterPolicy> bloom(leveldb::NewBloomFilterPolicy(10));
  options.filter_policy = bloom.get();
  std::unique_ptr<DB> db(Open(options, path));
  for (size_t n = 0; n < kKeys; n++) {
    OK(db->Put(n % 100 == 0 ? Synced() : WriteOptions(), Key(n), Value(n)));
  }
  const leveldb::Snapshot* before = db->GetSnapshot();
  leveldb::WriteBatch batch;
  for (size_t n = 0; n < kKeys; n++) {
    if (n % 3 == 0) batch.Put(Key(n), Value(n + 1));
    if (n % 5 == 0) batch.Delete(Key(n));
  }
  OK(db->Write(Synced(), &batch));
  const Map expected = Expected();
  Same(db.get(), expected);
  ReadOptions old;
  old.snapshot = before;
  old.verify_checksums = true;
  std::string value;
  for (size_t n = 0; n < kKeys; n += 15) {
    OK(db->Get(old, Key(n), &value));
    CHECK(value == Value(n));
    CHECK(db->Get(ReadOptions(), Key(n), &value).IsNotFound());
  }
  db->ReleaseSnapshot(before);
  db->CompactRange(nullptr, nullptr);
  Same(db.get(), expected);
  CHECK(db->GetProperty("leveldb.stats", &value));
  CHECK(value.find("Compactions") != std::string::npos);
  CHECK(db->GetProperty("leveldb.sstables", &value));
  // Backwards, and into the middle.
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(ReadOptions()));
  size_t seen = 0;
  for (it->SeekToLast(); it->Valid(); it->Prev()) seen++;
  CHECK(seen == expected.size());
  it->Seek(Key(5));
  CHECK(it->Valid() && it->key() == Key(6));
  it.reset();
  // Nobody else may have it, and it is there when it was let go.
  DB* second = nullptr;
  CHECK(DB::Open(options, path, &second).IsIOError() && second == nullptr);
  db.reset();
  options.error_if_exists = true;
  CHECK(DB::Open(options, path, &second).IsInvalidArgument());
  options.error_if_exists = false;
  options.reuse_logs = true;
  for (size_t round = 0; round < 3; round++) {
    db.reset(Open(options, path));
    OK(db->Put(WriteOptions(), "reopened", std::to_string(round)));
    Map more = expected;
    more["reopened"] = std::to_string(round);
    Same(db.get(), more);
    db.reset();
  }
  return 0;
}

int Verify(const std::string& path) {
  std::unique_ptr<DB> db(Open(Small(), path));
  Map expected = Expected();
  expected["reopened"] = "2";
  Same(db.get(), expected);
  return 0;
}

// Without its manifest and CURRENT, a database comes back from its tables and logs.
int Repair(const std::string& path) {
  Env* env = Env::Default();
  std::vector<std::string> names;
  OK(env->GetChildren(path, &names));
  for (const std::string& name : names) {
    if (name == "CURRENT" || name.compare(0, 8, "MANIFEST") == 0) {
      OK(env->RemoveFile(path + "/" + name));
    }
  }
  Options options = Small();
  options.create_if_missing = false;
  DB* db = nullptr;
  CHECK(DB::Open(options, path, &db).IsInvalidArgument());
  OK(leveldb::RepairDB(path, options));
  return Verify(path);
}

int Destroy(const std::string& path) {
  OK(leveldb::DestroyDB(path, Small()));
  Options options = Small();
  options.create_if_missing = false;
  DB* db = nullptr;
  CHECK(DB::Open(options, path, &db).IsInvalidArgument());
  return 0;
}

std::string Read(const std::string& path) {
  std::string data;
  OK(leveldb::ReadFileToString(Env::Default(), path, &data));
  return data;
}

// What leveldb/env.h promises, call by call. LevelDB's own environment does the same.
int Environment(const std::string& root) {
  Env* env = Env::Default();
  CHECK(env == Env::Default());
  const std::string file = root + "/file", other = root + "/other";
  OK(env->CreateDir(root));
  CHECK(env->FileExists(root));
  CHECK(env->CreateDir(root).IsIOError());

  // Names that are not there.
  leveldb::SequentialFile* sequential = nullptr;
  leveldb::RandomAccessFile* random = nullptr;
  leveldb::WritableFile* writable = nullptr;
  std::vector<std::string> names{"x"};
  uint64_t size = 0;
  CHECK(env->NewSequentialFile(file, &sequential).IsNotFound() && sequential == nullptr);
  CHECK(env->NewRandomAccessFile(file, &random).IsNotFound() && random == nullptr);
  CHECK(env->GetChildren(root + "/none", &names).IsNotFound() && names.empty());
  CHECK(env->GetFileSize(file, &size).IsNotFound());
  CHECK(env->RemoveFile(file).IsNotFound());
  CHECK(env->RenameFile(file, other).IsNotFound());
  CHECK(env->NewWritableFile(root + "/none/file", &writable).IsNotFound() && writable == nullptr);
  CHECK(env->NewAppendableFile(root, &writable).IsIOError() && writable == nullptr);
  CHECK(!env->FileExists(file));

  // Writing, appending, reading.
  OK(env->NewWritableFile(file, &writable));
  OK(writable->Append("hello "));
  OK(writable->Flush());
  CHECK(Read(file) == "hello ");
  OK(writable->Append("world"));
  OK(writable->Sync());
  OK(writable->Close());
  delete writable;
  OK(env->NewAppendableFile(file, &writable));
  OK(writable->Append("!"));
  delete writable;
  CHECK(Read(file) == "hello world!");
  OK(env->GetFileSize(file, &size));
  CHECK(size == 12);
  char scratch[64];
  leveldb::Slice got;
  OK(env->NewSequentialFile(file, &sequential));
  OK(sequential->Skip(6));
  OK(sequential->Read(3, &got, scratch));
  CHECK(got == "wor");
  OK(sequential->Skip(100));
  OK(sequential->Read(3, &got, scratch));
  CHECK(got.empty());
  delete sequential;
  OK(env->NewRandomAccessFile(file, &random));
  OK(random->Read(6, 6, &got, scratch));
  CHECK(got == "world!");

  // An open file outlives its name; a rename takes the place of what is there.
  OK(env->NewWritableFile(other, &writable));
  OK(writable->Append("new"));
  delete writable;
  OK(env->RenameFile(other, file));
  CHECK(Read(file) == "new" && !env->FileExists(other));
  OK(random->Read(0, 5, &got, scratch));
  CHECK(got == "hello");
  delete random;
  OK(env->NewWritableFile(file, &writable));
  delete writable;
  CHECK(Read(file).empty());

  // Directories.
  OK(env->CreateDir(root + "/a"));
  OK(env->CreateDir(root + "/a/b"));
  OK(env->GetChildren(root, &names));
  std::sort(names.begin(), names.end());
  CHECK((names == std::vector<std::string>{".", "..", "a", "file"}));
  CHECK(env->RemoveDir(root + "/a").IsIOError());
  CHECK(env->RemoveFile(root + "/a").IsIOError());
  OK(env->DeleteDir(root + "/a/b"));  // the old name of the same
  OK(env->DeleteFile(file));
  CHECK(!env->FileExists(file));

  // Locks.
  leveldb::FileLock *lock = nullptr, *again = nullptr;
  OK(env->LockFile(root + "/LOCK", &lock));
  CHECK(env->FileExists(root + "/LOCK"));
  CHECK(env->LockFile(root + "/LOCK", &again).IsIOError() && again == nullptr);
  OK(env->UnlockFile(lock));
  OK(env->LockFile(root + "/LOCK", &again));
  OK(env->UnlockFile(again));

  // The log takes lines of any length, and ends each.
  leveldb::Logger* logger = nullptr;
  OK(env->NewLogger(root + "/LOG", &logger));
  auto log = [logger](const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    logger->Logv(format, arguments);
    va_end(arguments);
  };
  const std::string long_one(5000, 'x');
  log("short %d", 1);
  log("%s\n", long_one.c_str());
  delete logger;
  const std::string lines = Read(root + "/LOG");
  CHECK(lines.find(" short 1\n") != std::string::npos);
  CHECK(lines.find(long_one + "\n") != std::string::npos);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);

  std::string test_directory;
  OK(env->GetTestDirectory(&test_directory));
  CHECK(env->FileExists(test_directory));
  return 0;
}

// What a drive does besides.
int OnADrive(const std::string& root) {
  Env* env = Env::Default();
  // Relative names begin at its root.
  OK(leveldb::WriteStringToFile(env, "data", "relative"));
  CHECK(Read("/relative") == "data");
  // It begins empty: a directory comes with those above it.
  OK(env->CreateDir(root + "/b/c"));
  CHECK(env->FileExists(root));
  // Reading past the end is reading nothing.
  leveldb::RandomAccessFile* random = nullptr;
  OK(env->NewRandomAccessFile("/relative", &random));
  char scratch[8];
  leveldb::Slice got;
  OK(random->Read(2, 8, &got, scratch));
  CHECK(got == "ta");
  OK(random->Read(100, 1, &got, scratch));
  CHECK(got.empty());
  delete random;
  return 0;
}

// Puts until the log has changed, then one with sync. The memtable of the old log is never written
// out, so that nothing but the old log has what was put without sync.
int Hole(const std::string& path) {
  struct Idle final : leveldb::EnvWrapper {
    using EnvWrapper::EnvWrapper;
    void Schedule(void (*)(void*), void*) override {}
  };
  Options options = Small();
  options.env = new Idle(Env::Default());
  DB* db = Open(options, path);
  auto log = [&] {
    std::vector<std::string> names;
    OK(options.env->GetChildren(path, &names));
    std::string newest;
    for (const std::string& name : names) {
      if (name.size() > 4 && name.substr(name.size() - 4) == ".log") newest = std::max(newest, name);
    }
    return newest;
  };
  const std::string first = log();
  size_t n = 0;
  while (log() == first) {
    OK(db->Put(WriteOptions(), Key(n), Value(n)));
    n++;
  }
  OK(db->Put(Synced(), Key(n), Value(n)));
  std::printf("%zu\n", n + 1);
  std::fflush(stdout);
  kill(getpid(), 9);
  return 1;
}

const char kTorn[] = "torn record";
// Whether writes fail that contain it.
std::atomic<bool> tears{false};

// The library writes to its drive file by this.
extern "C" ssize_t pwrite64(int file, const void* data, size_t length, off64_t at) {
  if (!tears || memmem(data, length, kTorn, sizeof kTorn - 1) == nullptr) {
    return pwrite(file, data, length, at);
  }
  errno = EIO;
  return -1;
}

// A log is let go and cannot be written out: no later log of the database is synced, until it is opened
// again.
int Torn(const std::string& root) {
  Env* env = Env::Default();
  OK(env->CreateDir(root));
  leveldb::FileLock* lock = nullptr;
  leveldb::WritableFile* file = nullptr;
  const auto append = [&](const std::string& path) {
    OK(env->NewWritableFile(root + path, &file));
    OK(file->Append(kTorn));
  };
  const auto synced = [&](const std::string& path) {
    append(path);
    const Status s = file->Sync();
    delete file;
    return s;
  };
  OK(env->LockFile(root + "/LOCK", &lock));
  append("/000003.log");
  tears = true;
  delete file;
  tears = false;
  for (const char* log : {"/000004.log", "/000005.log"}) {
    const Status s = synced(log);
    CHECK(s.IsIOError() && s.ToString().find("earlier log") != std::string::npos);
  }
  // Neither other files nor other databases have to do with it.
  OK(synced("/000006.ldb"));
  OK(env->CreateDir(root + "/other"));
  OK(synced("/other/000003.log"));
  OK(env->UnlockFile(lock));
  OK(env->LockFile(root + "/LOCK", &lock));
  OK(synced("/000007.log"));
  OK(env->UnlockFile(lock));
  return 0;
}

const char kUnread[] = "unread record";

// Changes a byte of each place of the drive file that has these bytes, or changes them back.
void Flip(const std::string& bytes) {
  const char* uri = std::getenv("ZONESTORE_URI");
  CHECK(uri != nullptr);
  std::FILE* file = std::fopen(std::strchr(uri, '/') + 2, "r+b");
  CHECK(file != nullptr);
  std::string all(1 << 20, 0);
  size_t flipped = 0;
  for (off_t at = 0; size_t got = std::fread(&all[0], 1, all.size(), file); at += got) {
    for (size_t found = 0; (found = all.find(bytes, found)) < got; found++, flipped++) {
      CHECK(pwrite(fileno(file), &(all[found] ^= 1), 1, at + found) == 1);
    }
  }
  CHECK(flipped > 0 && std::fclose(file) == 0);
}

// No log is begun beside one that could not be read, until the database is opened again: LevelDB takes the part before an
// error for the whole log, and deletes it behind the beginning of the next one.
int Unread(const std::string& root) {
  Env* env = Env::Default();
  OK(env->CreateDir(root));
  OK(env->CreateDir(root + "/other"));
  const std::string log = root + "/000003.log";
  leveldb::FileLock* lock = nullptr;
  OK(env->LockFile(root + "/LOCK", &lock));
  leveldb::WritableFile* written = nullptr;
  OK(env->NewWritableFile(log, &written));
  OK(written->Append(kUnread));
  OK(written->Sync());
  delete written;
  std::string there = kUnread;
  Flip(there);
  leveldb::SequentialFile* file = nullptr;
  OK(env->NewSequentialFile(log, &file));
  char room[sizeof kUnread];
  leveldb::Slice found;
  CHECK(!file->Read(sizeof room, &found, room).ok());
  delete file;
  there[0] ^= 1;
  Flip(there);
  const auto begun = [&](const std::string& name) {
    leveldb::WritableFile* appends = nullptr;
    leveldb::WritableFile* writes = nullptr;
    const Status s = env->NewWritableFile(root + name, &writes);
    CHECK(env->NewAppendableFile(root + name, &appends).ok() == s.ok());
    delete writes;
    delete appends;
    return s;
  };
  const Status s = begun("/000004.log");
  CHECK(s.IsIOError() && s.ToString().find("earlier log") != std::string::npos);
  OK(begun("/000005.ldb"));
  OK(begun("/other/000004.log"));
  OK(env->UnlockFile(lock));
  OK(env->LockFile(root + "/LOCK", &lock));
  OK(begun("/000004.log"));
  OK(env->UnlockFile(lock));
  return 0;
}

// The first keys are there, without a gap; prints how many.
int Prefix(const std::string& path) {
  std::unique_ptr<DB> db(Open(Small(), path));
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(ReadOptions()));
  size_t n = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), n++) {
    CHECK(it->key() == Key(n) && it->value() == Value(n, it->value().size()));
  }
  OK(it->status());
  std::printf("%zu\n", n);
  return 0;
}

std::unique_ptr<DB> global;

// Ends without closing one database, and destroys another after main.
int Leak(const std::string& path) {
  DB* db = Open(Small(), path);
  OK(db->Put(WriteOptions(), Key(0), Value(0)));
  global.reset(Open(Small(), path + "2"));
  OK(global->Put(WriteOptions(), Key(0), Value(0)));
  return 0;
}

// The threads put until the process is gone, and none sees an error.
int Busy(const std::string& path) {
  static std::atomic<int> puts{0};
  DB* db = Open(Small(), path);
  for (size_t thread = 0; thread < 3; thread++) {
    std::thread([db, thread] {
      for (size_t n = thread;; n += 3) {
        if (!db->Put(WriteOptions(), Key(n), Value(n)).ok()) std::abort();
        puts++;
      }
    }).detach();
  }
  while (puts < 3000) std::this_thread::yield();
  return 0;
}

// Puts until the drive has no more, and goes on living.
int Full(const std::string& path) {
  std::unique_ptr<DB> db(Open(Small(), path));
  size_t n = 0;
  Status s;
  while ((s = db->Put(Synced(), Key(n), Value(n, 50000))).ok()) n++;
  CHECK(s.IsIOError() && s.ToString().find("no space") != std::string::npos);
  // The only one of which it is not known whether it is there.
  CHECK(!db->Put(Synced(), Key(n + 1), Value(n + 1, 50000)).ok());
  std::string value;
  for (size_t i = 0; i < n; i++) {
    OK(db->Get(ReadOptions(), Key(i), &value));
    CHECK(value == Value(i, 50000));
  }
  std::printf("%zu\n", n);
  return 0;
}

// Empties the database, after which there is space again.
Status TryToDrain(const std::string& path) {
  std::unique_ptr<DB> db(Open(Small(), path));
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(ReadOptions()));
  leveldb::WriteBatch batch;
  for (it->SeekToFirst(); it->Valid(); it->Next()) batch.Delete(it->key());
  OK(it->status());
  it.reset();
  Status s = db->Write(Synced(), &batch);
  if (s.ok()) db->CompactRange(nullptr, nullptr);
  for (size_t n = 0; s.ok() && n < 200; n++) s = db->Put(Synced(), Key(n), Value(n, 50000));
  return s;
}

// LevelDB compacts beside that, and where a compaction finds no space, it refuses every write until it is
// opened again.
int Drain(const std::string& path) {
  Status s = TryToDrain(path);
  for (int more = 0; more < 10 && s.IsIOError(); more++) {
    CHECK(s.ToString().find("no space") != std::string::npos);
    s = TryToDrain(path);
  }
  OK(s);
  return 0;
}

int main(int count, char** arguments) {
  const std::string step = count > 1 ? arguments[1] : "";
  const std::string path = count > 2 ? arguments[2] : "/some/db";
  const std::map<std::string, int (*)(const std::string&)> steps{
      {"work", Work},     {"verify", Verify}, {"repair", Repair},
      {"destroy", Destroy}, {"environment", Environment}, {"drive", OnADrive}, {"hole", Hole},
      {"torn", Torn},     {"unread", Unread},
      {"prefix", Prefix}, {"leak", Leak},     {"busy", Busy},     {"full", Full},
      {"drain", Drain}};
  const auto found = steps.find(step);
  CHECK(found != steps.end());
  return found->second(path);
}
