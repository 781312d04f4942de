#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/transport/gzip.h"
#include "tests/fuzz/wire/seeds.h"

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

// Returns a field as HPACK has it, without any index.
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

std::string RepeatedBytes(const std::string& bytes, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += bytes;
  return all;
}

std::string Resets() {
  std::string all;
  for (uint32_t stream = 1; stream < 40000; stream += 2) {
    all += Frame(kHeaders, kEndHeaders, stream, CallHeader("/echo/Unary")) +
           Frame(kReset, 0, stream, BigEndian(8));
  }
  return all;
}

const std::string kBytesValue = "\n\3abc";

const std::string kBegin = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0);
constexpr int kAck = 1;

// Returns a call whose header has one more field.
std::string CallWith(absl::string_view name, absl::string_view value, absl::string_view messages,
                     absl::string_view path = "/echo/Unary") {
  return kBegin + Frame(kHeaders, kEndHeaders, 1, CallHeader(path, Field(name, value))) +
         Frame(kData, kEndStream, 1, messages);
}

std::string Header(absl::string_view method, absl::string_view type) {
  return Frame(kHeaders, kEndHeaders | kEndStream, 1,
               absl::StrCat(Field(":method", method), Field(":scheme", "http"), Field(":path", "/"),
                            Field(":authority", "a"), Field("content-type", type)));
}

// Calls and their messages, besides those that every client makes.
std::vector<Seed> Calls() {
  const std::string large(3 << 19, 'z');  // more than is decompressed at a time
  const std::string value = absl::StrCat("\n\x80\x80\x60", large);
  const std::string packed = Gzip(value);
  std::vector<Seed> seeds = {
      {"error_of_handler", kBegin + Call(1, "/echo/Fails", Message(kBytesValue))},
      {"no_such_message", kBegin + Call(1, "/echo/Unary", Message("\n\xff"))},
      {"no_message", kBegin + Call(1, "/echo/Unary", "")},
      {"no_body", kBegin + Frame(kHeaders, kEndHeaders | kEndStream, 1, CallHeader("/echo/Unary"))},
      {"three_messages", kBegin + Call(1, "/echo/Stream", RepeatedBytes(Message(kBytesValue), 3))},
      {"gzip_of_large", CallWith("grpc-encoding", "gzip", Message(packed, 1), "/echo/Stream")},
      {"bomb", CallWith("grpc-encoding", "gzip", Message(Gzip(std::string(3 << 20, 'z')), 1))},
      {"deflate", CallWith("grpc-encoding", "deflate",
                           Message("\x78\x9c\xe3\x62\x4e\x4c\x4a\x06\x00\x02\x8d\x01\x34"s, 1))},
      {"no_gzip", CallWith("grpc-encoding", "gzip", Message("abc", 1))},
      {"identity", CallWith("grpc-encoding", "identity", Message(kBytesValue, 1))},
      {"unknown_encoding", CallWith("grpc-encoding", "br", Message(kBytesValue))},
      {"compressed_without_encoding", kBegin + Call(1, "/echo/Unary", Message("abc", 1))},
      {"no_base64", CallWith("key-bin", "?", Message(kBytesValue))},
      {"blanks", CallWith("key", " Bearer x ", Message(kBytesValue))},
      {"no_type", kBegin + Header("POST", "text/plain")},
      {"type_of_another", kBegin + Header("POST", "application/grpcx")},
      {"type_with_codec", kBegin + Header("POST", "application/grpc+proto")},
      {"type_with_charset", kBegin + Header("POST", "application/grpc;charset=a")},
      {"reset_by_client",
       kBegin + Frame(kHeaders, kEndHeaders, 1, CallHeader("/echo/Stream")) +
           Frame(kData, 0, 1, Message(kBytesValue)) + Frame(kReset, 0, 1, BigEndian(8)),
       false, /*varies=*/true},
      {"late_message", kBegin + Frame(kHeaders, kEndHeaders, 1, CallHeader("/echo/Unary")) +
                           Frame(kData, 0, 1, Message(kBytesValue).substr(0, 3))},
      {"answered_early", kBegin + Frame(kHeaders, kEndHeaders, 1, CallHeader("/echo/Unary")) +
                             Frame(kData, 0, 1, Message(kBytesValue)) +
                             Frame(kData, 0, 1, Message(kBytesValue))},
      {"settings_taken", kBegin + Frame(kSettings, kAck, 0) + Frame(kPing, 0, 0, "12345678") +
                             Frame(kPing, kAck, 0, "going aw") +
                             Call(1, "/echo/Unary", Message(kBytesValue))},
      {"many_fields", kBegin +
                          Frame(kHeaders, kEndHeaders, 1,
                                CallHeader("/echo/Unary", RepeatedBytes(Field("x", "y"), 300))) +
                          Frame(kData, kEndStream, 1, Message(kBytesValue))},
  };
  for (const char* timeout :
       {"1H", "1M", "1S", "1m", "1u", "1n", "99999999H", "1", "S", "1x", "123456789S", "x1S", ""}) {
    seeds.push_back({absl::StrCat("timeout_", timeout),
                     CallWith("grpc-timeout", timeout, Message(kBytesValue))});
  }
  // More calls than may be open at a time, whose messages come later.
  std::string calls = kBegin, messages;
  for (uint32_t stream = 1; stream < 40; stream += 2) {
    calls += Frame(kHeaders, kEndHeaders, stream, CallHeader("/echo/Stream"));
    messages += Frame(kData, kEndStream, stream, Message(kBytesValue));
  }
  seeds.push_back({"calls_that_wait", calls + messages, false, /*varies=*/true});
  seeds.push_back({"answers_without_room", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
                                               Frame(kSettings, 0, 0, "\0\4\0\0\0\0"s) +
                                               calls.substr(kBegin.size()) + messages});
  seeds.push_back({"strikes", kBegin + RepeatedBytes(Frame(kPing, 0, 0, "12345678"), 12), true});
  return seeds;
}

}  // namespace

std::vector<Seed> Http2Seeds() {
  const std::string& begin = kBegin;
  const std::string header = CallHeader("/echo/Unary");
  const std::string filler = RepeatedBytes(Field("x-a", std::string(100, 'y')), 100);
  std::vector<Seed> seeds = Calls();
  const std::vector<Seed> connections = {
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
       begin + Frame(kHeaders, 0, 1, header) +
           RepeatedBytes(Frame(kContinuation, 0, 1, filler), 20),
       true},
      {"empty_continuations",
       begin + Frame(kHeaders, 0, 1, header) + RepeatedBytes(Frame(kContinuation, 0, 1), 2000),
       true},
      {"rapid_reset", begin + Resets(), true},
      {"pings", begin + RepeatedBytes(Frame(kPing, 0, 0, "12345678"), 12000), true},
      {"settings", begin + RepeatedBytes(Frame(kSettings, 0, 0), 12000), true},
      {"priorities", begin + RepeatedBytes(Frame(kPriority, 0, 1, BigEndian(3) + "\1"), 12000),
       true},
      {"empty_data",
       begin + Frame(kHeaders, kEndHeaders, 1, CallHeader("/echo/Stream")) +
           RepeatedBytes(Frame(kData, 0, 1), 12000),
       true},
      {"window_overflow",
       begin + RepeatedBytes(Frame(kWindowUpdate, 0, 0, BigEndian(0x7fffffff)), 2), true},
  };
  seeds.insert(seeds.end(), connections.begin(), connections.end());
  return seeds;
}

}  // namespace reprise
