#include "server/log_lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using std::chrono::seconds;
using ::testing::StartsWith;

constexpr size_t kMostBytes = 64 << 10;
// More than a pipe and the buffer hold.
constexpr int kManyLines = 20'000;

std::string Line(int number) {
  return absl::StrCat("line ", number, " ", std::string(50, 'x'), "\n");
}

// Two connected ends.
class Channel {
 public:
  explicit Channel(bool is_socket) {
    EXPECT_EQ(is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()) : pipe(ends_.data()),
              0);
  }
  ~Channel() {
    CloseReader();
    if (ends_[1] >= 0) close(ends_[1]);
  }
  int writer() const { return ends_[1]; }
  void CloseReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  void CloseWriter() {
    close(ends_[1]);
    ends_[1] = -1;
  }
  // Returns all that comes until every writer is closed.
  std::string ReadAll() {
    std::string all;
    std::array<char, 4096> some;
    for (ssize_t size = 0; (size = read(ends_[0], some.data(), some.size())) > 0;) {
      all.append(some.data(), static_cast<size_t>(size));
    }
    return all;
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

// Returns the numbers of the lines of `text`, each of which is whole.
std::vector<int> NumbersOf(const std::string& text) {
  std::vector<int> numbers;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    EXPECT_NE(end, std::string::npos);
    int number = -1;
    std::sscanf(text.c_str() + at, "line %d ", &number);
    EXPECT_EQ(text.substr(at, end + 1 - at), Line(number));
    numbers.push_back(number);
    at = end + 1;
  }
  return numbers;
}

class LogLinesTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(PipesAndSockets, LogLinesTest, testing::Bool());

TEST_P(LogLinesTest, NobodyWaitsForAReaderThatHangs) {
  Channel channel(GetParam());
  const auto begin = std::chrono::steady_clock::now();
  {
    LogLines lines(channel.writer(), kMostBytes);
    for (int i = 0; i < kManyLines; ++i) lines.Add(Line(i));
    EXPECT_FALSE(lines.Flush(std::chrono::milliseconds(1)));
    EXPECT_EQ(lines.TakeUntold(), 0) << "there is no room to tell of them";
    EXPECT_GT(lines.TakeDropped(), 0);
    EXPECT_EQ(lines.TakeDropped(), 0) << "they were taken";
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10)) << "it ends though nobody reads";
}

TEST_P(LogLinesTest, LinesThatAreKeptComeWholeAndInOrderOnceTheyAreRead) {
  Channel channel(GetParam());
  auto lines = std::make_unique<LogLines>(channel.writer(), kMostBytes);
  for (int i = 0; i < kManyLines; ++i) lines->Add(Line(i));
  const int64_t dropped = lines->TakeDropped();
  std::string text;
  std::thread reader([&] { text = channel.ReadAll(); });
  EXPECT_TRUE(lines->Flush(seconds(30)));
  EXPECT_EQ(lines->TakeUntold(), dropped);
  lines->Add(Line(kManyLines));
  lines.reset();
  channel.CloseWriter();
  reader.join();
  const std::vector<int> numbers = NumbersOf(text);
  EXPECT_EQ(static_cast<int64_t>(numbers.size()) + dropped, kManyLines + 1);
  for (size_t i = 0; i + 1 < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int>(i));
  EXPECT_EQ(numbers.back(), kManyLines);
}

TEST_P(LogLinesTest, LinesOfManyThreadsStayWhole) {
  Channel channel(GetParam());
  auto lines = std::make_unique<LogLines>(channel.writer());
  std::string text;
  std::thread reader([&] { text = channel.ReadAll(); });
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) lines->Add(Line(t * 1000 + i));
    });
  }
  for (std::thread& writer : writers) writer.join();
  lines.reset();
  channel.CloseWriter();
  reader.join();
  EXPECT_EQ(NumbersOf(text).size(), 4000);
}

TEST_P(LogLinesTest, LinesForAReaderThatIsGoneAreDropped) {
  Channel channel(GetParam());
  LogLines lines(channel.writer());
  channel.CloseReader();
  signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < 10; ++i) lines.Add(Line(i));
  EXPECT_TRUE(lines.Flush(seconds(30)));
  EXPECT_EQ(lines.TakeDropped(), 10);
}

TEST(LogLinesOfFilesTest, LinesAreInTheFileWhenAddReturns) {
  std::FILE* file = std::tmpfile();
  LogLines lines(fileno(file));
  lines.Add("one\n");
  std::array<char, 16> read = {};
  EXPECT_EQ(pread(fileno(file), read.data(), read.size(), 0), 4);
  EXPECT_THAT(read.data(), StartsWith("one\n"));
  EXPECT_EQ(fcntl(fileno(file), F_GETFL) & O_NONBLOCK, 0) << "the flag is everybody's";
  std::fclose(file);
}

TEST(LogLinesOfFilesTest, FlagsOfAPipeThatOthersShareStay) {
  Channel channel(/*is_socket=*/false);
  LogLines lines(channel.writer());
  lines.Add("one\n");
  EXPECT_EQ(fcntl(channel.writer(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace reprise
