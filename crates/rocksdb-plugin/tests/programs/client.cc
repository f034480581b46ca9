// A program that is linked with libzonestore_rocksdb.so and keeps a database on a drive.
//
//   client fs|env DRIVE put FIRST END     puts keys with sync
//   client fs|env DRIVE get FIRST END     every key has its value
//   client fs|env DRIVE count             how many keys there are
//
// `fs` has the drive as a FileSystem, `env` as an Env.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

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

  rocksdb::DB* opened = nullptr;
  Check(rocksdb::DB::Open(options, "/client", &opened));
  std::unique_ptr<rocksdb::DB> db(opened);
  const std::string command = argv[3];
  const long first = argc > 4 ? std::atol(argv[4]) : 0;
  const long end = argc > 5 ? std::atol(argv[5]) : 0;
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
