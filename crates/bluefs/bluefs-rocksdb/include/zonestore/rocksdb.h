// For C++ programs that are linked with libzonestore_rocksdb.so: a drive as what RocksDB stores its
// files in. docs/programs.md says how to build with it.
//
// Both only look the drive's address up where RocksDB looks it up; a program that takes the address
// zonestore:///path/of/drive from its user may hand it to RocksDB itself and do without this header.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/convenience.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

extern "C" const char* zs_last_error(void);

namespace zonestore {

// Linkers may leave out a library that nothing refers to (--as-needed); its being there is what
// registers the address.
[[gnu::used]] inline const char* (*const kLibrary)() = &zs_last_error;

inline std::string Uri(const std::string& drive) { return "zonestore://" + drive; }

// The file system on the drive at an absolute path, mounted until the last copy of `result` goes.
// For DBOptions::env, wrap it: rocksdb::NewCompositeEnv(result).
inline rocksdb::Status OpenFileSystem(const std::string& drive,
                                      std::shared_ptr<rocksdb::FileSystem>* result) {
  return rocksdb::FileSystem::CreateFromString(rocksdb::ConfigOptions(), Uri(drive), result);
}

// The same as an environment, mounted until `guard` goes, which has to outlive every database in it.
inline rocksdb::Status OpenEnv(const std::string& drive, rocksdb::Env** result,
                               std::shared_ptr<rocksdb::Env>* guard) {
  return rocksdb::Env::CreateFromUri(rocksdb::ConfigOptions(), Uri(drive), "", result, guard);
}

}  // namespace zonestore
