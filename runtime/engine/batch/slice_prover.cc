#include "runtime/engine/batch/slice_prover.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/verify/slice_proof.h"

namespace reprise {
namespace {

// Returns, by axis, the largest bucket that is in force, or 0 where nothing is padded.
std::vector<int64_t> LargestInForce(const Model& model) {
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  std::vector<int64_t> largest;
  for (const ModelAxis& axis : model.axes()) {
    const bool padded = model.certified().contains(axis.label);
    largest.push_back(padded ? policy->Largest(axis.label).value_or(0) : 0);
  }
  return largest;
}

}  // namespace

void SliceProver::Look(const Model& model, const SizeSlices::Slice& slice) const {
  const absl::Status holds =
      WithinMemory([] { return "looking at sizes that decide something"; },
                   [&] {
                     const ProofSubject subject = SubjectOf(model.view());
                     return SliceProof(subject, slice, LargestInForce(model)).Run();
                   });
  SizeSlices& slices = *model.slices();
  WhereMemoryAllows([&] {
    constexpr size_t kMostTold = 20;
    if (holds.ok() || slices.refused() > kMostTold) return;
    std::string sizes;
    for (size_t i = 0; i < slice.size(); ++i) {
      if (slice[i] == SizeSlices::kFree) continue;
      absl::StrAppend(&sizes, sizes.empty() ? "" : ", ", model.axes()[i].label, " ", slice[i]);
    }
    model.Note(absl::StrCat("requests of ", sizes, " run exact: ", std::string(holds.message())));
  });
  slices.Learn(slice, holds);
}

std::shared_ptr<CaptureTicket> SliceProver::Await(const Model& model, const RequestShape& shape,
                                                  CaptureUrgency urgency,
                                                  std::function<void(absl::Status)> ready) const {
  SizeSlices& slices = *model.slices();
  const SizeSlices::Slice slice = slices.SliceOf(shape.sizes);
  std::function<void()> done;
  if (ready != nullptr) done = [ready = std::move(ready)] { ready(absl::OkStatus()); };
  CapturePool* const pool = options_.captures;
  const auto job = [this, slice, shared = model.shared_from_this()](Stream* stream) {
    if (stream != nullptr) return Look(*shared, slice);
    shared->slices()->Learn(slice, absl::UnavailableError("no thread had the time or the memory to "
                                                          "find out whether padding holds"));
  };
  bool begun = false;
  const bool waits = slices.Await(
      slice, std::move(done), [&] { return begun = pool == nullptr || pool->Add(urgency, job); });
  if (begun && pool == nullptr) Look(model, slice);
  return waits ? std::make_shared<CaptureTicket>(CaptureTicket::Of::kPaddingProof) : nullptr;
}

}  // namespace reprise
