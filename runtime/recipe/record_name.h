// RecordName: the name of a file in a recipe store, which is all that a lookup needs.
//
//   recipe-KEY-GRAPH-SUBJECT-DEVICE-ORIGIN-COMPILER.rps
//
// The words in capitals are 64-bit hashes in hex. KEY covers all the fields of the record's key: a
// recipe's KEY is its name in all commands, logs and answers. The others tell why a record is
// absent, from a listing of the folder alone: one with the same graph and subject but another
// device was stored for another device.
//
// ORIGIN tells which model's graph has changed, and nothing else: a record is the same whichever
// model had it stored, so that a renamed model and a twin find it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/recipe/record_file.h"

namespace reprise {

struct RecordName {
  RecordKind kind = RecordKind::kRecipe;
  uint64_t key = 0;
  uint64_t graph = 0;
  uint64_t subject = 0;  // further fields of its key: binding and policy; settings
  uint64_t device = 0;
  uint64_t origin = 0;  // the name of the model that had it stored
  uint64_t compiler = 0;

  std::string file() const;
  static std::optional<RecordName> Parse(absl::string_view file);
  // Returns whether both name the same record, whichever model had it stored.
  bool IsSameRecord(const RecordName& other) const;
  friend bool operator==(const RecordName&, const RecordName&) = default;
};

}  // namespace reprise
