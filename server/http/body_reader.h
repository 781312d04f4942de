// BodyReader: the body of a request, out of the bytes that follow its header: as many as the header
// says, or in chunks (RFC 9112, section 7.1).
//
// A client may say any length and send nothing: no more than kFirstBytes are allocated for bytes
// that have not come. Everything that a client sends is read or refused; extensions of chunks and
// fields after the last one are passed over.
//
//   BodyReader reader(std::nullopt);                      // in chunks
//   ASSIGN_OR_RETURN(size_t taken, reader.Add("2\r\nab\r\n0\r\n\r\nGET "));
//   reader.IsWhole();                                     // `taken` ends before "GET "
//
// Errors: INVALID_ARGUMENT for bytes that are no chunk; the reader takes nothing more then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

class BodyReader {
 public:
  static constexpr uint64_t kFirstBytes = uint64_t{64} << 10;
  // The line of a chunk's size, and all fields after the last chunk.
  static constexpr size_t kMostLineBytes = size_t{4} << 10;
  static constexpr size_t kMostTrailerBytes = size_t{16} << 10;

  // `length`: the number of bytes that the header gives; nullopt: they come in chunks.
  explicit BodyReader(std::optional<uint64_t> length);

  // Takes bytes from the front, up to the end of the body, and says how many.
  absl::StatusOr<size_t> Add(absl::string_view bytes);
  bool IsWhole() const { return state_ == State::kWhole; }

  const std::string& body() const { return body_; }
  std::string TakeBody() { return std::move(body_); }

 private:
  enum class State {
    kData,       // `left_` bytes of a chunk, or of the body
    kDataEnd,    // the line's end after a chunk
    kSize,       // the digits of a chunk's size
    kExtension,  // the rest of that line
    kLineStart,  // a field after the last chunk begins, or the empty line
    kField,      // the rest of that line
    kWhole,
  };

  // Go on to the state after a line feed, for each state.
  absl::Status OnLineEnd();
  absl::Status OnLineByte(char c);
  absl::Status OnSizeByte(char c);
  void Append(absl::string_view bytes);

  const bool in_chunks_;
  State state_;
  uint64_t left_ = 0;
  bool after_return_ = false;  // the last byte was a carriage return, which ends a line
  bool has_digit_ = false;
  size_t line_bytes_ = 0;  // the line has, or all fields after the last chunk
  std::string body_;
};

}  // namespace reprise
