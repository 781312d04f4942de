#include "server/http/body_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr uint64_t kGrowth = 4;
constexpr uint64_t kMostChunkBytes = uint64_t{1} << 60;

int DigitOf(char c) {
  if (absl::ascii_isdigit(static_cast<unsigned char>(c))) return c - '0';
  return absl::ascii_tolower(static_cast<unsigned char>(c)) - 'a' + 10;
}

}  // namespace

BodyReader::BodyReader(std::optional<uint64_t> length)
    : in_chunks_(!length.has_value()), left_(length.value_or(0)) {
  state_ = in_chunks_ ? State::kSize : left_ > 0 ? State::kData : State::kWhole;
  body_.reserve(std::min(left_, kFirstBytes));
}

absl::StatusOr<size_t> BodyReader::Add(absl::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && state_ != State::kWhole) {
    if (state_ == State::kData) {
      const size_t size = std::min<uint64_t>(left_, bytes.size() - taken);
      Append(bytes.substr(taken, size));
      taken += size;
      left_ -= size;
      if (left_ == 0) state_ = in_chunks_ ? State::kDataEnd : State::kWhole;
      continue;
    }
    RETURN_IF_ERROR(OnLineByte(bytes[taken++]));
  }
  return taken;
}

absl::Status BodyReader::OnLineByte(char c) {
  if (after_return_) {
    after_return_ = false;
    if (c != '\n') return absl::InvalidArgumentError("a carriage return without a line feed");
    return OnLineEnd();
  }
  const size_t most =
      state_ == State::kLineStart || state_ == State::kField ? kMostTrailerBytes : kMostLineBytes;
  if (++line_bytes_ > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", most, " bytes in a line between chunks, or after the last"));
  }
  if (c == '\r') {
    after_return_ = true;
    return absl::OkStatus();
  }
  if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\t') {
    return absl::InvalidArgumentError("a control character in a line between chunks");
  }
  switch (state_) {
    case State::kDataEnd:
      return absl::InvalidArgumentError("a chunk is longer than its size");
    case State::kSize:
      return OnSizeByte(c);
    case State::kLineStart:
      state_ = State::kField;
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status BodyReader::OnSizeByte(char c) {
  if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) {
    if (!has_digit_ || (c != ';' && c != ' ' && c != '\t')) {
      return absl::InvalidArgumentError("the size of a chunk is not a hexadecimal number");
    }
    state_ = State::kExtension;
    return absl::OkStatus();
  }
  has_digit_ = true;
  left_ = left_ * 16 + static_cast<uint64_t>(DigitOf(c));
  if (left_ > kMostChunkBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk has more than ", kMostChunkBytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status BodyReader::OnLineEnd() {
  switch (state_) {
    case State::kSize:
    case State::kExtension:
      if (!has_digit_) return absl::InvalidArgumentError("a chunk has no size");
      has_digit_ = false;
      line_bytes_ = 0;
      state_ = left_ > 0 ? State::kData : State::kLineStart;
      return absl::OkStatus();
    case State::kDataEnd:
      line_bytes_ = 0;
      state_ = State::kSize;
      return absl::OkStatus();
    case State::kLineStart:
      state_ = State::kWhole;
      return absl::OkStatus();
    default:
      state_ = State::kLineStart;
      return absl::OkStatus();
  }
}

void BodyReader::Append(absl::string_view bytes) {
  const uint64_t size = body_.size(), more = bytes.size();
  if (size + more > body_.capacity()) {
    // A body in chunks may end with each of them.
    const uint64_t most = in_chunks_ ? UINT64_MAX : size + left_;
    body_.reserve(std::max(size + more, std::min(most, kGrowth * size)));
  }
  body_.append(bytes.data(), bytes.size());
}

}  // namespace reprise
