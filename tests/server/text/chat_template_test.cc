#include "server/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::string> RenderOf(const std::string& source, const std::string& context,
                                     int64_t now_s = 0) {
  auto chat = ChatTemplate::Load(source);
  if (!chat.ok()) return chat.status();
  return (*chat)->Render(context, now_s);
}

constexpr char kHello[] = R"({"messages": [{"role": "user", "content": "hé <b>"}], "tools": null,
  "add_generation_prompt": true, "bos_token": "<s>"})";

TEST(ChatTemplateTest, ConversationsAreWrittenAsTheTemplateSays) {
  EXPECT_EQ(
      *RenderOf("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m['content'] | trim }}\n"
                "{% endfor %}{% if add_generation_prompt %}>{% endif %}",
                kHello),
      "<s>[user] h\u00e9 <b>\n>");
}

TEST(ChatTemplateTest, ValuesPrintAsInPython) {
  const char* context =
      R"({"messages": [], "a": {"x": [1, 2.5, true, null, "it's", "q\"'"], "é": 1e20}})";
  EXPECT_EQ(*RenderOf("{{ a }}", context),
            "{'x': [1, 2.5, True, None, \"it's\", 'q\"\\''], '\u00e9': 1e+20}");
  EXPECT_EQ(*RenderOf("{{ a | tojson }}", context),
            "{\"x\": [1, 2.5, true, null, \"it's\", \"q\\\"'\"], \"\u00e9\": 1e+20}");
  EXPECT_EQ(*RenderOf("{{ [1, {'b': []}] | tojson(indent=2) }}", context),
            "[\n  1,\n  {\n    \"b\": []\n  }\n]");
  EXPECT_EQ(*RenderOf("{{ none }} {{ true }} {{ missing }}", context), "None True ");
}

TEST(ChatTemplateTest, WhatTemplatesCallIsThere) {
  EXPECT_EQ(*RenderOf("{% generation %}a{% endgeneration %}{{ strftime_now('%Y') }}",
                      "{\"messages\": []}", 86400),
            "a1970");
  EXPECT_EQ(
      *RenderOf("{{ ' a-b '.strip().split('-')[1].upper() }}{{ {'k': 1}.get('z', 2) }}"
                "{% set n = namespace(x=1) %}{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}"
                "{% endif %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}",
                "{\"messages\": []}"),
      "B25");
}

TEST(ChatTemplateTest, TheLastMessageMayGoOn) {
  const char* context = R"({"messages": [{"role": "assistant", "content": " The sky is "}],
                            "continue_final_message": true})";
  EXPECT_EQ(*RenderOf("{% for m in messages %}<{{ m.content }}>end{% endfor %}", context),
            "< The sky is ");
  EXPECT_EQ(*RenderOf("{% for m in messages %}<{{ m.content | trim }}>end{% endfor %}", context),
            "<The sky is");
}

TEST(ChatTemplateTest, ErrorsNameTheLine) {
  const struct {
    std::string source;
    const char* why;
  } cases[] = {
      {"a\nb\n{% if %}", "line 3"},
      {"a\n{{ messages[0].x.y }}", "line 2"},
      {"\n{{ raise_exception('roles must alternate') }}", "line 2: roles must alternate"},
      {"a\n{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
       "line 2"},
      {"a\n{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "line 2"},
      {"{{ 'x' | nothing }}", "line 1"},
      {"a\nb\n{{ 'x' * 1000000000 }}", "line 3"},
      {"{% set n = namespace(x='xxxxxxxx') %}\n\n\n"
       "{% for i in range(100) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
       "line 4: it needs more than"},
  };
  for (const auto& each : cases) {
    const auto text = RenderOf(each.source, kHello);
    ASSERT_FALSE(text.ok()) << each.source;
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(text.status().message(), HasSubstr(each.why)) << each.source;
  }
}

TEST(ChatTemplateTest, HostileTemplatesEndWithinTheirLimits) {
  for (const std::string& source :
       {std::string("{% set n = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set n.s = n.s "
                    "~ n.s %}{% endfor %}{{ n.s }}"),
        std::string("{{ 'a' * 100000000000 }}"),
        std::string("{% set x = [1] %}") + std::string(2000, '(') + "x" + std::string(2000, ')'),
        std::string("{{ ") + std::string(5000, '[') + std::string(5000, ']') + " }}"}) {
    const auto text = RenderOf(source, kHello);
    if (text.ok()) continue;
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument) << text.status();
  }
  const std::string deep =
      absl::StrCat("{\"messages\": ", std::string(100000, '['), std::string(100000, ']'), "}");
  EXPECT_EQ(RenderOf("a", deep).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reprise
