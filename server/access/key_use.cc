#include "server/access/key_use.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/hash64.h"
#include "runtime/base/shown_text.h"

namespace reprise {
namespace {

// Returns the number of an owner of pages: of two kinds, one name has two.
uint64_t OwnerOf(absl::string_view kind, absl::string_view name) {
  return Hash64(absl::StrCat(kind, " ", name)) | 1;
}

}  // namespace

// A ticket points to one of these. Empty until the request is counted.
struct KeyUse::Held {
  ~Held() {
    if (use != nullptr) use->End();
  }
  std::shared_ptr<KeyUse> use;
};

KeyUse::KeyUse(std::string name)
    : name_(std::move(name)), id_(Hash64(name_) | 1), page_owner_(OwnerOf("key", name_)) {}

void KeyUse::SetLimits(const KeyLimits& limits) {
  weight_ = limits.weight;
  page_owner_ = limits.pages.empty() ? OwnerOf("key", name_) : OwnerOf("pages", limits.pages);
  MutexLock lock(mutex_);
  if (limits == limits_) return;
  limits_ = limits;
  allowed_ = static_cast<double>(limits.burst);
}

absl::StatusOr<KeyUse::Ticket> KeyUse::Begin(int64_t now_ns) {
  const auto held = std::make_shared<Held>();
  MutexLock lock(mutex_);
  if (limits_.concurrent > 0 && running_ >= limits_.concurrent) {
    return absl::ResourceExhaustedError(absl::StrCat("key ", QuotedText(name_), " has ", running_,
                                                     " requests under way, the most is ",
                                                     limits_.concurrent));
  }
  if (limits_.rate > 0) {
    const double since_s = static_cast<double>(std::max<int64_t>(0, now_ns - filled_ns_)) * 1e-9;
    allowed_ = std::min(static_cast<double>(limits_.burst), allowed_ + since_s * limits_.rate);
    filled_ns_ = std::max(filled_ns_, now_ns);
    if (allowed_ < 1) {
      return absl::ResourceExhaustedError(absl::StrCat("key ", QuotedText(name_), " may send ",
                                                       limits_.rate, " requests a second, ",
                                                       limits_.burst, " at once"));
    }
    allowed_ -= 1;
  }
  ++running_;
  held->use = shared_from_this();
  return held;
}

absl::StatusOr<KeyUse::Ticket> KeyUse::BeginFor(const std::shared_ptr<KeyUse>& key,
                                                int64_t now_ns) {
  if (key == nullptr) return Ticket();
  return key->Begin(now_ns);
}

void KeyUse::End() {
  MutexLock lock(mutex_);
  --running_;
}

}  // namespace reprise
