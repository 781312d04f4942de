#include "server/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/reflection_v1.pb.h"
#include "proto/reflection_v1alpha.pb.h"
#include "server/http2/unary_method.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

namespace protobuf = google::protobuf;
// The messages of v1 have the same bytes.
namespace reflection = grpc::reflection::v1alpha;
using reflection::ServerReflectionRequest;
using reflection::ServerReflectionResponse;

void AddFile(const protobuf::FileDescriptor* file, std::set<std::string>& seen,
             reflection::FileDescriptorResponse& files) {
  if (!seen.insert(file->name()).second) return;
  protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  *files.add_file_descriptor_proto() = proto.SerializeAsString();
  for (int i = 0; i < file->dependency_count(); ++i) AddFile(file->dependency(i), seen, files);
}

void SetError(absl::StatusCode code, const std::string& why, ServerReflectionResponse& answer) {
  answer.mutable_error_response()->set_error_code(ErrorRowOf(code).grpc);
  answer.mutable_error_response()->set_error_message(why);
}

void SetFile(const protobuf::FileDescriptor* file, const std::string& asked,
             ServerReflectionResponse& answer) {
  if (file == nullptr) {
    return SetError(absl::StatusCode::kNotFound, absl::StrCat(asked, " is not known"), answer);
  }
  std::set<std::string> seen;
  AddFile(file, seen, *answer.mutable_file_descriptor_response());
}

void SetExtensions(const std::string& type, ServerReflectionResponse& answer) {
  const protobuf::DescriptorPool& pool = *protobuf::DescriptorPool::generated_pool();
  const protobuf::Descriptor* message = pool.FindMessageTypeByName(type);
  if (message == nullptr) {
    return SetError(absl::StatusCode::kNotFound, absl::StrCat(type, " is not known"), answer);
  }
  std::vector<const protobuf::FieldDescriptor*> extensions;
  pool.FindAllExtensions(message, &extensions);
  auto& numbers = *answer.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(type);
  for (const protobuf::FieldDescriptor* extension : extensions) {
    numbers.add_extension_number(extension->number());
  }
}

void Answer(const ServerReflectionRequest& request, const std::vector<std::string>& services,
            ServerReflectionResponse& answer) {
  const protobuf::DescriptorPool& pool = *protobuf::DescriptorPool::generated_pool();
  answer.set_valid_host(request.host());
  *answer.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return SetFile(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(),
                     answer);
    case ServerReflectionRequest::kFileContainingSymbol:
      return SetFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                     request.file_containing_symbol(), answer);
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& asked = request.file_containing_extension();
      const protobuf::Descriptor* message = pool.FindMessageTypeByName(asked.containing_type());
      const protobuf::FieldDescriptor* extension =
          message == nullptr ? nullptr
                             : pool.FindExtensionByNumber(message, asked.extension_number());
      return SetFile(extension == nullptr ? nullptr : extension->file(), asked.containing_type(),
                     answer);
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      return SetExtensions(request.all_extension_numbers_of_type(), answer);
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        answer.mutable_list_services_response()->add_service()->set_name(service);
      }
      return;
    default:
      return SetError(absl::StatusCode::kInvalidArgument, "the request asks for nothing", answer);
  }
}

// One question after the other.
class ReflectionCall final : public RpcHandler {
 public:
  ReflectionCall(std::shared_ptr<RpcCall> call,
                 std::shared_ptr<const std::vector<std::string>> services)
      : call_(std::move(call)), services_(std::move(services)) {}

  void OnMessage(RpcMessage message) override {
    ServerReflectionRequest request;
    const absl::Status parsed = ParseMessage(message.bytes, request);
    if (!parsed.ok()) return call_->Finish(parsed);
    const auto answer = std::make_shared<ServerReflectionResponse>();
    Answer(request, *services_, *answer);
    call_->Send(answer);
  }
  void OnSent() override { call_->Read(); }
  void OnHalfClose() override { call_->Finish(absl::OkStatus()); }

 private:
  const std::shared_ptr<RpcCall> call_;
  const std::shared_ptr<const std::vector<std::string>> services_;
};

}  // namespace

void AddReflection(std::vector<std::string> services, RpcRoutes& routes) {
  const std::string names[] = {"grpc.reflection.v1.ServerReflection",
                               "grpc.reflection.v1alpha.ServerReflection"};
  services.insert(services.end(), std::begin(names), std::end(names));
  // The file of v1 is in the program because this names a message of it.
  grpc::reflection::v1::ServerReflectionRequest::descriptor();
  const auto listed = std::make_shared<const std::vector<std::string>>(std::move(services));
  for (const std::string& name : names) {
    routes.Add(absl::StrCat("/", name, "/ServerReflectionInfo"),
               {.start =
                    [listed](std::shared_ptr<RpcCall> call) {
                      return std::make_shared<ReflectionCall>(std::move(call), listed);
                    },
                .is_stream = true});
  }
}

}  // namespace reprise
