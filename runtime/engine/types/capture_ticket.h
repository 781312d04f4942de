// CaptureTicket: held by a request that waited for a capture.
#pragma once

#include <atomic>

namespace reprise {

// A ticket that a request holds after it waited: among the requests that waited for one capture
// exactly one says `captured`.
class CaptureTicket {
 public:
  enum class Of { kCapture, kPaddingProof };

  explicit CaptureTicket(Of of = Of::kCapture) : of_(of) {}

  bool of_capture() const { return of_ == Of::kCapture; }
  // Returns true once, for the first request that is answered with the recipe.
  bool Claim() { return captured.load() && !claimed_.exchange(true); }

  std::atomic<bool> captured{false};  // the capture did happen, and for this key

 private:
  const Of of_;
  std::atomic<bool> claimed_{false};
};

}  // namespace reprise
