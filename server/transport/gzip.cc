#include "server/transport/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace reprise {
namespace {

constexpr int kGzipHeader = 16 + MAX_WBITS;
constexpr int kMemoryLevel = 8;  // zlib's default

// Returns the weight after the name of a coding; 1 where none is given.
double WeightOf(absl::string_view parameters) {
  for (absl::string_view parameter : absl::StrSplit(parameters, ';')) {
    parameter = absl::StripAsciiWhitespace(parameter);
    double weight = 1;
    if (absl::StartsWithIgnoreCase(parameter, "q=")) {
      return absl::SimpleAtod(parameter.substr(2), &weight) ? weight : 0;
    }
  }
  return 1;
}

}  // namespace

bool AcceptsGzip(absl::string_view accept_encoding) {
  bool any = false;
  for (const absl::string_view coding : absl::StrSplit(accept_encoding, ',')) {
    const size_t end = std::min(coding.find(';'), coding.size());
    const absl::string_view name = absl::StripAsciiWhitespace(coding.substr(0, end));
    const bool taken = WeightOf(coding.substr(end)) > 0;
    if (absl::EqualsIgnoreCase(name, "gzip")) return taken;
    if (name == "*") any = taken;
  }
  return any;
}

std::string Gzip(absl::string_view text) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipHeader, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string made;
  made.resize(deflateBound(&stream, static_cast<uLong>(text.size())));
  // Both counts of zlib are of 32 bits.
  constexpr size_t kPart = size_t{1} << 30;
  size_t read = 0, written = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t in = std::min(text.size() - read, kPart);
    const size_t out = std::min(made.size() - written, kPart);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(made.data() + written);
    stream.avail_out = static_cast<uInt>(out);
    result = deflate(&stream, read + in == text.size() ? Z_FINISH : Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
  }
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return "";
  made.resize(written);
  return made;
}

}  // namespace reprise
