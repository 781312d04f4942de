// Ports and the connections to them, seen from a client's socket.
#include "server/transport/listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <list>
#include <string>

namespace reprise {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience(30);

class ListenerTest : public ::testing::Test {
 protected:
  ~ListenerTest() override {
    for (const int client : clients_) close(client);
  }
  void Listen(int max_connections) {
    listener.emplace(io, Listener::Limits{.max_connections = max_connections}, nullptr,
                     [this](ClientStream stream) {
                       accepted.push_back(std::make_shared<ClientStream>(std::move(stream)));
                     });
    const absl::Status status = listener->Listen("127.0.0.1", 0, "a test");
    ASSERT_TRUE(status.ok()) << status;
  }
  int Connect() {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {.sin_family = AF_INET,
                           .sin_port = htons(static_cast<uint16_t>(listener->port())),
                           .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    clients_.push_back(client);
    return client;
  }
  void Close(int client) {
    close(client);
    clients_.remove(client);
  }
  bool RunUntil(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < end) io.run_one_for(milliseconds(20));
    return condition();
  }

  boost::asio::io_context io;
  std::list<std::shared_ptr<ClientStream>> accepted;
  std::optional<Listener> listener;

 private:
  std::list<int> clients_;
};

struct Watcher final : ClientWatcher {
  void OnClientLeft() override { ++told; }
  int told = 0;
};

TEST_F(ListenerTest, MoreConnectionsThanItsLimitWaitUntilOneEnds) {
  Listen(2);
  for (int i = 0; i < 3; ++i) Connect();
  ASSERT_TRUE(RunUntil([&] { return accepted.size() == 2; }));
  io.run_for(milliseconds(250));  // more than one pause
  EXPECT_EQ(accepted.size(), 2u);
  accepted.pop_front();
  EXPECT_TRUE(RunUntil([&] { return accepted.size() == 2; }));
}

TEST_F(ListenerTest, ConnectionsThatWaitWhenItClosesAreHandedOverAndNoneAfterThem) {
  Listen(8);
  for (int i = 0; i < 3; ++i) Connect();
  listener->Close();
  ASSERT_TRUE(RunUntil([&] { return accepted.size() == 3; }));
  io.run_for(milliseconds(20));
  const int late = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {.sin_family = AF_INET,
                         .sin_port = htons(static_cast<uint16_t>(listener->port())),
                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  EXPECT_NE(connect(late, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(late);
  EXPECT_EQ(accepted.size(), 3u);
}

TEST_F(ListenerTest, PortThatIsTakenIsNamed) {
  Listen(1);
  Listener second(io, {.max_connections = 1}, nullptr, [](ClientStream) {});
  const absl::Status status = second.Listen("127.0.0.1", listener->port(), "a test");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(listener->port()) + " for a test"));
}

TEST_F(ListenerTest, WatcherIsToldOnceThatTheClientLeft) {
  Listen(1);
  const int client = Connect();
  ASSERT_TRUE(RunUntil([&] { return accepted.size() == 1; }));
  const auto watcher = std::make_shared<Watcher>();
  accepted.front()->Watch(accepted.front(), watcher);
  io.run_for(milliseconds(20));
  EXPECT_EQ(watcher->told, 0);
  Close(client);
  EXPECT_TRUE(RunUntil([&] { return watcher->told > 0; }));
  io.run_for(milliseconds(20));
  EXPECT_EQ(watcher->told, 1);
}

TEST_F(ListenerTest, WatcherIsToldAlsoWhereBytesOfTheClientWaitToBeRead) {
  Listen(1);
  const int client = Connect();
  ASSERT_TRUE(RunUntil([&] { return accepted.size() == 1; }));
  ASSERT_EQ(send(client, "next", 4, 0), 4);
  const auto watcher = std::make_shared<Watcher>();
  accepted.front()->Watch(accepted.front(), watcher);
  io.run_for(milliseconds(250));  // the bytes are seen, and the client is there
  EXPECT_EQ(watcher->told, 0);
  shutdown(client, SHUT_WR);
  EXPECT_TRUE(RunUntil([&] { return watcher->told == 1; }));
}

TEST_F(ListenerTest, WatchEndsWithItsWatcher) {
  Listen(1);
  const int client = Connect();
  ASSERT_TRUE(RunUntil([&] { return accepted.size() == 1; }));
  auto watcher = std::make_shared<Watcher>();
  const std::weak_ptr<Watcher> weak = watcher;
  accepted.front()->Watch(accepted.front(), watcher);
  watcher = nullptr;
  EXPECT_TRUE(weak.expired());
  Close(client);
  io.run_for(milliseconds(20));  // there is no observer
}

}  // namespace
}  // namespace reprise
