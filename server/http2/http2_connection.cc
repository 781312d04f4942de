#include "server/http2/http2_connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <random>
#include <utility>

#include "runtime/base/memory_net.h"
#include "server/http2/grpc_stream.h"

namespace reprise {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// The same of a client that has not proved to read, and bytes of its calls that may wait at first.
constexpr size_t kFewBytes = 4 << 10;
constexpr size_t kFirstHeld = 8 << 10;
// Bytes of calls that wait. More: they begin, since frames that make room for answers may follow.
constexpr size_t kMostHeld = 64 << 10;
// The same of a client that has said that no answer fits: frames after them wait for its time.
constexpr size_t kMostHeldRoomless = 12 << 10;
// Reads of one turn: others have the thread then.
constexpr int kReadsOfTurn = 16;
constexpr size_t kWriteBytes = 64 << 10;
constexpr size_t kKeptBytes = 4 << 10;  // the buffer keeps them while nothing is written
// Frames that wait for a client which sends and does not read.
constexpr size_t kMostWaitingFrames = 256;
// A client that has sent something within this time may have a call on its way.
constexpr std::chrono::seconds kCallingTime(1);
// The time in which the news that a connection will end can go with an answer.
constexpr std::chrono::milliseconds kAnswerTime(500);
// A client that does not confirm that within this time is dead, or no client.
constexpr std::chrono::milliseconds kHearingTime(2500);
// A client that was told all closes within this time.
constexpr std::chrono::seconds kLingerTime(1);
// Spare connections are for one question.
constexpr std::chrono::milliseconds kSpareTime(100);

// Reads of a thread, one at a time.
char* ReadBuffer() {
  thread_local const std::unique_ptr<char[]> buffer(new char[kReadBytes]);
  return buffer.get();
}

// `time`, a tenth more or less: connections that came together do not go together.
std::chrono::nanoseconds Jittered(std::chrono::nanoseconds time) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const int64_t tenth = time.count() / 10;
  if (tenth == 0) return time;
  return time +
         std::chrono::nanoseconds(std::uniform_int_distribution<int64_t>(-tenth, tenth)(random));
}

}  // namespace

Http2Connection::Http2Connection(ClientStream stream, const Http2Context& context)
    : context_(context),
      stream_(std::move(stream)),
      account_(context.account->Open()),
      age_(Jittered(context.times.max_age)),
      allowed_streams_(context.http2.roomless_streams),
      most_held_(kFirstHeld) {}

void Http2Connection::Start(std::function<void()> ended) {
  ended_ = std::move(ended);
  session_ = std::make_unique<Http2Session>(context_.http2, [this](int32_t id) {
    return std::make_shared<GrpcStream>(shared_from_this(), id);
  });
  session_->SetPingInterval(context_.times.least_ping_interval);
  Flush();
  ReadSome();
}

void Http2Connection::WaitToRead(ClientStream::State state) {
  stream_.AsyncWait(state, [self = shared_from_this()](boost::system::error_code error) {
    if (error || !WhereMemoryAllows([&] { self->ReadSome(); })) self->End();
  });
}

