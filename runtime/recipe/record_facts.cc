#include "runtime/recipe/record_facts.h"

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/hash64.h"
#include "runtime/base/status_macros.h"
#include "runtime/recipe/key.h"

namespace reprise {
namespace {

template <typename Message>
absl::StatusOr<Message> MessageOf(const std::string& payload) {
  Message message;
  if (message.ParseFromString(payload)) return message;
  return absl::DataLossError("its payload is not a valid message");
}

absl::Status NotItsName() { return absl::DataLossError("it has the name of another record"); }

}  // namespace

absl::StatusOr<RecordFacts> FactsOf(absl::string_view bytes, const RecordName& name) {
  ASSIGN_OR_RETURN(const Record record, DecodeRecord(bytes));
  if (record.kind != name.kind) return NotItsName();
  RecordFacts facts = {.kind = record.kind, .rebuild_ns = record.rebuild_ns};
  switch (record.kind) {
    case RecordKind::kRecipe: {
      ASSIGN_OR_RETURN(const auto stored, MessageOf<recipe::v1::StoredRecipe>(record.payload));
      if (stored.key().hash() != name.key) return NotItsName();
      facts.model = stored.model();
      facts.version = stored.version();
      facts.bucket = stored.bucket();
      facts.device = stored.key().device();
      facts.compiler = stored.key().compiler();
      facts.created_unix_s = stored.created_unix_s();
      return facts;
    }
    case RecordKind::kModel: {
      ASSIGN_OR_RETURN(const auto stored, MessageOf<recipe::v1::StoredModel>(record.payload));
      if (Hash64(stored.key().device()) != name.device) return NotItsName();
      facts.model = stored.model();
      facts.version = stored.version();
      facts.device = stored.key().device();
      facts.compiler = stored.key().compiler();
      facts.created_unix_s = stored.created_unix_s();
      return facts;
    }
    case RecordKind::kUsage: {
      ASSIGN_OR_RETURN(const auto stored, MessageOf<recipe::v1::StoredUsage>(record.payload));
      if (Hash64(stored.graph()) != name.graph) return NotItsName();
      facts.model = stored.model();
      facts.version = stored.version();
      facts.created_unix_s = stored.updated_unix_s();
      return facts;
    }
    case RecordKind::kChoices: {
      ASSIGN_OR_RETURN(const auto stored, MessageOf<recipe::v1::StoredChoices>(record.payload));
      if (Hash64(stored.device()) != name.device) return NotItsName();
      facts.device = stored.device();
      facts.compiler = stored.compiler();
      facts.created_unix_s = stored.updated_unix_s();
      return facts;
    }
    case RecordKind::kBundle:
      break;
  }
  return absl::DataLossError("it is a bundle, which has to be imported");
}

absl::Status UsableOn(const RecordFacts& facts, const std::string& device) {
  if (!facts.device.empty() && facts.device != device) {
    return absl::FailedPreconditionError(
        absl::StrCat("it was made for '", facts.device, "', and this is '", device, "'"));
  }
  if (!facts.compiler.empty() && facts.compiler != CompilerId()) {
    return absl::FailedPreconditionError(
        absl::StrCat("it was made by compiler ", facts.compiler, ", and this is ", CompilerId()));
  }
  return absl::OkStatus();
}

std::string EncodeBundle(const std::vector<BundledRecord>& records) {
  recipe::v1::StoreBundle bundle;
  for (const BundledRecord& record : records) {
    auto* to = bundle.add_records();
    to->set_file(record.file);
    to->set_bytes(record.bytes);
  }
  return EncodeRecord({.kind = RecordKind::kBundle, .payload = bundle.SerializeAsString()});
}

absl::StatusOr<std::vector<BundledRecord>> DecodeBundle(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const Record record, DecodeRecord(bytes));
  if (record.kind != RecordKind::kBundle) {
    return absl::DataLossError(absl::StrCat("it is a ", RecordKindName(record.kind), " record"));
  }
  ASSIGN_OR_RETURN(const auto bundle, MessageOf<recipe::v1::StoreBundle>(record.payload));
  std::vector<BundledRecord> records;
  for (const auto& one : bundle.records()) {
    // A name decides where the record is written: only names of our form are accepted.
    if (!RecordName::Parse(one.file()).has_value()) {
      return absl::DataLossError(absl::StrCat("it has a file '", one.file(), "'"));
    }
    records.push_back({one.file(), one.bytes()});
  }
  return records;
}

}  // namespace reprise
