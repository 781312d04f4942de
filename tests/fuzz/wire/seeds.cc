#include "tests/fuzz/wire/seeds.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace reprise {
namespace {

using namespace std::string_literals;

enum FrameKind {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
constexpr int kEndStream = 1, kEndHeaders = 4, kPadded = 8;

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string Frame(FrameKind kind, int flags, uint32_t stream, absl::string_view payload = "") {
  return absl::StrCat(BigEndian(static_cast<uint32_t>(payload.size())).substr(1),
                      std::string(1, static_cast<char>(kind)),
                      std::string(1, static_cast<char>(flags)), BigEndian(stream), payload);
}

// A field as HPACK has it, without any index.
std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrCat(std::string(1, '\0'), std::string(1, static_cast<char>(name.size())), name,
                      std::string(1, static_cast<char>(value.size())), value);
}

std::string CallHeader(absl::string_view path, absl::string_view more = "") {
  return absl::StrCat(Field(":method", "POST"), Field(":scheme", "http"), Field(":path", path),
                      Field(":authority", "a"), Field("content-type", "application/grpc"),
                      Field("te", "trailers"), more);
}

std::string Message(absl::string_view body, char flag = 0) {
  return absl::StrCat(std::string(1, flag), BigEndian(static_cast<uint32_t>(body.size())), body);
}

std::string Call(uint32_t stream, absl::string_view path, absl::string_view messages) {
  return Frame(kHeaders, kEndHeaders, stream, CallHeader(path)) +
         Frame(kData, kEndStream, stream, messages);
}

std::string Repeated(const std::string& bytes, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += bytes;
  return all;
}

std::string Resets() {
  std::string all;
  for (uint32_t stream = 1; stream < 24000; stream += 2) {
    all += Frame(kHeaders, kEndHeaders, stream, CallHeader("/echo/Unary")) +
           Frame(kReset, 0, stream, BigEndian(8));
  }
  return all;
}

const std::string kBytesValue = "\n\3abc";

}  // namespace

std::vector<Seed> Http2Seeds() {
  const std::string begin = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0);
  const std::string header = CallHeader("/echo/Unary");
  const std::string filler = Repeated(Field("x-a", std::string(100, 'y')), 100);
  return {
      {"unary", begin + Call(1, "/echo/Unary", Message(kBytesValue))},
      {"two_messages", begin + Call(1, "/echo/Stream", Message(kBytesValue) + Message(""))},
      {"timeout_and_metadata", begin +
                                   Frame(kHeaders, kEndHeaders, 1,
                                         CallHeader("/echo/Unary", Field("grpc-timeout", "10S") +
                                                                       Field("key-bin", "YWJj"))) +
                                   Frame(kData, kEndStream, 1, Message(kBytesValue))},
      {"gzip", begin +
                   Frame(kHeaders, kEndHeaders, 1,
                         CallHeader("/echo/Unary", Field("grpc-encoding", "gzip"))) +
                   Frame(kData, kEndStream, 1,
                         Message("\x1f\x8b\x08\0\0\0\0\0\0\3\x03\0\0\0\0\0\0\0\0\0"s, 1))},
      {"unknown_method", begin + Call(1, "/a/b", Message(""))},
      {"no_grpc", begin + Frame(kHeaders, kEndHeaders | kEndStream, 1,
                                Field(":method", "GET") + Field(":scheme", "http") +
                                    Field(":path", "/") + Field(":authority", "a"))},
      {"cut_message", begin + Call(1, "/echo/Unary", Message(kBytesValue).substr(0, 7))},
      {"huge_message", begin + Call(1, "/echo/Unary", "\0\xff\xff\xff\xff"s)},
      {"bad_flag", begin + Call(1, "/echo/Unary", Message(kBytesValue, 7))},
      {"padded", begin + Frame(kHeaders, kEndHeaders, 1, header) +
                     Frame(kData, kEndStream | kPadded, 1, "\2" + Message(kBytesValue) + "\0\0"s)},
      {"trailers_of_client", begin + Frame(kHeaders, kEndHeaders, 1, header) +
                                 Frame(kData, 0, 1, Message(kBytesValue)) +
                                 Frame(kHeaders, kEndHeaders | kEndStream, 1, Field("x", "y"))},
      {"windows_of_zero",
       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "\0\4\0\0\0\0"s) +
           Call(1, "/echo/Unary", Message(kBytesValue)) + Frame(kWindowUpdate, 0, 1, BigEndian(1))},
      {"goaway", begin + Call(1, "/echo/Stream", Message("")) +
                     Frame(kGoAway, 0, 0, BigEndian(0) + BigEndian(0))},
      {"large_header", begin + Frame(kHeaders, 0, 1, header + filler) +
                           Frame(kContinuation, 0, 1, filler) +
                           Frame(kContinuation, kEndHeaders, 1, "")},
      {"no_preface", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
      {"endless_header",
       begin + Frame(kHeaders, 0, 1, header) + Repeated(Frame(kContinuation, 0, 1, filler), 20),
       true},
      {"empty_continuations",
       begin + Frame(kHeaders, 0, 1, header) + Repeated(Frame(kContinuation, 0, 1), 2000), true},
      {"rapid_reset", begin + Resets(), true},
      {"pings", begin + Repeated(Frame(kPing, 0, 0, "12345678"), 12000), true},
      {"settings", begin + Repeated(Frame(kSettings, 0, 0), 12000), true},
      {"priorities", begin + Repeated(Frame(kPriority, 0, 1, BigEndian(3) + "\1"), 12000), true},
      {"empty_data",
       begin + Frame(kHeaders, kEndHeaders, 1, CallHeader("/echo/Stream")) +
           Repeated(Frame(kData, 0, 1), 12000),
       true},
      {"window_overflow", begin + Repeated(Frame(kWindowUpdate, 0, 0, BigEndian(0x7fffffff)), 2),
       true},
  };
}

std::vector<Seed> Http1Seeds() {
  const std::string host = "Host: a\r\n";
  return {
      {"get", "GET / HTTP/1.1\r\n" + host + "\r\n"},
      {"post", "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc"},
      {"chunked",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
      {"extension_and_trailer",
       "POST / HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n"},
      {"two", Repeated("GET /x HTTP/1.1\r\n" + host + "\r\n", 2)},
      {"old", "GET / HTTP/1.0\r\n\r\n"},
      {"gzip", "POST / HTTP/1.1\r\n" + host +
                   "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n"
                   "\x1f\x8b\x08\0\0\0\0\0\0\3\x03\0\0\0\0\0\0\0\0\0"s},
      {"no_host", "GET / HTTP/1.1\r\n\r\n", true},
      {"two_hosts", "GET / HTTP/1.1\r\n" + host + host + "\r\n", true},
      {"folded", "GET / HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n", true},
      {"bare_line_feed", "GET / HTTP/1.1\nHost: a\n\n", true},
      {"two_lengths",
       "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", true},
      {"length_and_chunked",
       "POST / HTTP/1.1\r\n" + host +
           "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       true},
      {"chunk_behind_a_bare_line_feed",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\n0\r\n\r\n", true},
      {"huge_length", "POST / HTTP/1.1\r\n" + host + "Content-Length: 18446744073709551615\r\n\r\n",
       true},
      {"huge_chunk",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
       true},
      {"endless_header",
       "GET / HTTP/1.1\r\n" + host + Repeated("X: " + std::string(100, 'y') + "\r\n", 1000), true},
      {"tls", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s, true},
  };
}

}  // namespace reprise
