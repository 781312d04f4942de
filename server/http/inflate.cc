#include "server/http/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr int64_t kFirstBytes = 64 << 10;
// zlib finds out by itself whether its own header or that of gzip is there.
constexpr int kEitherHeader = 32 + MAX_WBITS;

struct Stream : z_stream {
  Stream() : z_stream{} {}
  ~Stream() { inflateEnd(this); }
};

}  // namespace

absl::StatusOr<std::string> Inflate(absl::string_view encoding, absl::string_view body,
                                    int64_t max_bytes) {
  if (!absl::EqualsIgnoreCase(encoding, "gzip") && !absl::EqualsIgnoreCase(encoding, "deflate")) {
    return absl::UnimplementedError(
        absl::StrCat("Content-Encoding is ", encoding, ", gzip and deflate are supported"));
  }
  Stream stream;
  if (inflateInit2(&stream, kEitherHeader) != Z_OK) {
    return absl::ResourceExhaustedError("the body: no memory to decompress it");
  }
  std::string made;
  int64_t size = 0;  // of `made`, as far as it is written
  int result = Z_OK;
  size_t read = 0;
  while (result != Z_STREAM_END) {
    if (size == static_cast<int64_t>(made.size())) {
      if (size > max_bytes) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the body decompresses to more than ", max_bytes, " bytes"));
      }
      // One more than allowed shows that there is more.
      made.resize(static_cast<size_t>(std::min(std::max(2 * size, kFirstBytes), max_bytes + 1)));
    }
    // Both counts of zlib are of 32 bits.
    const size_t in = std::min(body.size() - read, size_t{1} << 30);
    const size_t out = std::min(made.size() - static_cast<size_t>(size), size_t{1} << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(made.data() + size);
    stream.avail_out = static_cast<uInt>(out);
    result = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    size += static_cast<int64_t>(out - stream.avail_out);
    const bool stuck = result == Z_BUF_ERROR && stream.avail_out > 0;
    if ((result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) || stuck) {
      return absl::InvalidArgumentError(
          absl::StrCat("the body is no ", encoding, ": damaged or cut at byte ", read));
    }
  }
  if (size > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the body decompresses to more than ", max_bytes, " bytes"));
  }
  made.resize(static_cast<size_t>(size));
  return made;
}

}  // namespace reprise
