#include "database.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <vector>

#include "background.h"
#include "deleted_rows.h"
#include "kv-rocksdb/src/bridge.rs.h"
#include "rocksdb/cache.h"
#include "rocksdb/experimental.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "rocksdb/wal_filter.h"
#include "rocksdb_file_system.h"
#include "rows.h"

namespace zonestore::kv {

namespace {

rocksdb::Slice ToSlice(rust::Slice<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

rust::Slice<const uint8_t> FromSlice(const rocksdb::Slice& slice) {
  return {reinterpret_cast<const uint8_t*>(slice.data()), slice.size()};
}

Outcome ToOutcome(const rocksdb::Status& s) {
  Outcome outcome;
  if (s.ok()) {
    outcome.kind = Kind::Ok;
    return outcome;
  }
  outcome.message = rust::String::lossy(s.ToString());
  if (s.IsNoSpace()) {
    outcome.kind = Kind::NoSpace;
  } else if (IsDamage(s)) {
    outcome.kind = Kind::Corruption;
  } else if (s.IsNotFound() || s.IsPathNotFound()) {
    outcome.kind = Kind::NotFound;
  } else if (s.severity() >= rocksdb::Status::kFatalError) {
    outcome.kind = Kind::Stopped;
  } else if (s.IsBusy() || s.IsTryAgain() || s.IsIncomplete()) {
    outcome.kind = Kind::Busy;
  } else if (s.IsInvalidArgument() || s.IsNotSupported()) {
    outcome.kind = Kind::Invalid;
  } else {
    outcome.kind = Kind::Io;
  }
  return outcome;
}

// Whether somebody has the database open. RocksDB reports that as any other error of its files.
bool IsLocked(rocksdb::FileSystem& file_system, const std::string& directory) {
  const std::string path = directory + "/LOCK";
  const rocksdb::IOOptions options;
  rocksdb::FileLock* lock = nullptr;
  if (!file_system.FileExists(path, options, nullptr).ok()) return false;
  if (!file_system.LockFile(path, options, &lock, nullptr).ok()) return true;
  file_system.UnlockFile(lock, options, nullptr);
  return false;
}

// Shows each batch's keys and log data to the Rust side, in order, and stops where it says so.
class ReplayFilter final : public rocksdb::WalFilter {
 public:
  explicit ReplayFilter(rust::Box<Filter> filter) : filter_(std::move(filter)) {}
  const char* Name() const override { return "zonestore.ReplayFilter"; }
  WalProcessingOption LogRecordFound(unsigned long long, const std::string& log,
                                     const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*,
                                     bool*) override {
    // Once it has stopped, logs behind are not for us either.
    if (stopped_) return WalProcessingOption::kStopReplay;
    Shown shown(*filter_);
    filter_->begin(FromSlice(log), batch.GetDataSize());
    if (!batch.Iterate(&shown).ok()) return WalProcessingOption::kCorruptedRecord;
    stopped_ = !filter_->end();
    return stopped_ ? WalProcessingOption::kStopReplay
                    : WalProcessingOption::kContinueProcessing;
  }

 private:
  class Shown final : public rocksdb::WriteBatch::Handler {
   public:
    explicit Shown(Filter& filter) : filter_(filter) {}
    void LogData(const rocksdb::Slice& blob) override { filter_.blob(FromSlice(blob)); }
    using Slice = rocksdb::Slice;
    rocksdb::Status PutCF(uint32_t, const Slice& key, const Slice&) override { return Key(key); }
    rocksdb::Status DeleteCF(uint32_t, const Slice& key) override { return Key(key); }
    rocksdb::Status SingleDeleteCF(uint32_t, const Slice& key) override { return Key(key); }
    rocksdb::Status DeleteRangeCF(uint32_t, const Slice&, const Slice&) override { return {}; }
    rocksdb::Status MergeCF(uint32_t, const Slice&, const Slice&) override { return {}; }
    rocksdb::Status MarkNoop(bool) override { return {}; }

   private:
    rocksdb::Status Key(const Slice& key) {
      filter_.key(FromSlice(key));
      return {};
    }

    Filter& filter_;
  };

  rust::Box<Filter> filter_;
  bool stopped_ = false;
};

// Of a memtable, at the most: a search in a larger one misses the processor's caches at each step.
constexpr uint64_t kMemtableBytes = 8 << 20;

// Of the block cache.
constexpr double kUpperPart = 0.75;

std::string ToString(const rust::Vec<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

rocksdb::Options MakeOptions(const Config& config) {
  rocksdb::Options o;
  o.create_if_missing = config.create_if_missing;
  // Several memtables become one SST: a look-up asks each SST of level 0, which costs more than a memtable with a
  // filter. Two more are filled while these are written out.
  const uint64_t in_memory = std::max<uint64_t>(config.write_buffer_bytes, 1);
  const uint64_t memtables = (in_memory + kMemtableBytes - 1) / kMemtableBytes;
  o.write_buffer_size = in_memory / memtables;
  o.min_write_buffer_number_to_merge = static_cast<int>(memtables);
  o.max_write_buffer_number = static_cast<int>(memtables) + 2;
  o.memtable_prefix_bloom_size_ratio = memtables > 1 ? 0.05 : 0;
  o.target_file_size_base = config.target_file_bytes;
  o.max_compaction_bytes = config.max_compaction_bytes;
  // Otherwise a compaction takes all of the upper level that lies above one SST of the lower, however much that is.
  o.ignore_max_compaction_bytes_for_input = false;
  o.max_bytes_for_level_base = 4 * std::max(config.write_buffer_bytes, config.target_file_bytes);
  o.level_compaction_dynamic_level_bytes = true;
  // Level 0 comes to half of the level that it is merged with: less, and that is written again more often.
  const uint64_t half = o.max_bytes_for_level_base / 2;
  o.level0_file_num_compaction_trigger =
      static_cast<int>(std::clamp<uint64_t>(half / config.write_buffer_bytes, 4, 8));
  // One compaction reads all of level 0 and what is below: writers wait before that is more than others read.
  if (config.max_compaction_bytes > o.max_bytes_for_level_base) {
    const uint64_t level0 = config.max_compaction_bytes - o.max_bytes_for_level_base;
    const int least = o.level0_file_num_compaction_trigger + 4;
    const int files = static_cast<int>(std::min<uint64_t>(level0 / config.write_buffer_bytes, o.level0_stop_writes_trigger));
    o.level0_stop_writes_trigger = std::max(files, least);
    o.level0_slowdown_writes_trigger = std::min(o.level0_slowdown_writes_trigger, o.level0_stop_writes_trigger);
  }
  o.max_background_jobs = config.max_background_jobs;
  o.max_total_wal_size = config.max_wal_bytes;
  // What lies in here is counted by its own size, small objects above all; and checksums, most of
  // the rest, do not shrink.
  o.compression = rocksdb::kNoCompression;
  // A log ends where a power cut tore it, and newer logs do not count if an older one lost its end:
  // what remains has to be a prefix.
  o.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  o.merge_operator = std::make_shared<AddCounters>(ToString(config.merge_prefixes));
  // Keys that come in their order find their place in the memtable beside the last one.
  o.memtable_insert_with_hint_prefix_extractor =
      std::make_shared<Groups>("zonestore.Groups", config.ascending);
  o.prefix_extractor = std::make_shared<GroupsAndKeys>(config.scanned);
  o.keep_log_file_num = 2;
  o.max_log_file_size = 1 << 20;
  o.max_manifest_file_size = config.max_manifest_bytes;
  // Other rows that were deleted are compacted when space is wanted (settle), or in their turn: a few tombstones
  // in each part of a large database would have all of it written again.
  o.table_properties_collector_factories.push_back(
      std::make_shared<DeletedOfListed>(ToString(config.listed)));
  o.statistics = rocksdb::CreateDBStatistics();
  o.statistics->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
  o.stats_dump_period_sec = 0;
  o.stats_persist_period_sec = 0;
  o.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  o.avoid_unnecessary_blocking_io = true;
  o.compaction_readahead_size = 2 << 20;
  o.bytes_per_sync = 1 << 20;
  // A flush or compaction that found no space is tried again as soon as there is some. (A log that
  // found none stops the database: see WritableFile::Done in bluefs-rocksdb.)
  o.max_bgerror_resume_count = 1 << 20;
  rocksdb::BlockBasedTableOptions table;
  // Blocks enter in the middle, and only what is hit again gets into the upper part, which a scan does not reach.
  // Indexes and filters, without which every look-up reads, begin there.
  table.block_cache = rocksdb::NewLRUCache(config.block_cache_bytes, -1, false, kUpperPart);
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  // A filter has a key or its group, never both: RocksDB 7.8 ends a part of a filter only where the number of its
  // entries is exactly what a part has, and steps over that number where a key brings two. Parts had a MiB then.
  table.whole_key_filtering = false;
  // Filters and indexes in parts of some KiB: the filter of a whole SST may be larger than one of the
  // cache's shards, and would be read for every look-up then.
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.metadata_block_size = 16 << 10;
  table.pin_top_level_index_and_filter = true;
  table.block_size = 16 << 10;
  table.format_version = 5;
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return o;
}

// Where compactions have not found space, RocksDB refuses those for which a file system does not have as much as they read
// and 8 MiB more. They write less than they read, what they need is kept free (see Inner::admit_metadata of the store), and
// without them there is never more: they find out.
class Unjudged final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "zonestore.Unjudged"; }
  rocksdb::IOStatus GetFreeSpace(const std::string&, const rocksdb::IOOptions&, uint64_t* bytes,
                                 rocksdb::IODebugContext*) override {
    *bytes = std::numeric_limits<int64_t>::max();
    return rocksdb::IOStatus::OK();
  }
};

}  // namespace

void Batch::put(rust::Slice<const uint8_t> key, rust::Slice<const uint8_t> value) {
  batch.Put(ToSlice(key), ToSlice(value));
}
void Batch::remove(rust::Slice<const uint8_t> key) { batch.Delete(ToSlice(key)); }
void Batch::merge(rust::Slice<const uint8_t> key, rust::Slice<const uint8_t> value) {
  batch.Merge(ToSlice(key), ToSlice(value));
}
void Batch::log_data(rust::Slice<const uint8_t> blob) { batch.PutLogData(ToSlice(blob)); }

std::unique_ptr<Batch> new_batch() { return std::make_unique<Batch>(); }

void Cursor::seek(rust::Slice<const uint8_t> key) { iterator_->Seek(ToSlice(key)); }
rust::Slice<const uint8_t> Cursor::key() const { return FromSlice(iterator_->key()); }
rust::Slice<const uint8_t> Cursor::value() const { return FromSlice(iterator_->value()); }
Outcome Cursor::status() const { return ToOutcome(iterator_->status()); }

Outcome Database::write(const Batch& batch, bool synced) const {
  rocksdb::WriteOptions options;
  options.sync = synced;
  const rocksdb::Status s = db->Write(options, &batch.batch);
  Outcome outcome = ToOutcome(s);
  // A flush that found no space stops all writes until it does, before anything of them is written. RocksDB answers with
  // the error of its background work, which has a severity: hard, or soft if a compaction has replaced it meanwhile. The
  // error of a log has no severity at first, and a higher one from then on.
  const auto severity = s.severity();
  const bool is_in_background = severity != rocksdb::Status::kNoError && severity <= rocksdb::Status::kHardError;
  if (s.IsNoSpace() && is_in_background) outcome.kind = Kind::Busy;
  return outcome;
}

Outcome Database::get(rust::Slice<const uint8_t> key, rust::Vec<uint8_t>& value,
                      bool& found) const {
  rocksdb::PinnableSlice pinned;
  rocksdb::Status s =
      db->Get(rocksdb::ReadOptions(), db->DefaultColumnFamily(), ToSlice(key), &pinned);
  found = s.ok();
  if (s.ok()) {
    append_bytes(value, FromSlice(pinned));
  } else if (s.IsNotFound()) {
    s = rocksdb::Status::OK();
  }
  return ToOutcome(s);
}

std::unique_ptr<Cursor> Database::scan(rust::Slice<const uint8_t> lower,
                                       rust::Slice<const uint8_t> upper, bool has_upper) const {
  auto cursor = std::make_unique<Cursor>(nullptr, ToSlice(upper).ToString());
  rocksdb::ReadOptions options;
  // RocksDB before 8.5.1 forgets the error of an SST that a scan goes on to from another one of its
  // level, and leaves the rest of the level out: where it looks for deleted ranges, it steps over each
  // end of an SST without asking for the status. There are no deleted ranges (see Batch).
  options.ignore_range_deletions = true;
  const auto& groups = static_cast<const GroupsAndKeys&>(*scanned);
  options.total_order_seek = !has_upper || !groups.IsOne(ToSlice(lower), ToSlice(upper));
  if (has_upper) options.iterate_upper_bound = &cursor->upper_slice_;
  cursor->iterator_.reset(db->NewIterator(options));
  cursor->iterator_->Seek(ToSlice(lower));
  return cursor;
}

namespace {
// Those that are open in this process.
std::atomic<int> databases{0};

// Whoever asks for a flush wants it now, not when compaction has caught up.
rocksdb::FlushOptions Now() {
  rocksdb::FlushOptions options;
  options.allow_write_stall = true;
  return options;
}
}  // namespace

Outcome Database::flush() const { return ToOutcome(db->Flush(Now())); }

Outcome Database::compact() const {
  return ToOutcome(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
}

Outcome Database::settle(uint64_t patience_ms, bool& settled) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  const auto late = [until] { return std::chrono::steady_clock::now() >= until; };
  // A database that ran out of space looks once in five seconds whether it can go on.
  rocksdb::Status s = db->Flush(Now());
  while ((s.IsNoSpace() || s.IsBusy() || s.IsIncomplete()) && !late()) {
    background->Wait();
    s = db->Flush(Now());
  }
  const std::string* const busy[] = {
      &rocksdb::DB::Properties::kNumRunningFlushes, &rocksdb::DB::Properties::kMemTableFlushPending,
      &rocksdb::DB::Properties::kNumRunningCompactions,
      &rocksdb::DB::Properties::kCompactionPending};
  settled = false;
  while (s.ok() && !settled) {
    settled = true;
    for (const std::string* name : busy) {
      uint64_t count = 0;
      if (db->GetIntProperty(*name, &count) && count > 0) settled = false;
    }
    if (settled && CompactDeleted()) settled = false;
    if (!settled && late()) break;
    if (!settled) background->Wait();
  }
  return ToOutcome(s);
}

bool Database::CompactDeleted() const {
  std::vector<rocksdb::LiveFileMetaData> tables;
  db->GetLiveFilesMetaData(&tables);
  int last = 0;
  for (const auto& table : tables) last = std::max(last, table.level);
  uint64_t last_bytes = 0, last_rows = 1;
  for (const auto& table : tables) {
    if (table.level != last) continue;
    last_bytes += table.size;
    last_rows += table.num_entries;
  }
  bool any = false;
  for (const auto& table : tables) {
    // An overwrite leaves two tombstones among five rows, and one may stand for a large row. Those in the last level are on
    // their way out.
    const uint64_t rows = table.num_deletions * 3;
    const bool few = rows < table.num_entries && rows * (last_bytes / last_rows) < table.size;
    if (table.level == last || rows == 0 || few) continue;
    // One of level 0 has keys of all kinds: without what is below all of them.
    const rocksdb::Slice from(table.smallestkey);
    const rocksdb::Slice to(table.level == 0 ? table.smallestkey : table.largestkey);
    any |= rocksdb::experimental::SuggestCompactRange(db.get(), &from, &to).ok();
  }
  return any;
}

void Database::on_damage(rust::Box<Healer> healer) const {
  const auto shared = std::make_shared<rust::Box<Healer>>(std::move(healer));
  background->HealBy([shared](const std::string& error) {
    return (*shared)->heal(rust::Str(rust::String::lossy(error)));
  });
}

CacheCounts Database::cache() const {
  const auto count = [this](rocksdb::Tickers ticker) { return counters->getTickerCount(ticker); };
  CacheCounts counts{};
  counts.budget_bytes = blocks->GetCapacity();
  counts.held_bytes = blocks->GetUsage();
  counts.hits = count(rocksdb::BLOCK_CACHE_HIT);
  counts.hit_bytes = count(rocksdb::BLOCK_CACHE_BYTES_READ);
  counts.misses = count(rocksdb::BLOCK_CACHE_MISS);
  counts.inserted_bytes = count(rocksdb::BLOCK_CACHE_BYTES_WRITE);
  return counts;
}

rust::String Database::property(rust::Str name, bool& found) const {
  std::string value;
  found = db->GetProperty(rocksdb::Slice(name.data(), name.size()), &value);
  return rust::String::lossy(value);
}

Outcome Database::close() {
  if (db == nullptr) return ToOutcome(rocksdb::Status::OK());
  rocksdb::Status s = db->Close();
  db.reset();
  return ToOutcome(s);
}

Database::~Database() {
  db.reset();
  databases--;
}

std::unique_ptr<Database> open_database(size_t fs, const Config& config, rust::Box<Filter> filter,
                                        Outcome& outcome) {
  auto database = std::make_unique<Database>();
  // The databases of a process share their threads: none waits for the compactions of another.
  const int threads = ++databases * std::max(1, config.max_background_jobs);
  for (const auto pool : {rocksdb::Env::Priority::LOW, rocksdb::Env::Priority::HIGH}) {
    rocksdb::Env::Default()->IncBackgroundThreadsIfNeeded(threads, pool);
  }
  database->file_system = std::make_shared<Unjudged>(NewFileSystem(reinterpret_cast<zs_fs*>(fs)));
  database->env = rocksdb::NewCompositeEnv(database->file_system);
  rocksdb::Options options = MakeOptions(config);
  options.env = database->env.get();
  database->scanned = options.prefix_extractor;
  const auto* table = options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
  database->blocks = table->block_cache;
  database->counters = options.statistics;
  database->filter = std::make_shared<ReplayFilter>(std::move(filter));
  options.wal_filter = database->filter.get();
  database->background = std::make_shared<Background>(options.level0_slowdown_writes_trigger);
  options.listeners.push_back(database->background);
  const std::string directory(config.directory);
  rocksdb::DB* db = nullptr;
  rocksdb::Status s = config.read_only ? rocksdb::DB::OpenForReadOnly(options, directory, &db)
                                       : rocksdb::DB::Open(options, directory, &db);
  database->db.reset(db);
  if (s.ok() && !config.read_only) database->background->Start(db);
  outcome = ToOutcome(s);
  if (s.IsIOError() && IsLocked(*database->file_system, directory)) outcome.kind = Kind::Busy;
  return s.ok() ? std::move(database) : nullptr;
}

}  // namespace zonestore::kv
