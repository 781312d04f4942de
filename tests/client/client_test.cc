#include "client/client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "proto/admin.grpc.pb.h"
#include "proto/grpc_service.grpc.pb.h"

namespace reprise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Answers only once the call is cancelled.
class SilentReactor final : public grpc::ServerUnaryReactor {
 public:
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }
};

// A server inside the process. Model "double" answers y = 2 x; the other names answer as they say.
class FakeInference final : public inference::GRPCInferenceService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override {
    if (request->model_name() == "silent") return new SilentReactor;
    auto* reactor = context->DefaultReactor();
    reactor->Finish(Answer(*request, *response));
    return reactor;
  }

 private:
  static grpc::Status Answer(const inference::ModelInferRequest& request,
                             inference::ModelInferResponse& response) {
    if (request.model_name() == "full") {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "queue holds 64 of 64 requests"};
    }
    if (request.model_name() == "loading") {
      return {grpc::StatusCode::UNAVAILABLE, "model 'loading' is loading"};
    }
    response.set_model_name(request.model_name());
    response.set_id(request.id());
    auto& y = *response.add_outputs();
    y.set_name("y");
    y.set_datatype("FP32");
    *y.mutable_shape() = request.inputs(0).shape();
    std::vector<float> values(request.raw_input_contents(0).size() / sizeof(float));
    std::memcpy(values.data(), request.raw_input_contents(0).data(), values.size() * sizeof(float));
    for (float& value : values) value *= 2;
    if (request.model_name() == "short") values.pop_back();
    response.add_raw_output_contents(values.data(), values.size() * sizeof(float));
    (*response.mutable_parameters())["reprise.bucket"].set_string_param("b1_s16");
    (*response.mutable_parameters())["reprise.batch"].set_int64_param(7);
    return grpc::Status::OK;
  }
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    client_ = MakeClient(std::chrono::milliseconds(30'000));
  }
  ~ClientTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::unique_ptr<Client> MakeClient(std::chrono::milliseconds timeout) {
    return std::make_unique<Client>(ClientOptions{.target = "in-process", .timeout = timeout},
                                    server_->InProcessChannel({}));
  }
  InferRequest RequestFor(const std::string& model) {
    return {.model = model, .id = "42", .inputs = {InputTensor::Of<float>("x", {1, 3}, x_)}};
  }

  const std::vector<float> x_ = {1, 2, 3};
  FakeInference service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, AnswerComesBackAsTypedSpan) {
  const auto result = client_->Infer(RequestFor("double"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->id(), "42");
  const auto y = result->Output("y");
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->shape, ElementsAre(1, 3));
  const auto values = y->As<float>();
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*values, ElementsAre(2, 4, 6));
}

TEST_F(ClientTest, ResponseParametersAreReadByName) {
  const auto result = client_->Infer(RequestFor("double"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->Parameter("reprise.bucket"), "b1_s16");
  EXPECT_EQ(result->IntParameter("reprise.batch", -1), 7);
  EXPECT_EQ(result->Parameter("reprise.recipe"), "");
  EXPECT_EQ(result->IntParameter("reprise.bucket", -1), -1);
}

TEST_F(ClientTest, WrongTypeOrNameSaysWhatThereIs) {
  const auto result = client_->Infer(RequestFor("double"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->outputs()[0].As<int64_t>().status().message(),
              HasSubstr("'y' has datatype FP32, read as INT64"));
  EXPECT_EQ(result->Output("z").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(result->Output("z").status().message(), HasSubstr("it has y"));
}

TEST_F(ClientTest, ServersErrorArrivesWithCodeAndWords) {
  EXPECT_EQ(client_->Infer(RequestFor("full")).status(),
            absl::ResourceExhaustedError("queue holds 64 of 64 requests"));
  const absl::Status loading = client_->Infer(RequestFor("loading")).status();
  EXPECT_EQ(loading.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(loading.message(), HasSubstr("model 'loading' is loading"));
}

TEST_F(ClientTest, OutputWithTooFewBytesIsAnError) {
  const absl::Status status = client_->Infer(RequestFor("short")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("'y' of shape 1x3 holds 8 bytes instead of 12"));
}

TEST_F(ClientTest, SilentServerEndsInDeadlineExceeded) {
  const auto client = MakeClient(std::chrono::milliseconds(20));
  EXPECT_EQ(client->Infer(RequestFor("silent")).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ClientTest, AsyncCallsAnswerEachOnce) {
  std::vector<std::promise<absl::StatusOr<InferResult>>> promises(8);
  for (auto& promise : promises) {
    client_->InferAsync(RequestFor("double"), [&promise](absl::StatusOr<InferResult> result) {
      promise.set_value(std::move(result));
    });
  }
  for (auto& promise : promises) {
    const auto result = promise.get_future().get();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->id(), "42");
  }
}

TEST_F(ClientTest, DestructorWaitsForCallbacks) {
  auto client = MakeClient(std::chrono::milliseconds(20));
  int called = 0;
  client->InferAsync(RequestFor("silent"), [&called](const auto& result) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
    ++called;
  });
  client.reset();
  EXPECT_EQ(called, 1);
}

TEST_F(ClientTest, MethodThatServerLacksIsUnimplemented) {
  EXPECT_EQ(client_->ServerReady().status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(client_->GetStats().status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ClientConnectionTest, UnreachableServerIsUnavailableWithItsAddress) {
  Client client({.target = "unix:/nonexistent/reprise.sock"});
  const absl::Status status = client.Infer({.model = "m"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("unix:/nonexistent/reprise.sock"));
  EXPECT_EQ(client.WaitForConnection(std::chrono::milliseconds(10)).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace reprise::client
