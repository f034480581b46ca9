// What rows are to RocksDB: how counters add up, and which keys belong together.
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rust/cxx.h"

namespace zonestore::kv {

// Values are arrays of little-endian 64-bit counters, added element by element with wrapping; the
// shorter one counts as if zeros followed.
class AddCounters final : public rocksdb::AssociativeMergeOperator {
 public:
  explicit AddCounters(std::string prefixes) : prefixes_(std::move(prefixes)) {}
  const char* Name() const override { return "zonestore.AddI64s"; }
  bool Merge(const rocksdb::Slice& key, const rocksdb::Slice* existing, const rocksdb::Slice& value,
             std::string* result, rocksdb::Logger*) const override {
    if (key.empty() || prefixes_.find(key[0]) == std::string::npos) return false;
    if (value.size() % 8 != 0 || (existing != nullptr && existing->size() % 8 != 0)) return false;
    result->assign(value.data(), value.size());
    if (existing == nullptr) return true;
    if (result->size() < existing->size()) result->resize(existing->size(), '\0');
    for (size_t at = 0; at < existing->size(); at += 8) {
      uint64_t a = 0, b = 0;
      std::memcpy(&a, result->data() + at, 8);
      std::memcpy(&b, existing->data() + at, 8);
      a += b;
      std::memcpy(result->data() + at, &a, 8);
    }
    return true;
  }

 private:
  const std::string prefixes_;
};

// Groups of keys by their first bytes: how many these are, the first byte says.
class Groups final : public rocksdb::SliceTransform {
 public:
  explicit Groups(const rust::Vec<uint8_t>& pairs) : name_("zonestore.Groups") {
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      lengths_[pairs[i]] = pairs[i + 1];
      name_ += "." + std::to_string(pairs[i]) + ":" + std::to_string(pairs[i + 1]);
    }
  }
  const char* Name() const override { return name_.c_str(); }
  bool InDomain(const rocksdb::Slice& key) const override {
    const size_t length = key.empty() ? 0 : lengths_[static_cast<uint8_t>(key[0])];
    return length > 0 && key.size() >= length;
  }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return {key.data(), lengths_[static_cast<uint8_t>(key[0])]};
  }
  // Whether all keys from `lower` up to but without `upper` are of one group.
  bool IsOne(const rocksdb::Slice& lower, const rocksdb::Slice& upper) const {
    if (!InDomain(lower)) return false;
    std::string behind = Transform(lower).ToString();
    while (!behind.empty() && behind.back() == '\xff') behind.pop_back();
    if (!behind.empty()) behind.back()++;
    return upper == rocksdb::Slice(behind);
  }

 private:
  std::string name_;
  std::array<uint8_t, 256> lengths_{};
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "counters are little-endian");

}  // namespace zonestore::kv
