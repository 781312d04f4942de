#include "server/http2/frame_gate.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>

namespace reprise {
namespace {

// Room for more waiting bytes: all that a client without room for answers may make wait, so that
// its bytes are moved to no other block, and no hole stays in the heap.
constexpr size_t kSpareBytes = 17 << 10;

}  // namespace

FrameGate::Head FrameGate::Parse(const char* bytes) {
  const auto byte = [bytes](int i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i]));
  };
  return {.length = byte(0) << 16 | byte(1) << 8 | byte(2),
          .type = static_cast<uint8_t>(byte(3)),
          .stream = static_cast<int32_t>((byte(5) & 0x7f) << 24 | byte(6) << 16 | byte(7) << 8 |
                                         byte(8))};
}

bool FrameGate::MayPass(const Head& head, bool is_blocked, MayOpen may_open) {
  switch (head.type) {
    case NGHTTP2_HEADERS:
      if (is_blocked) return false;
      if (head.stream <= last_stream_) return true;
      if (!may_open()) return false;
      last_stream_ = head.stream;
      return true;
    case NGHTTP2_CONTINUATION:
      return !is_blocked;
    case NGHTTP2_SETTINGS:
    case NGHTTP2_PING:
    case NGHTTP2_GOAWAY:
      return true;
    default:
      return !is_blocked || head.stream <= last_stream_;
  }
}

void FrameGate::Hold(absl::string_view bytes) {
  const size_t wanted = held_.size() + bytes.size();
  if (wanted > held_.capacity()) {
    std::string larger;  // a string that grows doubles itself
    larger.reserve(wanted + kSpareBytes);
    larger.append(held_);
    held_.swap(larger);
  }
  held_.append(bytes.data(), bytes.size());
}

void FrameGate::Receive(absl::string_view bytes, MayOpen may_open, Pass pass) {
  size_t passed = 0, at = 0;  // those between them may pass
  const auto pass_on = [&] {
    const absl::string_view part = bytes.substr(passed, at - passed);
    passed = at;
    return part.empty() || pass(part);
  };
  while (at < bytes.size()) {
    if (left_ > 0) {
      const size_t part = std::min(left_, bytes.size() - at);
      if (!passes_) Hold(bytes.substr(at, part));
      left_ -= part;
      at += part;
      if (!passes_) passed = at;
      continue;
    }
    // Bytes in front of a head go on before it is judged.
    if (!pass_on()) return;
    const size_t part = std::min(kHeadBytes - head_bytes_, bytes.size() - at);
    std::memcpy(head_ + head_bytes_, bytes.data() + at, part);
    head_bytes_ += part;
    at += part;
    passed = at;
    if (head_bytes_ < kHeadBytes) return;
    head_bytes_ = 0;
    const Head head = Parse(head_);
    left_ = head.length;
    passes_ = MayPass(head, !held_.empty(), may_open);
    if (!passes_) {
      Hold({head_, kHeadBytes});
    } else if (part == kHeadBytes) {
      passed -= kHeadBytes;  // they go on together with the payload
    } else if (!pass({head_, kHeadBytes})) {
      return;
    }
  }
  pass_on();
}

bool FrameGate::Release(MayOpen may_open, Pass pass) {
  const bool is_inside_another = passes_ && left_ > 0;
  // The first frame that waits opens a stream, and nothing passes where it does not.
  if (held_.empty() || is_inside_another || !may_open()) return false;
  size_t kept = 0;
  for (size_t at = 0, size = 0; at < held_.size(); at += size) {
    const Head head = Parse(held_.data() + at);
    const bool is_whole = kHeadBytes + head.length <= held_.size() - at;
    size = is_whole ? kHeadBytes + head.length : held_.size() - at;
    if (!MayPass(head, kept > 0, may_open)) {
      std::memmove(held_.data() + kept, held_.data() + at, size);
      kept += size;
      continue;
    }
    if (!is_whole) passes_ = true;
    if (!pass({held_.data() + at, size})) break;
  }
  held_.resize(kept);
  if (kept == 0) std::string().swap(held_);
  return true;
}

}  // namespace reprise
