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

// Groups of keys that begin alike: which ones, shapes say, one for each first byte. A key that has the shape's bytes at
// their places, 0 standing for any byte, is of the group of its first so many bytes.
class Groups : public rocksdb::SliceTransform {
 public:
  // `shapes`: each behind its length. The name is kept in each SST, whose filter is of no use to other shapes.
  Groups(const char* name, const rust::Vec<uint8_t>& shapes) : name_(name) {
    for (size_t at = 0; at < shapes.size(); at += 1 + shapes[at]) {
      const std::string shape(shapes.begin() + at + 1, shapes.begin() + at + 1 + shapes[at]);
      shapes_[static_cast<uint8_t>(shape[0])] = shape;
      name_ += "." + rocksdb::Slice(shape).ToString(true);
    }
  }
  const char* Name() const override { return name_.c_str(); }
  bool InDomain(const rocksdb::Slice& key) const override { return Length(key) > 0; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return {key.data(), Length(key)};
  }
  // Whether all keys from `lower` up to but without `upper` are of one group.
  bool IsOne(const rocksdb::Slice& lower, const rocksdb::Slice& upper) const {
    std::string behind(lower.data(), Length(lower));
    if (behind.empty()) return false;
    while (!behind.empty() && behind.back() == '\xff') behind.pop_back();
    if (!behind.empty()) behind.back()++;
    return upper == rocksdb::Slice(behind);
  }

 protected:
  // Of the group's bytes; 0 if the key is of none.
  size_t Length(const rocksdb::Slice& key) const {
    if (key.empty()) return 0;
    const std::string& shape = shapes_[static_cast<uint8_t>(key[0])];
    if (key.size() < shape.size()) return 0;
    for (size_t i = 0; i < shape.size(); i++) {
      if (shape[i] != 0 && shape[i] != key[i]) return 0;
    }
    return shape.size();
  }

 private:
  std::string name_;
  std::array<std::string, 256> shapes_;
};

// What filters know: groups, and each key that is of none.
class GroupsAndKeys final : public Groups {
 public:
  explicit GroupsAndKeys(const rust::Vec<uint8_t>& shapes)
      : Groups("zonestore.GroupsAndKeys", shapes) {}
  bool InDomain(const rocksdb::Slice&) const override { return true; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    const size_t length = Length(key);
    return length > 0 ? rocksdb::Slice(key.data(), length) : key;
  }
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "counters are little-endian");

}  // namespace zonestore::kv
