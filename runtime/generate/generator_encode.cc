// The part of Generator that has prompts encoded: their keys and values lie in pages of the pool.
#include "absl/strings/str_cat.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/sequence_pages.h"

namespace reprise {

int64_t Generator::CrossPagesMissing(const Sequence& sequence) const {
  const std::optional<CrossPages>& cross = sequence.request->cross;
  if (!cross.has_value() || cross->holders > 0) return 0;
  return cross->PagesOf(pages_->options().positions);
}

bool Generator::Encode(Sequence& sequence) {
  CrossPages& cross = *sequence.request->cross;
  if (cross.holders == 0) {
    // One prompt a step: sequences that go on wait for no more.
    if (encoded_ && !running_.empty()) return false;
    encoded_ = true;
    const bool known = cross.length.has_value();
    absl::Status status = encoder_->Run(cross.prompt, cross_context_);
    if (status.ok()) {
      cross.length = encoder_->length();
      status = CheckPages(*sequence.request);
      if (status.ok()) status = CheckBeamPages(*sequence.request);
    }
    const int64_t wanted = cross.PagesOf(pages_->options().positions);
    // How much room it takes is known by now: it waits as others do.
    if (status.ok() && !known && !running_.empty() && wanted >= pages_->available()) {
      encoder_->Drop();
      return false;
    }
    for (int64_t page = 0; status.ok() && page < wanted; ++page) {
      const PageId taken = TakePage(sequence);
      if (taken == kNoPage) {
        status = absl::ResourceExhaustedError(absl::StrCat("the encoder's result needs ", wanted,
                                                           " pages, and only ", page, " are free"));
        break;
      }
      cross.pages.push_back(taken);
      cross.addresses.push_back(pages_->address(taken));
    }
    if (status.ok()) encoder_->Write(cross.addresses);
    encoder_->Drop();
    HoldCross(sequence);
    if (!status.ok()) {
      End(sequence, Ending::kError, status);
      return false;
    }
    return true;
  }
  HoldCross(sequence);
  return true;
}

}  // namespace reprise
