// SizeSlices: where, among the sizes that decide something in a model, its certificates hold.
//
// An axis decides where its size chooses a branch, a number or a form (size_choices.h).
// What is certified of another axis was looked at for one outcome of that choice. A
// **slice** is a choice of sizes for the axes that decide: there the certificates are looked at
// once more (slice_proof.h), when the first request comes; requests of a slice where they do not
// hold run exact, alone and unpadded.
//
// Sizes of an axis that decides up to some bound may all decide alike, as those that it is padded
// to do: these are not fixed in a slice. A request with such sizes alone asks nothing.
//
// Threads: all methods from any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/mutex.h"

namespace reprise {

class SizeSlices {
 public:
  // By position in Model::axes(): the size that is fixed, or kFree.
  using Slice = absl::InlinedVector<int64_t, 4>;
  static constexpr int64_t kFree = -1;
  static constexpr int64_t kDecidesNothing = INT64_MAX;

  enum class State { kUnknown, kHolds, kRefused };
  struct Found {
    State state = State::kUnknown;
    std::string why;  // the reason for kRefused
  };

  // `alike_up_to`: by axis, the largest size up to which all decide alike, or kDecidesNothing.
  explicit SizeSlices(std::vector<int64_t> alike_up_to) : alike_up_to_(std::move(alike_up_to)) {}

  // Another size of the axis than `size` may decide otherwise, however close to it.
  bool Decides(size_t axis, int64_t size) const { return size > alike_up_to_[axis]; }
  // Returns whether any of these sizes does, by axis: the request's slice has something fixed.
  bool AnyDecides(absl::Span<const int64_t> sizes) const;
  // Returns the slice of a request of these sizes.
  Slice SliceOf(absl::Span<const int64_t> sizes) const;
  // Returns the state of a request's slice. Most requests' slices have nothing fixed: that takes no
  // lock.
  State Find(absl::Span<const int64_t> sizes) const;
  Found FindWithReason(const Slice& slice) const;

  // Somebody waits for what is to be found out of `slice`: `done`, which may be empty, is called
  // once, on the thread that finds it out. Where nobody is at it yet, `begin` is asked to begin;
  // who does calls Learn, whatever happens, and not within `begin`. False, and `done` is not
  // called: it is known already, or `begin` answers false.
  bool Await(const Slice& slice, std::function<void()> done, absl::FunctionRef<bool()> begin);
  // Takes a finding: the certificates hold, or why not. Where there is no memory to keep that,
  // those that wait are called all the same.
  void Learn(const Slice& slice, const absl::Status& holds);
  // Buckets have grown: the findings hold for the old ones.
  void Forget();

  // Returns how many slices are known to be refused.
  size_t refused() const;

 private:
  // Slices are as many as clients send sizes: the list starts again when it holds this many.
  static constexpr size_t kMostKnown = 4096;

  // Constant after construction.
  const std::vector<int64_t> alike_up_to_;
  // Guarded.
  mutable Mutex mutex_;
  absl::flat_hash_map<Slice, Found> known_ GUARDED_BY(mutex_);
  absl::flat_hash_map<Slice, std::vector<std::function<void()>>> asked_ GUARDED_BY(mutex_);
  size_t refused_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
