// A program that knows RocksDB and no drive: its database is where its user says, in the default environment.
//
//   stranger put DB        puts three keys, one of them synced, and closes nothing
//   stranger get DB        they are there
//   stranger options FILE  reads options that lie beside the program's other files

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/utilities/options_util.h"

namespace {

void Check(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

// Made before main, and gone after it.
rocksdb::Options options;

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string command = argv[1];
  rocksdb::Env* env = rocksdb::Env::Default();
  if (command == "options") {
    rocksdb::DBOptions db_options;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    Check(rocksdb::LoadOptionsFromFile(argv[2], env, &db_options, &families));
    std::printf("%d\n", db_options.max_open_files);
    return 0;
  }
  // Read from the host's /proc.
  Check(env->FileExists("/proc/sys/kernel/random/uuid"));
  if (env->GenerateUniqueId().size() < 30) return 1;
  options.create_if_missing = command == "put";
  rocksdb::DB* db = nullptr;
  Check(rocksdb::DB::Open(options, argv[2], &db));
  if (command == "put") {
    rocksdb::WriteOptions write;
    Check(db->Put(write, "a", "1"));
    write.sync = true;
    Check(db->Put(write, "b", "2"));
    write.sync = false;
    Check(db->Put(write, "c", "3"));
    std::printf("put\n");
    return 0;
  }
  std::string all, value;
  for (const char* key : {"a", "b", "c"}) {
    Check(db->Get(rocksdb::ReadOptions(), key, &value));
    all += value;
  }
  std::printf("%s\n", all.c_str());
  delete db;
  return 0;
}
