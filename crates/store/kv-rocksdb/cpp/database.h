// RocksDB for Rust: no exceptions, no pointers to keep.
#pragma once

#include <cstdint>
#include <memory>

#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/statistics.h"
#include "rocksdb/write_batch.h"
#include "rust/cxx.h"

namespace zonestore::kv {

struct CacheCounts;
struct Config;
struct Outcome;
struct Entry;
struct Filter;
struct Healer;
class Background;

class Batch {
 public:
  void put(rust::Slice<const uint8_t> key, rust::Slice<const uint8_t> value);
  void remove(rust::Slice<const uint8_t> key);
  void merge(rust::Slice<const uint8_t> key, rust::Slice<const uint8_t> value);
  void log_data(rust::Slice<const uint8_t> blob);

  mutable rocksdb::WriteBatch batch;
};

class Cursor {
 public:
  Cursor(std::unique_ptr<rocksdb::Iterator> iterator, std::string upper)
      : upper_(std::move(upper)), iterator_(std::move(iterator)) {}
  bool valid() const { return iterator_->Valid(); }
  void seek(rust::Slice<const uint8_t> key);
  void next() { iterator_->Next(); }
  rust::Slice<const uint8_t> key() const;
  rust::Slice<const uint8_t> value() const;
  Outcome status() const;

  // The iterator points to this bound, which therefore has to stay where it is.
  const std::string upper_;
  rocksdb::Slice upper_slice_{upper_};
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

class Database {
 public:
  ~Database();
  Outcome write(const Batch& batch, bool synced) const;
  Outcome get(rust::Slice<const uint8_t> key, rust::Vec<uint8_t>& value, bool& found) const;
  std::unique_ptr<Cursor> scan(rust::Slice<const uint8_t> lower, rust::Slice<const uint8_t> upper,
                               bool has_upper) const;
  Outcome flush() const;
  Outcome compact() const;
  Outcome settle(uint64_t patience_ms, bool& settled) const;
  // Compactions that meet damage ask it from now on.
  void on_damage(rust::Box<Healer> healer) const;
  CacheCounts cache() const;
  rust::String property(rust::Str name, bool& found) const;
  Outcome close();

  std::shared_ptr<rocksdb::FileSystem> file_system;
  std::unique_ptr<rocksdb::Env> env;
  std::shared_ptr<rocksdb::WalFilter> filter;
  std::shared_ptr<Background> background;
  std::shared_ptr<const rocksdb::SliceTransform> scanned;
  std::shared_ptr<rocksdb::Cache> blocks;
  std::shared_ptr<rocksdb::Statistics> counters;
  std::unique_ptr<rocksdb::DB> db;

 private:
  // Has SSTs compacted that are a third tombstones; false if there are none.
  bool CompactDeleted() const;
};

std::unique_ptr<Batch> new_batch();
// Takes `fs` over. On failure the database is null.
std::unique_ptr<Database> open_database(size_t fs, const Config& config, rust::Box<Filter> filter,
                                        Outcome& outcome);

}  // namespace zonestore::kv
