// Http2Session: the server's side of one HTTP/2 connection, as bytes in and bytes out (libnghttp2).
//
// It bounds what a client can make it keep or do: headers, streams, resets, frames that carry
// nothing. A client that passes a bound is told GOAWAY, and Receive says why; a stream accounts
// for its own memory.
//
// Threads: one at a time. The methods of streams are called from within Receive and Produce, and
// may call those that answer, but not Receive and Produce.
#pragma once

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace reprise {

using Http2Fields = std::vector<std::pair<std::string, std::string>>;

struct Http2Limits {
  uint32_t max_streams = 1024;  // that are open at a time
  // The same of a client that leaves this number of answers untaken, and of one without any room.
  uint32_t untaken_streams = 16;
  uint32_t roomless_streams = 4;
  uint32_t max_header_bytes = 16 << 10;  // one request has: names, values, 32 for each
  int32_t stream_window = 1 << 20;       // bytes that a client may send before they are consumed
  int32_t connection_window = 8 << 20;
  uint32_t max_continuations = 8;  // frames that continue one header
  // Streams that a client may reset, or make the server reset by a fault: at once, and in each
  // second.
  int64_t reset_burst = 10000;
  int64_t resets_per_second = 1000;
  // Frames that carry no message (pings, settings, windows, empty data, types that HTTP/2 does not
  // have): alike, and some for each frame, of either side, that carries something.
  int64_t idle_frame_burst = 10000;
  int64_t idle_frames_per_second = 200;
  int64_t idle_frames_of_useful = 8;
};

// One request as it is read, and its answer as it is written.
class Http2Stream {
 public:
  struct Produced {
    size_t bytes = 0;
    bool waits = false;  // Resume ends the wait
    bool ends = false;   // the body; trailers follow
  };

  virtual ~Http2Stream() = default;
  // Takes the request's header. `is_too_large`: it passed the limit, and `fields` ends there.
  virtual void OnHead(Http2Fields fields, bool is_too_large) = 0;
  virtual void OnData(absl::string_view bytes) = 0;
  // Called when the client sends no more.
  virtual void OnEnd() = 0;
  // Called last, when the stream is over, well or not.
  virtual void OnClose() = 0;
  // Writes up to `size` bytes of the answer's body.
  virtual Produced Produce(char* to, size_t size) = 0;
  virtual Http2Fields Trailers() = 0;
};

class Http2Session {
 public:
  using Clock = std::chrono::steady_clock;
  using MakeStream = std::function<std::shared_ptr<Http2Stream>(int32_t id)>;

  // The settings are the first bytes to send. Throws std::bad_alloc.
  Http2Session(const Http2Limits& limits, MakeStream make_stream);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  // Takes bytes of the client. After an error nothing more is received; the output of Produce
  // still goes out.
  absl::Status Receive(absl::string_view bytes);
  // Appends bytes to send until `out` has about `enough` of them, or there are no more.
  absl::Status Produce(std::string& out, size_t enough);
  // Returns whether nothing is to be read or sent any more.
  bool IsOver() const;

  // Answers a stream: a header, and where `has_body` the output of its Produce and its trailers.
  absl::Status Respond(int32_t id, const Http2Fields& fields, bool has_body);
  // Resumes the stream, which has something to send again.
  void Resume(int32_t id) { nghttp2_session_resume_data(session_, id); }
  void Reset(int32_t id, uint32_t code) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
  }
  // Gives back bytes that the stream has done with: the client may send the same number again.
  void Consume(int32_t id, size_t bytes) { nghttp2_session_consume_stream(session_, id, bytes); }

  // Tells the client to open no more streams here; FinishGoAway, once it has confirmed that,
  // that the ones opened by then are the last. `code` of HTTP/2.
  void BeginGoAway();
  // BeginGoAway, in one packet with the next answer that ends the last open call: a client that
  // waits for an answer learns both at once, while it has no other call on its way.
  void BeginGoAwayWithAnswer() { goes_with_answer_ = true; }
  // Max: not yet.
  Clock::time_point goaway_began() const { return goaway_began_; }
  // Returns whether the client has read that it began: it opens no stream any more.
  bool is_goaway_heard() const { return is_goaway_heard_; }
  void FinishGoAway(uint32_t code, absl::string_view why);
  void Ping() { nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr); }
  // Small answers for which the client has room: as many as there may be streams once it has read
  // our settings. Zero: it has said that no answer fits.
  size_t RoomForAnswers() const;
  // Frames that wait to be sent, except for the bodies of answers.
  size_t waiting_frames() const { return nghttp2_session_get_outbound_queue_size(session_); }
  // Ends all streams: each is told.
  void CloseAll();

  size_t streams() const { return streams_.size(); }
  // Calls `visit(Http2Stream&)` for each stream.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (auto& [id, entry] : streams_) visit(*entry->stream);
  }
  // Returns when the header that is not whole yet began; max: there is none.
  Clock::time_point header_began() const { return header_began_; }
  // Returns whether the client has sent its preface and its settings.
  bool has_begun() const { return has_begun_; }
  // Pings of the client that came while no stream was open, too soon after the one before.
  int ping_strikes() const { return ping_strikes_; }
  void SetPingInterval(std::chrono::nanoseconds least) { least_ping_interval_ = least; }

 private:
  struct Entry {
    std::shared_ptr<Http2Stream> stream;
    Http2Fields fields;
    size_t header_bytes = 0;
    bool is_too_large = false;
    bool has_head = false;
  };
  struct Callbacks;

  // A limit on things that a client does: a number of times at once, and a number a second.
  struct Allowance {
    int64_t left;
    Clock::time_point counted = Clock::now();

    // Counts one time. Returns false once there were too many.
    bool Take(int64_t burst, int64_t per_second);
  };

  // Counts a frame that carries nothing. Returns false once there were too many.
  bool CountIdleFrame();
  // Counts a stream that is reset by a fault of the client; sets `why_` once there were too many.
  void CountFault();
  void OnUseful();
  void OnPing();

  const Http2Limits limits_;
  const MakeStream make_stream_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<int32_t, std::unique_ptr<Entry>> streams_;
  bool has_read_settings_ = false;  // the client has acknowledged ours
  bool goes_with_answer_ = false;
  bool is_goaway_heard_ = false;
  Clock::time_point goaway_began_ = Clock::time_point::max();
  std::string why_;  // the client was cut off; empty: it was not
  Clock::time_point header_began_ = Clock::time_point::max();
  bool has_begun_ = false;
  Allowance idle_frames_, faults_;
  std::chrono::nanoseconds least_ping_interval_{0};
  Clock::time_point last_ping_ = Clock::time_point::min();
  int ping_strikes_ = 0;
};

}  // namespace reprise
