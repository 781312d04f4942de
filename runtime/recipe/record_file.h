// RecordFile: one checksummed file of a recipe store, as bytes.
//
//   offset  bytes  field (integers little-endian)
//        0      8  "RPSTORE\n"
//        8      4  format version
//       12      4  kind (RecordKind)
//       16      8  bytes of the payload
//       24      8  cost of making it again, in nanoseconds
//       32     16  XXH3-128 of the 32 bytes above and the payload
//       48      -  the payload: a message of proto/recipe.proto, serialised
//                  and where the writer had a key:
//        -      8  "RPSMAC1\n"
//        -     32  a MAC of all bytes above
//
// Nothing else follows. A file that differs from this in one bit is not a record. A checksum finds
// accidents; a MAC finds records that were written by others, and is looked at by readers with a
// key alone.
//
// Threads: functions are pure but for the files they touch; call from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Raised whenever the layout above, or the meaning of a payload, changes.
inline constexpr uint32_t kRecordFormat = 1;
inline constexpr size_t kRecordHeaderBytes = 48;
inline constexpr size_t kMacBytes = 32;

// Returns the MAC of bytes by a key that it holds, kMacBytes long. Null: there is no key.
using RecordMac = std::function<std::string(absl::string_view bytes)>;

// A bundle holds other records, and is never in a store.
enum class RecordKind : uint32_t { kRecipe = 1, kModel = 2, kUsage = 3, kBundle = 4, kChoices = 5 };
// Returns "recipe", "model", "usage", "bundle", "choices".
absl::string_view RecordKindName(RecordKind kind);

// Why the store did not return the record.
enum class StoreMiss {
  kAbsent,          // no such file
  kCorrupt,         // truncated, altered, or no record at all
  kOtherFormat,     // an intact header of another format version
  kForeign,         // intact, but under a name that is not its own
  kOtherPrecision,  // absent; stored for the model's other precision
  kOtherGraph,      // absent; the model had another graph when this bucket was stored
  kOtherDevice,     // absent; stored for another device
  kOtherCompiler,   // absent; stored by another compiler version
  kUnreadable,      // the folder or file cannot be read
  kUnauthentic,     // intact, without a MAC by the reader's key
};
inline constexpr int kNumStoreMisses = 10;
absl::string_view StoreMissName(StoreMiss miss);   // "absent", "other_device"
absl::string_view StoreMissWords(StoreMiss miss);  // words for people

struct Record {
  RecordKind kind = RecordKind::kRecipe;
  int64_t rebuild_ns = 0;
  std::string payload;
};

std::string EncodeRecord(const Record& record, const RecordMac& mac = nullptr);

// Returns DATA_LOSS where the bytes are no intact record, FAILED_PRECONDITION where they are one of
// another format version, UNAUTHENTICATED where `mac` is not null and gives another MAC than
// theirs, or they have none; RecordMissOf tells them apart.
absl::StatusOr<Record> DecodeRecord(absl::string_view bytes, const RecordMac& mac = nullptr);
StoreMiss RecordMissOf(const absl::Status& status);

// Returns the bytes of a file of at most `max_bytes`. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE
// (other errors of the system) or DATA_LOSS (larger than that), naming the path.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, int64_t max_bytes);

// Makes `folder`/`name` hold `bytes`, all of them or none: written to a temporary name, synced,
// renamed, the folder synced. A crash leaves the old file, or the new one, and perhaps a temporary
// one that SweepTemporaries removes. RESOURCE_EXHAUSTED when the disk is full, PERMISSION_DENIED
// when the folder is read-only, else UNAVAILABLE.
absl::Status WriteFileAtomically(const std::string& folder, const std::string& name,
                                 absl::string_view bytes);

// Removes temporary files that no living writer holds.
void SweepTemporaries(const std::string& folder);

}  // namespace reprise
