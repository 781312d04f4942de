#include "server/access/access_gate.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/shown_text.h"

namespace reprise {
namespace {

constexpr absl::string_view kBearer = "bearer ";

// Returns the key that was presented; empty where none was. `authorization` goes first.
absl::string_view PresentedKey(const Caller& caller) {
  if (absl::StartsWithIgnoreCase(caller.authorization, kBearer)) {
    return absl::StripAsciiWhitespace(caller.authorization.substr(kBearer.size()));
  }
  return absl::StripAsciiWhitespace(caller.api_key);
}

}  // namespace

absl::StatusOr<std::shared_ptr<KeyUse>> AccessGate::Check(Right right, const Caller& caller) const {
  if (right == Right::kNone) return nullptr;
  if (right == Right::kAdmin && options_.has_admin_port && !caller.on_admin_port) {
    return absl::PermissionDeniedError(
        "calls that need the right admin are accepted on the port of --admin-port");
  }
  if (keys_ == nullptr) {
    const bool open = right != Right::kAdmin || caller.is_local || options_.allow_admin;
    if (open) return nullptr;
    return absl::PermissionDeniedError(
        "calls that need the right admin are accepted from this machine only: --allow-admin opens "
        "them to all, --api-key-file to those with a key");
  }
  const absl::string_view presented = PresentedKey(caller);
  if (presented.empty()) {
    return absl::UnauthenticatedError(
        "a key is needed: \"authorization: Bearer KEY\" or \"x-api-key: KEY\"");
  }
  const std::shared_ptr<const KeyRing::Entry> found = keys_->Find(presented);
  if (found == nullptr) return absl::UnauthenticatedError("the key is not known");
  if (!found->key.rights.contains(right)) {
    return absl::PermissionDeniedError(absl::StrCat("key ", QuotedText(found->key.name),
                                                    " does not have the right ", RightName(right)));
  }
  return found->use;
}

}  // namespace reprise
