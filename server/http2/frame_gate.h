// FrameGate: keeps calls that a client begins while it may not begin one, as their raw bytes: a
// tenth of the memory of an open stream.
//
// It stands in front of the session and reads the heads of frames alone. A frame that opens a
// stream waits until it may, and with it all header blocks after it, which must keep their order.
// Frames of streams that are open, and of the connection, pass by: a client that waits for an
// answer or has room again is heard whatever it has sent before.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace reprise {

class FrameGate {
 public:
  // True: one more stream may be opened now, all bytes that have passed being counted.
  using MayOpen = absl::FunctionRef<bool()>;
  // Takes bytes that pass. False: nothing is taken any more.
  using Pass = absl::FunctionRef<bool(absl::string_view bytes)>;

  // Bytes of the client, however they are cut, from its first one on.
  void Receive(absl::string_view bytes, MayOpen may_open, Pass pass);
  // Lets frames pass that may by now. False: none did.
  bool Release(MayOpen may_open, Pass pass);
  // Bytes that wait.
  size_t held() const { return held_.size(); }

 private:
  static constexpr size_t kHeadBytes = 9;
  static constexpr size_t kPrefaceBytes = 24;

  struct Head {
    size_t length;
    uint8_t type;
    int32_t stream;
  };
  static Head Parse(const char* bytes);
  // `is_blocked`: a header block waits in front of the frame.
  bool MayPass(const Head& head, bool is_blocked, MayOpen may_open);

  void Hold(absl::string_view bytes);

  int32_t last_stream_ = 0;  // that was opened
  std::string held_;         // frames; the last one may not be whole yet
  // The frame that is being received; the preface at first.
  char head_[kHeadBytes] = {};
  size_t head_bytes_ = 0;        // that have come of a head which is not whole
  size_t left_ = kPrefaceBytes;  // bytes that follow its head and have not come
  bool passes_ = true;
};

}  // namespace reprise
