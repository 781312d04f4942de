#include "tools/serve/store_merge.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/recipe/record_file.h"
#include "tools/serve/pooled_usage.h"

namespace reprise::cli {
namespace {

struct MergedRecord {
  RecordName name;
  int64_t modified_unix_s = 0;
  int64_t rebuild_ns = 0;
  std::vector<std::string> payloads;  // all of a usage record, else the newest
};

// Returns the key under which records are joined: without the model that stored it, but for usage,
// which each model has its own record of.
std::string KeyOf(RecordName name) {
  if (name.kind != RecordKind::kUsage) name.origin = 0;
  return name.file();
}

// Returns the record in a file of the store; nullopt where it is damaged or not signed, or of
// another kind than its name says.
std::optional<Record> ReadEntry(const RecipeStore& store, const RecipeStore::Entry& entry) {
  absl::StatusOr<Record> record = store.ReadEntry(entry);
  if (!record.ok() || record->kind != entry.name->kind) return std::nullopt;
  return *std::move(record);
}

// Adds the records of `store`. Returns how many cannot be read.
int64_t TakeRecords(RecipeStore& store, std::map<std::string, MergedRecord>& records) {
  int64_t left_out = 0;
  for (const RecipeStore::Entry& entry : store.List()) {
    std::optional<Record> record;
    if (entry.name.has_value()) record = ReadEntry(store, entry);
    if (!record.has_value()) {
      ++left_out;
      continue;
    }
    MergedRecord& merged = records[KeyOf(*entry.name)];
    const bool is_usage = entry.name->kind == RecordKind::kUsage;
    const bool is_newer = merged.payloads.empty() || entry.modified_unix_s > merged.modified_unix_s;
    if (is_newer) {
      merged.name = *entry.name;
      merged.modified_unix_s = entry.modified_unix_s;
      merged.rebuild_ns = record->rebuild_ns;
      if (!is_usage) merged.payloads.clear();
    }
    if (is_newer || is_usage) merged.payloads.push_back(std::move(record->payload));
  }
  return left_out;
}

}  // namespace

absl::StatusOr<MergedStores> MergeStores(const std::vector<std::unique_ptr<RecipeStore>>& stores,
                                         RecipeStore& out) {
  MergedStores merged;
  std::map<std::string, MergedRecord> records;
  merged.left_out += TakeRecords(out, records);
  for (const auto& store : stores) merged.left_out += TakeRecords(*store, records);
  for (auto& [key, record] : records) {
    const bool pools = record.payloads.size() > 1;
    const std::string payload =
        pools ? PoolUsage(record.payloads) : std::move(record.payloads.front());
    if (payload.empty()) {
      merged.left_out += std::ssize(record.payloads);
      continue;
    }
    if (pools) ++merged.pooled;
    RETURN_IF_ERROR(out.Write(record.name, record.rebuild_ns, payload));
    ++merged.records;
  }
  return merged;
}

}  // namespace reprise::cli
