// Which SSTs are compacted for the rows that were deleted, before anybody wants their space.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "rocksdb/table_properties.h"
#include "rocksdb/utilities/table_properties_collectors.h"

namespace zonestore::kv {

// Lets a collector see those rows of an SST that are listed.
class OfListed final : public rocksdb::TablePropertiesCollector {
 public:
  OfListed(const std::string& prefixes, rocksdb::TablePropertiesCollector* inner)
      : prefixes_(prefixes), inner_(inner) {}
  const char* Name() const override { return "zonestore.OfListed"; }
  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice& value, rocksdb::EntryType type,
                             rocksdb::SequenceNumber sequence, uint64_t file_size) override {
    if (key.empty() || prefixes_.find(key[0]) == std::string::npos) return rocksdb::Status::OK();
    return inner_->AddUserKey(key, value, type, sequence, file_size);
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    return inner_->Finish(properties);
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override {
    return inner_->GetReadableProperties();
  }
  bool NeedCompact() const override { return inner_->NeedCompact(); }

 private:
  const std::string prefixes_;
  const std::unique_ptr<rocksdb::TablePropertiesCollector> inner_;
};

// An SST whose listed rows are half tombstones in any run of so many is compacted: listing steps over each.
class DeletedOfListed final : public rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit DeletedOfListed(std::string prefixes) : prefixes_(std::move(prefixes)) {}
  const char* Name() const override { return "zonestore.DeletedOfListed"; }
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context context) override {
    return new OfListed(prefixes_, inner_->CreateTablePropertiesCollector(context));
  }

 private:
  const std::string prefixes_;
  const std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> inner_ =
      rocksdb::NewCompactOnDeletionCollectorFactory(512, 256);
};

}  // namespace zonestore::kv
