// A program that loads modules as Python does, and two modules:
//
//   (plain)      loads each module that it is given, and has it say what it gets
//   -DCONTAINS   contains RocksDB and LevelDB, of another version, for all that anybody knows
//   -DLINKED     is linked with librocksdb.so

#include <cstdio>

#ifdef CONTAINS
#include <memory>
namespace rocksdb {
struct FileSystem {
  static std::shared_ptr<FileSystem> Default();
};
std::shared_ptr<FileSystem> FileSystem::Default() { return nullptr; }
}  // namespace rocksdb
namespace leveldb {
struct Env {
  static Env* Default();
};
Env* Env::Default() { return nullptr; }
}  // namespace leveldb
extern "C" void say() {
  const bool own = rocksdb::FileSystem::Default() == nullptr && leveldb::Env::Default() == nullptr;
  std::puts(own ? "its own" : "another's");
}

#elif defined(LINKED)
#include "rocksdb/file_system.h"
extern "C" void say() { std::puts(rocksdb::FileSystem::Default()->Name()); }

#else
#include <dlfcn.h>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    void* module = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    reinterpret_cast<void (*)()>(dlsym(module, "say"))();
  }
}
#endif
