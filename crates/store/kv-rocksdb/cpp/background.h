// RocksDB's background work, as far as it concerns others.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/listener.h"

namespace zonestore::kv {

// Hears of RocksDB's background work: wakes who waits for it, and keeps a compaction that cannot read an SST
// from ending all writes.
//
// RocksDB takes that for a fatal error, and refuses every write until the database is opened again. But nothing
// is lost by it: what was to be written anew is still in its SSTs. So it is tried again, after a pause, while
// there is room for new SSTs in level 0, and writes go on. When there is none, the error stands.
class Background final : public rocksdb::EventListener {
 public:
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override { Wake(); }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override { Wake(); }
  // A job counts as running until a moment after it has told us: hence never for long.
  void Wait() {
    std::unique_lock lock(mutex_);
    woken_.wait_for(lock, std::chrono::milliseconds(10));
  }

  // RocksDB waits for a second by itself before it tries again.
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    rocksdb::DB* const db = db_.load();
    if (db == nullptr || reason != rocksdb::BackgroundErrorReason::kCompaction) return;
    // What found no space is tried again without us.
    if (error->IsNoSpace() || !(error->IsIOError() || error->IsCorruption())) return;
    std::string tables;
    if (!db->GetProperty("rocksdb.num-files-at-level0", &tables)) return;
    if (std::strtoul(tables.c_str(), nullptr, 10) < kMostTables) *error = rocksdb::Status::OK();
  }

  void Start(rocksdb::DB* db) { db_.store(db); }

 private:
  // Where RocksDB begins to slow writers down (level0_slowdown_writes_trigger).
  static constexpr uint64_t kMostTables = 20;

  void Wake() {
    std::lock_guard lock(mutex_);
    woken_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable woken_;
  std::atomic<rocksdb::DB*> db_{nullptr};
};

}  // namespace zonestore::kv
