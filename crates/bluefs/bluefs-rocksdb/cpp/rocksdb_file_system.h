// rocksdb::FileSystem on BlueFS. It translates and decides nothing.
#pragma once

#include <memory>

#include "rocksdb/file_system.h"

struct zs_fs;

namespace zonestore {

// A file system over a mounted BlueFS; takes the handle over.
std::shared_ptr<rocksdb::FileSystem> NewFileSystem(zs_fs* fs);

}  // namespace zonestore
