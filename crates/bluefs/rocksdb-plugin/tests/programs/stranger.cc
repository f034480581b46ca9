// A program that knows RocksDB and no drive: its database is where its user says, in the default environment.
//
//   stranger put DB        puts three keys, one of them synced, and closes nothing
//   stranger get DB        they are there
//   stranger busy DB       ends while threads put, of which none sees an error
//   stranger options FILE  reads options that lie beside the program's other files
//   stranger ingest DB DIRECTORY  has an SST of another directory moved into a database; files of that directory are
//                                 not renamed or linked to names beside it

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <atomic>
#include <string>
#include <thread>

#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/options_util.h"

namespace {

void Check(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

// The threads go on until the process is gone.
void Busy(rocksdb::DB* db) {
  static std::atomic<int> puts{0};
  for (int thread = 0; thread < 3; thread++) {
    std::thread([db, thread] {
      for (long n = 0;; n++) {
        const std::string key = std::to_string(thread) + " " + std::to_string(n);
        if (!db->Put(rocksdb::WriteOptions(), key, std::string(400, 'v')).ok()) std::abort();
        puts++;
      }
    }).detach();
  }
  while (puts < 3000) std::this_thread::yield();
}

// `directory` is of another file system than the database.
void Ingest(rocksdb::DB* db, rocksdb::Env* env, const std::string& database, const std::string& directory) {
  const std::string table = directory + "/table.sst", other = database + "/other";
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db->GetOptions());
  Check(writer.Open(table));
  Check(writer.Put("ingested", "4"));
  Check(writer.Finish());
  if (env->RenameFile(table, other).ok() || !env->LinkFile(table, other).IsNotSupported()) std::exit(3);
  bool is_same = true;
  Check(env->AreFilesSame(table, other, &is_same));
  if (is_same) std::exit(4);
  Check(env->FileExists(table));
  if (!env->FileExists(other).IsNotFound()) std::exit(5);
  rocksdb::IngestExternalFileOptions moved;
  moved.move_files = true;
  Check(db->IngestExternalFile({table}, moved));
  std::string value;
  Check(db->Get(rocksdb::ReadOptions(), "ingested", &value));
  std::printf("%s\n", value.c_str());
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
  options.create_if_missing = command != "get";
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
  if (command == "busy") {
    Busy(db);
    return 0;
  }
  if (command == "ingest") {
    Ingest(db, env, argv[2], argv[3]);
    delete db;
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
