#include "server/transport/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace reprise {
namespace {

constexpr int kGzip = 16 + MAX_WBITS;

std::string Packed(const std::string& text, int window_bits) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Inflates a part at a time.
absl::StatusOr<std::string> Inflate(absl::string_view encoding, const std::string& body,
                                    int64_t max_bytes) {
  constexpr int64_t kPart = 1000;
  auto inflater = Inflater::Make(encoding, body, max_bytes);
  if (!inflater.ok()) return inflater.status();
  while (true) {
    const absl::StatusOr<bool> whole = (*inflater)->Step(kPart);
    if (!whole.ok()) return whole.status();
    EXPECT_LE((*inflater)->bytes_taken(),
              static_cast<int64_t>(body.size()) + 4 * max_bytes + (1 << 17));
    if (*whole) return (*inflater)->Take();
  }
}

TEST(InflateTest, MembersAreOneTextAndWhatFollowsThemIsNone) {
  const std::string two = Packed("first ", kGzip) + Packed("second", kGzip);
  EXPECT_EQ(Inflate("gzip", two, 100).value(), "first second");
  EXPECT_EQ(Inflate("gzip", two, 8).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Inflate("gzip", Packed("first", kGzip) + "more", 100).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(InflateTest, BothEncodingsComeBack) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{1000003}}) {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i >> 3);
    const int64_t limit = static_cast<int64_t>(size);
    EXPECT_EQ(Inflate("gzip", Packed(text, kGzip), limit).value(), text) << size;
    EXPECT_EQ(Inflate("Deflate", Packed(text, MAX_WBITS), limit).value(), text) << size;
  }
}

TEST(InflateTest, BombIsRefusedAtTheLimit) {
  const std::string bomb = Packed(std::string(size_t{50} << 20, '\0'), kGzip);
  const auto inflated = Inflate("gzip", bomb, 1 << 20);
  EXPECT_EQ(inflated.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Inflate("gzip", Packed("abc", kGzip), 2).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(InflateTest, DamagedCutAndOtherEncodingsAreErrors) {
  std::string packed = Packed(std::string(10000, 'x'), kGzip);
  EXPECT_EQ(Inflate("gzip", packed.substr(0, packed.size() / 2), 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Inflate("gzip", "", 1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
  packed[packed.size() / 2] ^= 1;
  EXPECT_EQ(Inflate("gzip", packed, 1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Inflate("br", packed, 1 << 20).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace reprise