void Http2Connection::ReadSome() {
  for (int i = 0; i < kReadsOfTurn; ++i) {
    if (session_ == nullptr || failed_) return;
    if (reads_held_ = HoldsReads(); reads_held_) return;
    const size_t most = TakesAnswers() ? kReadBytes : kFewBytes;
    const ClientStream::Moved moved = stream_.ReadNow(ReadBuffer(), most);
    if (moved.state == ClientStream::State::kEnded) return End();
    if (moved.state != ClientStream::State::kMoved) return WaitToRead(moved.state);
    if (lingers_.has_value()) continue;
    received_ = Clock::now();
    pinged_.reset();
    gate_.Receive(
        {ReadBuffer(), moved.bytes}, [this] { return MayOpenStream(); },
        [this](absl::string_view bytes) { return Pass(bytes); });
    TellLastStream(received_);
    if (session_->ping_strikes() > context_.times.max_ping_strikes) {
      session_->FinishGoAway(NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
      failed_ = true;
    }
    Flush();
  }
  boost::asio::post(stream_.get_executor(), [self = shared_from_this()] {
    if (!WhereMemoryAllows([&] { self->ReadSome(); })) self->End();
  });
}

size_t Http2Connection::MostStreams() const {
  const Http2Limits& limits = context_.http2;
  size_t most = allowed_streams_;
  if (const size_t room = session_->RoomForAnswers(); room > 0) {
    if (!writing_ && gate_.held() > kMostHeld) return limits.max_streams;
    most = std::max<size_t>(most, limits.untaken_streams);
    if (!writing_ && untaken_ < limits.untaken_streams) most = std::max(most, room);
  }
  return std::min<size_t>(most, limits.max_streams);
}

bool Http2Connection::Pass(absl::string_view bytes) {
  failed_ = failed_ || !session_->Receive(bytes).ok();
  return !failed_;
}

bool Http2Connection::ReleaseCalls() {
  return gate_.Release([this] { return MayOpenStream(); },
                       [this](absl::string_view bytes) { return Pass(bytes); });
}

size_t Http2Connection::MostHeld() const {
  if (TakesAnswers()) return kMostHeld;
  return session_->RoomForAnswers() > 0 ? most_held_ : std::min(most_held_, kMostHeldRoomless);
}

bool Http2Connection::HoldsReads() const {
  return gate_.held() > MostHeld() || (writing_ && session_->waiting_frames() > kMostWaitingFrames);
}

void Http2Connection::ReadOn() {
  if (session_ == nullptr || !reads_held_ || HoldsReads()) return;
  reads_held_ = false;
  boost::asio::post(stream_.get_executor(), [self = shared_from_this()] {
    if (!WhereMemoryAllows([&] { self->ReadSome(); })) self->End();
  });
}

bool Http2Connection::WriteSome() {
  while (true) {
    if (out_sent_ == out_.size()) {
      out_.clear();
      out_sent_ = 0;
      if (!session_->Produce(out_, kWriteBytes).ok()) return End(), false;
      if (out_.empty()) return true;
      write_began_ = Clock::now();
    }
    const ClientStream::Moved moved =
        stream_.WriteNow(out_.data() + out_sent_, out_.size() - out_sent_);
    if (moved.state == ClientStream::State::kEnded) return End(), false;
    if (moved.state != ClientStream::State::kMoved) return WaitToWrite(moved.state), false;
    out_sent_ += moved.bytes;
  }
}

void Http2Connection::Flush() {
  if (session_ == nullptr || writing_ || lingers_.has_value()) return;
  do {
    if (!WriteSome()) return ReadOn();
  } while (!failed_ && ReleaseCalls());
  if (out_.capacity() > kKeptBytes) std::string().swap(out_);
  TellClosed();
  if (failed_) return End();
  if (session_->IsOver()) {
    // A client that was not told to go is cut off, or has said all itself.
    if (!drained_.has_value()) return End();
    Linger();
  }
  ReadOn();
}

void Http2Connection::WaitToWrite(ClientStream::State state) {
  writing_ = true;
  stream_.AsyncWait(state, [self = shared_from_this()](boost::system::error_code error) {
    self->writing_ = false;
    if (error || !WhereMemoryAllows([&] { self->Flush(); })) self->End();
  });
}

void Http2Connection::TellClosed() {
  const auto closed = std::move(closed_);
  closed_.clear();
  for (const std::function<void()>& done : closed) done();
}

void Http2Connection::End() {
  if (session_ == nullptr) return;
  const std::unique_ptr<Http2Session> session = std::move(session_);
  session->CloseAll();
  TellClosed();
  std::string().swap(out_);
  stream_.CloseSending();
  stream_.Abort();
  if (ended_ != nullptr) std::exchange(ended_, nullptr)();
}

void Http2Connection::Linger() {
  if (lingers_.has_value()) return;
  // The system would discard bytes that the client has not read yet if bytes of it met a closed
  // end.
  lingers_ = Clock::now();
  stream_.CloseSending();
}

void Http2Connection::Drain(bool at_once) {
  if (session_ == nullptr) return;
  const auto now = Clock::now();
  if (!drained_.has_value()) drained_ = now;
  const bool is_calling = session_->streams() > 0 || now - received_ < kCallingTime;
  if (is_calling && !at_once) return session_->BeginGoAwayWithAnswer();
  session_->BeginGoAway();
  Flush();
}

void Http2Connection::Check(Clock::time_point now) {
  if (session_ == nullptr) return;
  const Http2Times& times = context_.times;
  const auto passed = [now](Clock::time_point since, std::chrono::nanoseconds time) {
    return time.count() > 0 && since != Clock::time_point::max() && now - since > time;
  };
  if (writing_ && passed(write_began_, context_.rpc.write_timeout)) return End();
  if (!session_->has_begun() && passed(opened_, times.begin)) return End();
  if (passed(session_->header_began(), times.begin)) return End();
  if (stream_.is_spare() && passed(opened_, kSpareTime)) return End();
  if (lingers_.has_value() && passed(*lingers_, kLingerTime)) return End();
  if (reads_held_ && stream_.HasLeft()) return End();
  CheckCalls(now);
  CheckKeepalive(now);
  if (session_ == nullptr) return;
  if (!drained_.has_value() && (passed(idle_since_, times.max_idle) || passed(opened_, age_))) {
    Drain(false);
  }
  if (session_ != nullptr && drained_.has_value()) {
    if (passed(*drained_, kAnswerTime)) session_->BeginGoAway();
    TellLastStream(now);
    if (passed(*drained_, times.max_age_grace)) return End();
  }
  Flush();
}

void Http2Connection::CheckCalls(Clock::time_point now) {
  if (session_->streams() == 0) return;
  idle_since_ = now;
  bool is_sending = false;
  session_->ForEach([&](Http2Stream& stream) {
    auto& call = static_cast<GrpcStream&>(stream);
    call.CheckTime(now);
    is_sending |= call.is_open_to_client();
  });
  // Window updates, and messages of open calls, may be queued after the ones that wait to begin.
  if (reads_held_) {
    most_held_ = session_->RoomForAnswers() > 0 ? 2 * most_held_ : most_held_ + kFewBytes;
    most_held_ = std::min(most_held_, kMostHeld);
  }
  if (untaken_ > 0) {
    allowed_streams_ = context_.http2.roomless_streams;
  } else if (is_sending && gate_.held() > 0) {
    allowed_streams_ = std::min<size_t>(2 * session_->streams(), context_.http2.max_streams);
  }
}

void Http2Connection::TellLastStream(Clock::time_point now) {
  if (!drained_.has_value() || last_stream_told_) return;
  const auto began = session_->goaway_began();
  const bool is_late = began != Clock::time_point::max() && now - began > kHearingTime;
  // Calls that wait to begin were sent before the client had heard.
  if (!is_late && (!session_->is_goaway_heard() || gate_.held() > 0)) return;
  last_stream_told_ = true;
  session_->FinishGoAway(NGHTTP2_NO_ERROR, "");
}

void Http2Connection::CheckKeepalive(Clock::time_point now) {
  const Http2Times& times = context_.times;
  if (times.keepalive.count() == 0) return;
  if (pinged_.has_value()) {
    if (now - *pinged_ > times.keepalive_timeout) End();
  } else if (now - received_ > times.keepalive &&
             (times.keepalive_without_calls || session_->streams() > 0)) {
    pinged_ = now;
    session_->Ping();
  }
}

}  // namespace reprise
