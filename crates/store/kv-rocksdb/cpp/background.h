// RocksDB's background work, as far as it concerns others.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/io_status.h"
#include "rocksdb/listener.h"

namespace zonestore::kv {

// Whether bytes of a file are damaged, by RocksDB's checksums or by BlueFS's: for these, RocksDB gets an I/O error with
// this scope.
inline bool IsDamage(const rocksdb::Status& s) {
  const auto io = rocksdb::status_to_io_status(rocksdb::Status(s));
  return s.IsCorruption() ||
         (s.IsIOError() && io.GetScope() == rocksdb::IOStatus::kIOErrorScopeRange);
}

// Hears of RocksDB's background work: wakes who waits for it, and keeps a compaction that cannot read an SST
// from ending all writes.
//
// RocksDB takes that for a fatal error, and refuses every write until the database is opened again. But nothing
// is lost by it: what was to be written anew is still in its SSTs. So it is tried again, after a pause, while
// there is room for new SSTs in level 0, and writes go on. When there is none, writers wait for some more tries, as a
// broken connection may come back; then the error stands. Who has another copy of the SSTs is asked first: what that has
// healed is read at the next try, however full level 0 is.
class Background final : public rocksdb::EventListener {
 public:
  // `full` is how many SSTs in level 0 slow writers down (level0_slowdown_writes_trigger).
  explicit Background(int full) : full_(full) {}

  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override { Wake(); }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) override {
    if (job.status.ok()) waits_ = 0;
    Wake();
  }
  // A job counts as running until a moment after it has told us: hence never for long.
  void Wait() {
    std::unique_lock lock(mutex_);
    woken_.wait_for(lock, std::chrono::milliseconds(10));
  }

  // RocksDB waits for a second by itself before it tries again.
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    if (reason != rocksdb::BackgroundErrorReason::kCompaction) return;
    // What found no space is tried again without us.
    if (error->IsNoSpace() || !(error->IsIOError() || error->IsCorruption())) return;
    if (IsDamage(*error) && Heal(error->ToString())) {
      *error = rocksdb::Status::OK();
      return;
    }
    if (HasRoom() || waits_++ < kMostWaits) *error = rocksdb::Status::OK();
  }

  void Start(rocksdb::DB* db) { db_.store(db); }

  // `heal` says of an error whether the compaction that met it is worth trying again. RocksDB holds no lock meanwhile.
  void HealBy(std::function<bool(const std::string&)> heal) {
    std::lock_guard lock(healing_);
    heal_ = std::move(heal);
  }

 private:
  // About as many seconds: as long as Linux waits for a command of a disk.
  static constexpr int kMostWaits = 30;

  bool Heal(const std::string& error) {
    std::lock_guard lock(healing_);
    return heal_ && heal_(error);
  }

  // Whether level 0 takes more SSTs before writers are slowed down. Compactions begin within the opening of a database, which
  // nobody writes to yet.
  bool HasRoom() const {
    rocksdb::DB* const db = db_.load();
    std::string tables;
    if (db == nullptr) return true;
    return db->GetProperty("rocksdb.num-files-at-level0", &tables) && std::strtoul(tables.c_str(), nullptr, 10) < full_;
  }

  void Wake() {
    std::lock_guard lock(mutex_);
    woken_.notify_all();
  }

  const uint64_t full_;
  std::atomic<int> waits_{0};
  std::mutex healing_;
  std::function<bool(const std::string&)> heal_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::atomic<rocksdb::DB*> db_{nullptr};
};

}  // namespace zonestore::kv
