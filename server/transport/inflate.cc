#include "server/transport/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr int64_t kFirstBytes = 64 << 10;
// zlib finds out by itself whether its own header or gzip's is there.
constexpr int kEitherHeader = 32 + MAX_WBITS;

}  // namespace

struct Inflater::Stream : z_stream {
  Stream() : z_stream{} {}
  ~Stream() { inflateEnd(this); }
};

absl::StatusOr<std::unique_ptr<Inflater>> Inflater::Make(absl::string_view encoding,
                                                         std::string body, int64_t max_bytes) {
  if (!absl::EqualsIgnoreCase(encoding, "gzip") && !absl::EqualsIgnoreCase(encoding, "deflate")) {
    return absl::UnimplementedError(
        absl::StrCat("Content-Encoding is ", encoding, ", gzip and deflate are supported"));
  }
  auto stream = std::make_unique<Stream>();
  if (inflateInit2(stream.get(), kEitherHeader) != Z_OK) {
    return absl::ResourceExhaustedError("the body: no memory to decompress it");
  }
  return std::unique_ptr<Inflater>(
      new Inflater(encoding, std::move(body), max_bytes, std::move(stream)));
}

Inflater::Inflater(absl::string_view encoding, std::string body, int64_t max_bytes,
                   std::unique_ptr<Stream> stream)
    : encoding_(encoding),
      body_(std::move(body)),
      max_bytes_(max_bytes),
      stream_(std::move(stream)) {}
Inflater::~Inflater() = default;

absl::Status Inflater::TooMany() const {
  return absl::ResourceExhaustedError(
      absl::StrCat("the body decompresses to more than ", max_bytes_, " bytes"));
}

absl::StatusOr<bool> Inflater::Step(int64_t bytes) {
  const int64_t until = size_ + bytes;
  while (size_ < until) {
    if (size_ == static_cast<int64_t>(made_.size())) {
      if (size_ > max_bytes_) return TooMany();
      // One more than allowed shows that there is more.
      made_.resize(static_cast<size_t>(std::min(std::max(2 * size_, kFirstBytes), max_bytes_ + 1)));
    }
    // Both counts of zlib are of 32 bits.
    const size_t in = std::min(body_.size() - read_, size_t{1} << 30);
    const auto out = static_cast<size_t>(
        std::min(static_cast<int64_t>(made_.size()) - size_, std::min(bytes, int64_t{1} << 30)));
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body_.data() + read_));
    stream_->avail_in = static_cast<uInt>(in);
    stream_->next_out = reinterpret_cast<Bytef*>(made_.data() + size_);
    stream_->avail_out = static_cast<uInt>(out);
    int result = inflate(stream_.get(), Z_NO_FLUSH);
    read_ += in - stream_->avail_in;
    size_ += static_cast<int64_t>(out - stream_->avail_out);
    const bool stuck = result == Z_BUF_ERROR && stream_->avail_out > 0;
    if (result == Z_STREAM_END) {
      if (size_ > max_bytes_) return TooMany();
      if (read_ == body_.size()) {
        made_.resize(static_cast<size_t>(size_));
        return true;
      }
      result = inflateReset(stream_.get());  // The next member.
    }
    if ((result != Z_OK && result != Z_BUF_ERROR) || stuck) {
      return absl::InvalidArgumentError(
          absl::StrCat("the body is not valid ", encoding_, ": damaged or cut at byte ", read_));
    }
  }
  return false;
}

int64_t Inflater::bytes_taken() const {
  return static_cast<int64_t>(body_.capacity() + made_.capacity());
}

std::string Inflater::Take() { return std::move(made_); }

}  // namespace reprise
