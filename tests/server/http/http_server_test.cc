#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <list>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/mutex.h"

namespace reprise {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Answers with the body that it was sent.
void Echo(const std::shared_ptr<HttpExchange>& exchange) {
  exchange->Answer([exchange] {
    const HttpRequest& request = exchange->request();
    return HttpReply{
        .fields = {{"X-Field", std::string(request.Field("x-field"))}},
        .body = absl::StrCat(request.method, " ", request.path.Text(), " ", request.body)};
  });
}

// Returns an account that outlives every server of these tests.
const ByteAccount* AccountOf(int64_t max_bytes) {
  static std::list<ByteAccount> accounts;
  return &accounts.emplace_back(ByteLimits{.max_bytes = max_bytes});
}

std::unique_ptr<HttpServer> StartOnAnyPort(const HttpServerOptions& options = {},
                                           HttpHandler handler = Echo) {
  auto server = HttpServer::Start({.address = "127.0.0.1", .port = 0}, options, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

// A connection that sends bytes that no client would.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience = {.tv_sec = 20, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~RawClient() { Close(); }
  void Close() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  void Send(const std::string& bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns all that comes until `end` has come or the connection ends.
  std::string ReadUntil(const std::string& end) {
    std::string read;
    char buffer[4096];
    while (!absl::StrContains(read, end)) {
      const ssize_t bytes = recv(socket_, buffer, sizeof(buffer), 0);
      if (bytes <= 0) break;
      read.append(buffer, static_cast<size_t>(bytes));
    }
    return read;
  }
  // Something comes in time.
  bool Reads(std::chrono::milliseconds time) {
    pollfd wait = {.fd = socket_, .events = POLLIN, .revents = 0};
    return poll(&wait, 1, static_cast<int>(time.count())) > 0;
  }
  std::string ReadToEnd() { return ReadUntil(std::string("\0none\0", 6)); }

 private:
  int socket_;
};

// Keeps exchanges until the test answers them.
class Held {
 public:
  HttpHandler Handler() {
    return [this](std::shared_ptr<HttpExchange> exchange) {
      MutexLock lock(mutex_);
      if (closed_) return;
      exchanges_.push_back(std::move(exchange));
      came_.NotifyAll();
    };
  }
  std::vector<std::shared_ptr<HttpExchange>> Wait(size_t count) {
    MutexLock lock(mutex_);
    while (exchanges_.size() < count) came_.Wait(mutex_);
    return std::exchange(exchanges_, {});
  }
  // Drops those that came and those that come: none may be held when the server ends.
  void Close() {
    std::vector<std::shared_ptr<HttpExchange>> dropped;
    MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(exchanges_);
  }

 private:
  Mutex mutex_;
  bool closed_ = false;
  CondVar came_;
  std::vector<std::shared_ptr<HttpExchange>> exchanges_ GUARDED_BY(mutex_);
};

TEST(HttpServerTest, MethodPathFieldsAndBodyReachTheHandler) {
  auto server = StartOnAnyPort();
  httplib::Client client("127.0.0.1", server->port());
  auto reply = client.Post("/a/b?c=d", {{"X-Field", "seven"}}, "body", "text/plain");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "POST /a/b body");
  EXPECT_EQ(reply->get_header_value("X-Field"), "seven");
}

TEST(HttpServerTest, HeadHasTheLengthAndNoBody) {
  auto server = StartOnAnyPort();
  httplib::Client client("127.0.0.1", server->port());
  auto reply = client.Head("/a");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->get_header_value("Content-Length"), "8");
  EXPECT_EQ(reply->body, "");
}

TEST(HttpServerTest, OneConnectionTakesRequestsOneAfterAnother) {
  auto server = StartOnAnyPort();
  RawClient client(server->port());
  client.Send(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: "
      "3\r\n\r\nabc");
  const std::string replies = client.ReadUntil("abc");
  EXPECT_THAT(replies, HasSubstr("GET /1"));
  EXPECT_THAT(replies, HasSubstr("POST /2 abc"));
}

TEST(HttpServerTest, ChunkedBodiesAreJoined) {
  auto server = StartOnAnyPort();
  RawClient client(server->port());
  client.Send(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("abc"), HasSubstr("POST / abc"));
}

TEST(HttpServerTest, ClientThatExpectsToContinueIsToldTo) {
  auto server = StartOnAnyPort();
  RawClient client(server->port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 100"));
  client.Send("abc");
  EXPECT_THAT(client.ReadUntil("abc"), HasSubstr("200 OK"));
}

TEST(HttpServerTest, OldClientThatExpectsToContinueIsNot) {
  auto server = StartOnAnyPort();
  RawClient client(server->port());
  client.Send("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(client.ReadToEnd(), AllOf(StartsWith("HTTP/1.0 200"), HasSubstr("POST / abc")));
}

TEST(HttpServerTest, EmptyLinesInFrontOfARequestAreLeftOut) {
  auto server = StartOnAnyPort();
  RawClient client(server->port());
  client.Send("\r\n");
  EXPECT_FALSE(client.Reads(std::chrono::milliseconds(50)));
  client.Send(
      "\r\n\nPOST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\r\nGET /2 "
      "HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string replies = client.ReadUntil("GET /2");
  EXPECT_THAT(replies, AllOf(HasSubstr("POST /1 abc"), HasSubstr("GET /2"), Not(HasSubstr("400"))));
}

TEST(HttpServerTest, WhatSurroundsChunksIsRefusedOnceItIsLong) {
  auto server = StartOnAnyPort();
  for (const char* begin : {"5;a=", "0\r\nA: ", "0000"}) {
    RawClient client(server->port());
    client.Send(
        absl::StrCat("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", begin));
    const std::string more(1 << 16, begin[0] == '0' && begin[1] == '0' ? '0' : 'x');
    int sent = 0;
    for (; sent < 64 && !client.Reads(std::chrono::milliseconds(5)); ++sent) client.Send(more);
    EXPECT_LT(sent, 64) << begin;
    EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 400")) << begin;
  }
}

TEST(HttpServerTest, BodiesThatWereOnlyAnnouncedTakeNothingFromOthers) {
  auto server = StartOnAnyPort({.max_body_bytes = 1000, .account = AccountOf(1500)});
  RawClient first(server->port()), second(server->port());
  for (RawClient* idle : {&first, &second}) {
    idle->Send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc");
  }
  const std::string body(1000, 'x');
  httplib::Client third("127.0.0.1", server->port());
  for (int i = 0; i < 20; ++i) {
    auto reply = third.Post("/quick", body, "text/plain");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
  }
}

TEST(HttpServerTest, BodiesLongerThanWhatIsHeldReadyArriveWhole) {
  auto server = StartOnAnyPort({.max_body_bytes = 256 << 20, .account = AccountOf(1 << 30)});
  std::string body(70 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 4099) body[i] = static_cast<char>('a' + i % 23);
  for (const bool chunked : {false, true}) {
    httplib::Client client("127.0.0.1", server->port());
    httplib::Headers none;
    auto reply = chunked
                     ? client.Post(
                           "/", none,
                           [&](size_t offset, httplib::DataSink& sink) {
                             const size_t size = std::min<size_t>(1 << 20, body.size() - offset);
                             if (size == 0) {
                               sink.done();
                             } else {
                               sink.write(body.data() + offset, size);
                             }
                             return true;
                           },
                           "text/plain")
                     : client.Post("/", body, "text/plain");
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->body == "POST / " + body) << reply->body.size();
  }
}

TEST(HttpServerTest, LargeBodyIsRefusedUnreadWithBothNumbers) {
  auto server = StartOnAnyPort({.max_body_bytes = 1000});
  RawClient client(server->port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\nabc");
  const std::string reply = client.ReadToEnd();
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(reply, HasSubstr("1001 bytes, a request at most 1000"));
}

TEST(HttpServerTest, ChunkedBodyIsRefusedOnceItIsTooLarge) {
  auto server = StartOnAnyPort({.max_body_bytes = 1000});
  RawClient client(server->port());
  client.Send(
      absl::StrCat("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n",
                   std::string(0x1000, 'x')));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 413"));
}

TEST(HttpServerTest, BodiesShareABudgetAndGiveItBack) {
  Held held;
  auto server = StartOnAnyPort({.max_body_bytes = 1000, .account = AccountOf(1500)},
                               [&](std::shared_ptr<HttpExchange> exchange) {
                                 if (exchange->request().path.Text() == "/quick")
                                   return Echo(exchange);
                                 held.Handler()(std::move(exchange));
                               });
  const std::string body(1000, 'x');
  RawClient first(server->port());
  first.Send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + body);
  auto exchanges = held.Wait(1);
  httplib::Client second("127.0.0.1", server->port());
  auto refusal = second.Post("/quick", body, "text/plain");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 429);
  EXPECT_THAT(refusal->body, HasSubstr("1500"));
  exchanges[0]->Answer([] { return HttpReply{.body = "done"}; });
  exchanges.clear();
  EXPECT_THAT(first.ReadUntil("done"), HasSubstr("200 OK"));
  // It is given back a little later than the answer is read.
  int status = 0;
  for (int i = 0; i < 1000 && status != 200; ++i) {
    auto reply = second.Post("/quick", body, "text/plain");
    ASSERT_TRUE(reply);
    status = reply->status;
  }
  EXPECT_EQ(status, 200);
}

TEST(HttpServerTest, WhatIsNoHttpIsRefusedAndOthersAreServed) {
  auto server = StartOnAnyPort();
  for (const char* nonsense :
       {"nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    RawClient client(server->port());
    client.Send(nonsense);
    EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 400")) << nonsense;
  }
  RawClient client(server->port());
  client.Send(
      absl::StrCat("GET / HTTP/1.1\r\nHost: a\r\nX: ", std::string(100000, 'x'), "\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 431"));
  EXPECT_TRUE(httplib::Client("127.0.0.1", server->port()).Get("/"));
}

TEST(HttpServerTest, UnfinishedRequestsHoldUpNobody) {
  auto server = StartOnAnyPort();
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 300; ++i) {
    slow.push_back(std::make_unique<RawClient>(server->port()));
    slow.back()->Send(i % 2 == 0 ? "GET / HT"
                                 : "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab");
  }
  EXPECT_TRUE(httplib::Client("127.0.0.1", server->port()).Get("/"));
}

TEST(HttpServerTest, RequestsThatWaitHoldUpNobody) {
  std::atomic<int> seen = 0;
  Held held;
  auto server = StartOnAnyPort({}, [&](std::shared_ptr<HttpExchange> exchange) {
    ++seen;
    if (exchange->request().path.Text() == "/quick") return Echo(exchange);
    held.Handler()(std::move(exchange));
  });
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 200; ++i) {
    waiting.push_back(std::make_unique<RawClient>(server->port()));
    waiting.back()->Send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  auto exchanges = held.Wait(200);
  EXPECT_TRUE(httplib::Client("127.0.0.1", server->port()).Get("/quick"));
  EXPECT_FALSE(server->WaitUntilSent(seconds(0), std::chrono::milliseconds(10)));
  for (auto& exchange : exchanges) exchange->Answer([] { return HttpReply{.body = "late"}; });
  exchanges.clear();
  for (auto& client : waiting) EXPECT_THAT(client->ReadUntil("late"), HasSubstr("late"));
  EXPECT_TRUE(server->WaitUntilSent(seconds(0), seconds(10)));
}

TEST(HttpServerTest, ClientThatLeavesIsTold) {
  for (const char* behind : {"", "\r\n", "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    SCOPED_TRACE(behind);
    Held held;
    auto server = StartOnAnyPort({}, held.Handler());
    RawClient client(server->port());
    client.Send(absl::StrCat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", behind));
    auto exchange = held.Wait(1)[0];
    Mutex mutex;
    CondVar left;
    bool gone = false;
    exchange->OnLeave([&] {
      MutexLock lock(mutex);
      gone = true;
      left.NotifyAll();
    });
    client.Close();
    {
      MutexLock lock(mutex);
      while (!gone) left.Wait(mutex);
    }
    exchange->Answer([] { return HttpReply{}; });
    held.Close();
  }
}

TEST(HttpServerTest, ClientThatWaitsBehindAnotherRequestIsNotTakenToBeGone) {
  Held held;
  auto server = StartOnAnyPort({}, held.Handler());
  RawClient client(server->port());
  client.Send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  auto exchange = held.Wait(1)[0];
  std::atomic<bool> gone{false};
  exchange->OnLeave([&] { gone = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_FALSE(gone);
  exchange->Answer([] { return HttpReply{.body = "first"}; });
  exchange = held.Wait(1)[0];
  EXPECT_EQ(exchange->request().path.Text(), "/2");
  exchange->Answer([] { return HttpReply{.body = "second"}; });
  EXPECT_THAT(client.ReadUntil("second"), HasSubstr("first"));
}

TEST(HttpServerTest, AnswerThatThrowsIsAnErrorOfItsOwn) {
  auto server = StartOnAnyPort({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Answer([]() -> HttpReply { throw std::bad_alloc(); });
  });
  auto reply = httplib::Client("127.0.0.1", server->port()).Get("/");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 503);
}

TEST(HttpServerTest, HandlerThatThrowsEndsItsConnectionAlone) {
  auto server = StartOnAnyPort({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    if (exchange->request().path.Text() == "/throw") throw std::bad_alloc();
    Echo(exchange);
  });
  httplib::Client("127.0.0.1", server->port()).Get("/throw");
  EXPECT_TRUE(httplib::Client("127.0.0.1", server->port()).Get("/"));
  EXPECT_TRUE(server->WaitUntilSent(seconds(0), seconds(10)));
}

TEST(HttpServerTest, LargeAnswerThatIsReadSlowlyIsWhole) {
  const std::string body(size_t{20} << 20, 'y');
  auto server = StartOnAnyPort({}, [&](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Answer([&] { return HttpReply{.body = body}; });
  });
  auto reply = httplib::Client("127.0.0.1", server->port()).Get("/");
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->body == body);
}

TEST(HttpServerTest, PortInUseIsAnErrorThatNamesIt) {
  auto first = StartOnAnyPort();
  auto second = HttpServer::Start({.address = "127.0.0.1", .port = first->port()}, {}, Echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("127.0.0.1:" + std::to_string(first->port())));
}

TEST(HttpServerTest, StoppingCutsOffRequestsThatNeverEnd) {
  auto server = StartOnAnyPort();
  RawClient slow(server->port());
  slow.Send("GET / HTTP/1.1\r\nHost: a\r\nX: ");
  ASSERT_TRUE(httplib::Client("127.0.0.1", server->port()).Get("/"));
  server.reset();
  EXPECT_EQ(slow.ReadToEnd(), "");
}

TEST(HttpServerTest, StoppingAtOnceIsClean) {
  for (int i = 0; i < 20; ++i) StartOnAnyPort();
}

TEST(HttpServerTest, MoreConnectionsThanAllowedWaitForOneToEnd) {
  const auto server = StartOnAnyPort({.max_connections = 2});
  RawClient first(server->port()), second(server->port());
  for (RawClient* client : {&first, &second}) {
    client->Send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(client->ReadUntil("GET /a"), StartsWith("HTTP/1.1 200"));
  }
  RawClient third(server->port());
  third.Send("GET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(third.Reads(std::chrono::milliseconds(300)));
  first.Close();
  EXPECT_THAT(third.ReadToEnd(), HasSubstr("GET /b"));
}

TEST(HttpServerTest, DrainingServerSendsItsClientsAwayWithTheirNextAnswer) {
  const auto server = StartOnAnyPort();
  RawClient client(server->port());
  client.Send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("GET /a"), Not(HasSubstr("close")));
  server->Drain();
  client.Send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.ReadToEnd(), AllOf(HasSubstr("Connection: close"), HasSubstr("GET /b")));
}

TEST(HttpServerTest, TargetsMayNameTheServerAndEncodingsAreNotGuessed) {
  const auto server = StartOnAnyPort();
  const auto answer = [&](const std::string& request) {
    RawClient client(server->port());
    client.Send(request);
    return client.ReadToEnd();
  };
  EXPECT_THAT(answer("GET http://h:80/a?b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
              HasSubstr("GET /a "));
  EXPECT_THAT(
      answer("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
      StartsWith("HTTP/1.1 501"));
  EXPECT_THAT(answer("POST /a HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Encoding: "
                     "gzip\r\nContent-Length: 1\r\n\r\nx"),
              StartsWith("HTTP/1.1 415"));
}

}  // namespace
}  // namespace reprise
