// A program that is linked with libzonestore_rocksdb.so and keeps a database on a drive.
//
//   client fs|env DRIVE put FIRST END     puts keys with sync
//   client fs|env DRIVE get FIRST END     every key has its value
//   client fs|env DRIVE count             how many keys there are
//   client fs|env DRIVE leak FIRST END    puts keys without sync, and closes nothing
//   client fs|env DRIVE sync              in every way to write, with the log synced from another thread;
//                                         ends by SIGKILL
//   client fs|env DRIVE synced            what that has synced is there
//   client fs|env DRIVE messages          fills the drive, and goes on logging messages
//
// `fs` has the drive as a FileSystem, `env` as an Env.

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rocksdb/db.h"
#include "zonestore/rocksdb.h"

namespace {

void Check(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

std::string Key(long number) {
  char key[24];
  std::snprintf(key, sizeof key, "key%012ld", number);
  return key;
}

std::string Value(long number) { return std::string(400, static_cast<char>('a' + number % 26)); }

constexpr long kSynced = 300;

// The ways in which RocksDB writes to its log.
std::vector<rocksdb::Options> Modes(const rocksdb::Options& base) {
  std::vector<rocksdb::Options> modes(6, base);
  modes[1].two_write_queues = true;
  modes[2].unordered_write = true;
  modes[3].manual_wal_flush = true;
  modes[4].enable_pipelined_write = true;
  modes[4].wal_bytes_per_sync = 4096;
  modes[4].strict_bytes_per_sync = true;
  // With checksums that the file system may verify, by direct writes as well.
  for (auto type : {rocksdb::kWalFile, rocksdb::kTableFile, rocksdb::kDescriptorFile}) {
    modes[5].checksum_handoff_file_types.Add(type);
  }
  modes[5].use_direct_io_for_flush_and_compaction = true;
  return modes;
}

std::string Database(size_t mode) { return "/mode" + std::to_string(mode); }

// Keys up to kSynced are put without sync, then synced from here, while a thread goes on putting.
void PutAndSync(rocksdb::Options options, size_t mode) {
  rocksdb::DB* db = nullptr;
  Check(rocksdb::DB::Open(options, Database(mode), &db));
  std::atomic<long> done{0};
  std::thread writer([&] {
    for (long n = 0; n < 2 * kSynced; n++) {
      Check(db->Put(rocksdb::WriteOptions(), Key(n), Value(n)));
      done = n + 1;
    }
  });
  while (done < kSynced) {
    Check(options.manual_wal_flush ? db->FlushWAL(true) : db->SyncWAL());
  }
  Check(db->FlushWAL(true));
  writer.join();
  rocksdb::WriteOptions synced;
  synced.sync = true;
  Check(db->Put(synced, "last", "one"));
  if (mode == 5) Check(db->Flush(rocksdb::FlushOptions()));
}

// As a database that waits for space does.
void Messages(rocksdb::Env* env) {
  std::shared_ptr<rocksdb::Logger> log;
  Check(env->NewLogger("/LOG", &log));
  log->SetInfoLogLevel(rocksdb::InfoLogLevel::INFO_LEVEL);
  rocksdb::Status s;
  for (int file = 0; s.ok(); file++) {
    std::unique_ptr<rocksdb::WritableFile> table;
    s = env->NewWritableFile("/" + std::to_string(file) + ".sst", &table, rocksdb::EnvOptions());
    const std::string bytes(1 << 20, 'x');
    for (int n = 0; n < 8 && s.ok(); n++) s = table->Append(bytes);
    if (s.ok()) s = table->Close();
  }
  if (!s.IsNoSpace()) Check(s);
  const std::string message(400, 'm');
  for (int n = 0; n < 10000; n++) rocksdb::Log(rocksdb::InfoLogLevel::INFO_LEVEL, log, "%s", message.c_str());
  log->Flush();
  Check(log->Close());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string drive = argv[2];

  std::shared_ptr<rocksdb::FileSystem> file_system;
  std::shared_ptr<rocksdb::Env> guard;
  std::unique_ptr<rocksdb::Env> composite;
  rocksdb::Options options;
  options.create_if_missing = true;
  if (std::strcmp(argv[1], "fs") == 0) {
    Check(zonestore::OpenFileSystem(drive, &file_system));
    composite = rocksdb::NewCompositeEnv(file_system);
    options.env = composite.get();
  } else {
    Check(zonestore::OpenEnv(drive, &options.env, &guard));
  }

  const std::string command = argv[3];
  const auto modes = Modes(options);
  if (command == "messages") {
    Messages(options.env);
    return 0;
  }
  if (command == "sync") {
    for (size_t mode = 0; mode < modes.size(); mode++) PutAndSync(modes[mode], mode);
    std::raise(SIGKILL);
  }
  rocksdb::DB* opened = nullptr;
  if (command == "synced") {
    for (size_t mode = 0; mode < modes.size(); mode++) {
      Check(rocksdb::DB::Open(modes[mode], Database(mode), &opened));
      std::string value;
      for (long n = 0; n < 2 * kSynced; n++) {
        Check(opened->Get(rocksdb::ReadOptions(), Key(n), &value));
      }
      Check(opened->Get(rocksdb::ReadOptions(), "last", &value));
      delete opened;
    }
    return 0;
  }
  const long first = argc > 4 ? std::atol(argv[4]) : 0;
  const long end = argc > 5 ? std::atol(argv[5]) : 0;
  Check(rocksdb::DB::Open(options, "/client", &opened));
  if (command == "leak") {
    for (long n = first; n < end; n++) Check(opened->Put(rocksdb::WriteOptions(), Key(n), Value(n)));
    std::exit(0);
  }
  std::unique_ptr<rocksdb::DB> db(opened);
  if (command == "put") {
    rocksdb::WriteOptions synced;
    synced.sync = true;
    for (long n = first; n < end; n++) Check(db->Put(synced, Key(n), Value(n)));
  } else if (command == "get") {
    for (long n = first; n < end; n++) {
      std::string value;
      Check(db->Get(rocksdb::ReadOptions(), Key(n), &value));
      if (value != Value(n)) {
        std::fprintf(stderr, "%s has another value\n", Key(n).c_str());
        return 1;
      }
    }
  } else {
    long keys = 0;
    std::unique_ptr<rocksdb::Iterator> all(db->NewIterator(rocksdb::ReadOptions()));
    for (all->SeekToFirst(); all->Valid(); all->Next()) keys++;
    Check(all->status());
    std::printf("%ld\n", keys);
  }
  Check(db->Close());
  return 0;
}
