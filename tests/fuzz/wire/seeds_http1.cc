#include <vector>

#include "absl/strings/str_cat.h"
#include "server/transport/gzip.h"
#include "tests/fuzz/wire/seeds.h"

namespace reprise {
namespace {

using namespace std::string_literals;

std::string Repeated(const std::string& bytes, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += bytes;
  return all;
}

const std::string kHost = "Host: a\r\n";

std::string Post(const std::string& path, const std::string& fields, const std::string& body) {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\n", kHost, fields,
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string Chunked(const std::string& chunks) {
  return absl::StrCat("POST / HTTP/1.1\r\n", kHost, "Transfer-Encoding: chunked\r\n\r\n", chunks);
}

// Another form of the same bytes: without the header of gzip, after zlib's.
const std::string kDeflated = "\x78\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27"s;  // "abc"

// Bodies and their headers.
std::vector<Seed> Bodies() {
  const std::string large(3 << 19, 'z');  // more than is decompressed at a time
  return {
      {"pieces", Post("/pieces", "", "abc")},
      {"pieces_old", "POST /pieces HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"},
      {"pieces_of_nothing", Repeated(Post("/pieces", "", ""), 2)},
      {"compressed_answer", Post("/long", "Accept-Encoding: br, gzip;q=0.5, *\r\n", "abc")},
      {"plain_answer", Post("/long", "Accept-Encoding: gzip;q=0\r\n", "abc")},
      {"head", "HEAD /long?a=b HTTP/1.1\r\n" + kHost + "User-Agent: me\r\n\r\n"},
      {"continue", Post("/", "Expect: 100-continue\r\n", "abc")},
      {"whole_target", "GET http://a/x?y HTTP/1.1\r\n" + kHost + "\r\n"},
      {"target_without_path", "GET http://a HTTP/1.1\r\n" + kHost + "\r\n"},
      {"closed_after", Post("/", "Connection: close\r\n", "abc")},
      {"lines_in_front", "\r\n\n" + Post("/", "", "")},
      {"identity", Post("/", "Content-Encoding: identity\r\n", "abc")},
      {"deflate", Post("/", "Content-Encoding: deflate\r\n", kDeflated)},
      {"gzip_of_large", Post("/", "Content-Encoding: gzip\r\n", Gzip(large))},
      {"two_members", Post("/", "Content-Encoding: gzip\r\n", Gzip("abc") + Gzip("def"))},
      {"large", Post("/", "", std::string(40 << 10, 'a'))},
      {"large_in_chunks", Chunked("9000\r\n" + std::string(0x9000, 'a') + "\r\n0\r\n\r\n")},
      {"spaces_behind_size", Chunked("3 \t\r\nabc\r\n00 ;x\r\nA: \tb\r\nC:\r\n\r\n")},
      {"no_gzip", Post("/", "Content-Encoding: gzip\r\n", "abc"), true},
      {"cut_gzip", Post("/", "Content-Encoding: gzip\r\n", Gzip("abc").substr(0, 12)), true},
      {"bomb", Post("/small", "Content-Encoding: gzip\r\n", Gzip(large)), true},
      {"bomb_of_members",
       Post("/small", "Content-Encoding: gzip\r\n", Repeated(Gzip(std::string(60, 'a')), 2)), true},
      {"unknown_encoding", Post("/", "Content-Encoding: br\r\n", "abc"), true},
      {"two_encodings",
       Post("/", "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", Gzip("abc")), true},
      {"unknown_transfer", "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: gzip\r\n\r\n", true},
      {"old_and_chunked", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
      {"more_than_a_body_may_have",
       "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 2097153\r\n\r\n", true},
      {"no_size", Chunked("\r\n"), true},
      {"no_number", Chunked("x\r\n"), true},
      {"return_alone", Chunked("3\rabc"), true},
      {"control_character", Chunked("3;\x01\r\nabc"), true},
      {"longer_than_its_size", Chunked("3\r\nabcd\r\n0\r\n\r\n"), true},
      {"endless_extension", Chunked("3;" + std::string(20000, 'x')), true},
      {"endless_trailer", Chunked("0\r\nA: " + std::string(70000, 'x')), true},
      {"header_of_bytes", "\x80\x81", true},
      {"no_version", "GET /\r\n\r\n", true},
  };
}

}  // namespace

std::vector<Seed> Http1Seeds() {
  std::vector<Seed> seeds = Bodies();
  const std::vector<Seed> heads = {
      {"get", "GET / HTTP/1.1\r\n" + kHost + "\r\n"},
      {"post", "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\n\r\nabc"},
      {"chunked",
       "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
      {"extension_and_trailer",
       "POST / HTTP/1.1\r\n" + kHost +
           "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nA: b\r\n\r\n"},
      {"two", Repeated("GET /x HTTP/1.1\r\n" + kHost + "\r\n", 2)},
      {"old", "GET / HTTP/1.0\r\n\r\n"},
      {"gzip", "POST / HTTP/1.1\r\n" + kHost +
                   "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n"
                   "\x1f\x8b\x08\0\0\0\0\0\0\3\x03\0\0\0\0\0\0\0\0\0"s},
      {"no_host", "GET / HTTP/1.1\r\n\r\n", true},
      {"two_hosts", "GET / HTTP/1.1\r\n" + kHost + kHost + "\r\n", true},
      {"folded", "GET / HTTP/1.1\r\n" + kHost + "X: a\r\n b\r\n\r\n", true},
      {"bare_line_feed", "GET / HTTP/1.1\nHost: a\n\n", true},
      {"two_lengths",
       "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", true},
      {"length_and_chunked",
       "POST / HTTP/1.1\r\n" + kHost +
           "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       true},
      {"chunk_behind_a_bare_line_feed",
       "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n0\r\n\n0\r\n\r\n", true},
      {"huge_length",
       "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 18446744073709551615\r\n\r\n", true},
      {"huge_chunk",
       "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
       true},
      {"endless_header",
       "GET / HTTP/1.1\r\n" + kHost + Repeated("X: " + std::string(100, 'y') + "\r\n", 1000), true},
      {"tls", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s, true},
  };
  seeds.insert(seeds.end(), heads.begin(), heads.end());
  return seeds;
}

}  // namespace reprise
